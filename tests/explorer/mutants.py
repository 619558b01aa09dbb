"""Rules of the commit protocol taken away, one at a time: each must lead to a violation within the default bound.

Not here, since nothing was found without them: that a compaction looks again whether its plan stands (the executors' lock and the timeline
see to the same), that a restore is planned under the lock, and that it waits for writers that are at work without the lock (it takes back
what they requested, and they look whether it is there and whether what they began from is).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import lakehouse_engine.commit.expected as expected
import lakehouse_engine.commit.locked as locked
import lakehouse_engine.commit.overtaken as overtaken
import lakehouse_engine.commit.publish as publish
import lakehouse_engine.commit.rollback.recover as recover
import lakehouse_engine.commit.transaction as transaction
import lakehouse_engine.read.query as query
import lakehouse_engine.services.archive.service as archive_service
import lakehouse_engine.services.clean.service as clean_service
import lakehouse_engine.undo.savepoint as savepoint
import lakehouse_engine.write.operation as operation
from lakehouse_engine.commit.heartbeat import Beating
from lakehouse_engine.manifest.named import NamedFiles
from lakehouse_engine.model.instant import Instant, format_instant_time
from lakehouse_engine.services.cluster.clustering import Clustering
from lakehouse_engine.timeline.clock import InstantClock
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.batch.stage import Stage
from tests.explorer import actors

Patch = pytest.MonkeyPatch


def no_lock(patch: Patch) -> None:
    patch.setattr(TableLock, "__enter__", lambda self: self)
    patch.setattr(TableLock, "__exit__", lambda self, *error: None)


def expected_is_not_checked(patch: Patch) -> None:
    patch.setattr(operation, "check_expected", lambda state, wanted: None)


def expected_instant_is_not_checked(patch: Patch) -> None:
    patch.setattr(expected.Expectation, "check", lambda self, partitions: None)


def taken_back_is_not_missed(patch: Patch) -> None:
    """R4 without its other half: that what was read is there still."""
    patch.setattr(expected, "_check_all_there", lambda now, wanted, completed: None)


def files_are_not_looked_for(patch: Patch) -> None:
    patch.setattr(publish, "check_seen", lambda state, time, metadata: 0)


def instants_by_the_clock(patch: Patch) -> None:
    patch.setattr(InstantClock, "next", lambda self, timeline: format_instant_time(self.wall_clock()))


def unnamed_files_count(patch: Patch) -> None:
    patch.setattr(NamedFiles, "has", lambda self, base: True)


def heartbeat_after_the_instant(patch: Patch) -> None:
    started = transaction.Transaction.start

    def start(self: Any, action: Any) -> None:
        patch_alive = self.__class__._show_alive
        if self.__class__ is not transaction.Transaction:
            started(self, action)
            return
        shown: list[Instant] = []
        try:
            transaction.Transaction._show_alive = lambda me, instant: shown.append(instant)  # type: ignore[method-assign, assignment]
            started(self, action)
        finally:
            transaction.Transaction._show_alive = patch_alive  # type: ignore[method-assign]
        patch_alive(self, shown[-1])

    patch.setattr(transaction.Transaction, "start", start)


def no_heartbeat(patch: Patch) -> None:
    patch.setattr(Beating, "start", lambda self, take_over=False: None)


def the_living_are_rolled_back(patch: Patch) -> None:
    patch.setattr(recover, "_is_dead", lambda state, instant, options: True)


def the_dead_stay(patch: Patch) -> None:
    patch.setattr(locked, "roll_back_dead_writes", lambda state: state)


def _planned_before_the_lock(patch: Patch, module: Any) -> None:
    real = module.locked_table

    @contextmanager
    def early(storage: Any, **given: Any) -> Iterator[TableState]:
        state = TableState.load(storage)
        with real(storage, **given):
            yield state

    patch.setattr(module, "locked_table", early)


def clean_is_planned_before_the_lock(patch: Patch) -> None:
    _planned_before_the_lock(patch, clean_service)


def archiving_is_planned_before_the_lock(patch: Patch) -> None:
    _planned_before_the_lock(patch, archive_service)


def savepoint_without_the_lock(patch: Patch) -> None:
    @contextmanager
    def unlocked(storage: Any, **given: Any) -> Iterator[TableState]:
        yield TableState.load(storage)

    patch.setattr(savepoint, "locked_table", unlocked)


def nothing_ever_happens(patch: Patch) -> None:
    """The state and the context of before the lock are used, whatever happened since."""
    patch.setattr(TableState, "is_still", lambda self, now: True)


def rows_are_keyed_once(patch: Patch) -> None:
    keyed = Stage.rows

    def rows(self: Any, data: Any, keying: Any) -> Any:
        held = self._held.get(id(data))
        return held[1] if held is not None else keyed(self, data, keying)

    patch.setattr(Stage, "rows", rows)


def live_stages_go(patch: Patch) -> None:
    patch.setattr("lakehouse_engine.commit.staging.is_at_work", lambda nonce: False)
    patch.setattr("lakehouse_engine.commit.staging._is_dead", lambda storage, path, entry: True)


def readers_do_not_look_again(patch: Patch) -> None:
    for module in (query, actors):
        patch.setattr(module, "at_one_moment", lambda state, ask: ask(state))


def attempts_do_not_look_again(patch: Patch) -> None:
    patch.setattr("lakehouse_engine.write.tasks.attempt.FileAttempt.end", lambda self: None)


def restore_does_not_count_from_its_plan(patch: Patch) -> None:
    patch.setattr("lakehouse_engine.view.table_state.pending_restore", lambda active, timeline: None)


def conflicts_are_not_looked_for(patch: Patch) -> None:
    patch.setattr(transaction, "check_not_overtaken", lambda then, now, inflight, metadata, reach: None)


def file_groups_are_no_conflict(patch: Patch) -> None:
    patch.setattr(overtaken, "groups_of", lambda metadata: frozenset())


def looked_up_keys_are_no_conflict(patch: Patch) -> None:
    patch.setattr(overtaken, "keeps_rows", lambda config, instant, metadata: True)


def clusterings_are_published_as_they_ran(patch: Patch) -> None:
    patch.setattr(Clustering, "settle", lambda self, job, metadata, state: metadata)


Mutant = Callable[[Patch], None]

MUTANTS: list[tuple[Mutant, str]] = [
    (no_lock, "two upserts of one file, cow"),
    (no_lock, "two inserts into one small file, mor"),
    (expected_is_not_checked, "two counters by state, cow"),
    (expected_instant_is_not_checked, "two counters, mor"),
    (taken_back_is_not_missed, "rollback beside a counter, cow"),
    (files_are_not_looked_for, "a worker with a disk of its own, cow"),
    (instants_by_the_clock, "wrong clocks, cow"),
    (unnamed_files_count, "an attempt that is late, cow"),
    (attempts_do_not_look_again, "an attempt that is late, cow"),
    (heartbeat_after_the_instant, "Hudi and an upsert of one file, cow"),
    (no_heartbeat, "Hudi and an upsert of one file, cow"),
    (the_living_are_rolled_back, "Hudi and upserts of other files, cow"),
    (the_dead_stay, "dying writers, cow"),
    (clean_is_planned_before_the_lock, "clean and savepoint, cow"),
    (archiving_is_planned_before_the_lock, "archiving and savepoint, cow"),
    (savepoint_without_the_lock, "clean and savepoint, cow"),
    (nothing_ever_happens, "two upserts of one file, cow"),
    (rows_are_keyed_once, "another column meanwhile, cow"),
    (live_stages_go, "rows that are staged, cow"),
    (readers_do_not_look_again, "clean and archive beside a reader, cow"),
    (restore_does_not_count_from_its_plan, "restore and a reader, cow"),
    (clusterings_are_published_as_they_ran, "clustering beside a counter, cow"),
    (clusterings_are_published_as_they_ran, "clustering beside a counter, mor"),
    (conflicts_are_not_looked_for, "at once: two upserts of one file, cow"),
    (conflicts_are_not_looked_for, "at once: two upserts of one file, mor"),
    (file_groups_are_no_conflict, "at once: two inserts into one small file, cow"),
    (looked_up_keys_are_no_conflict, "at once: a new partition, cow"),
]
