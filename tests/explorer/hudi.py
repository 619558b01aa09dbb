"""A writer that behaves as Hudi's does under optimistic concurrency control: it takes the lock to commit only, and looks for conflicts
then.

What it writes is made by this engine's tasks; when it looks, what it leaves and what it asks nobody is Hudi's. Its lock is the file alone,
which it deletes twice when it gives it back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import lakehouse_engine.write.operation as operation
from lakehouse_engine.commit.concurrency.attempts import close_to_attempts
from lakehouse_engine.commit.heartbeat import heartbeat_file
from lakehouse_engine.commit.rollback.recover import is_plan
from lakehouse_engine.commit.table_clock import completion_time
from lakehouse_engine.commit.transaction import Transaction
from lakehouse_engine.errors import LakehouseError, StoredFileExistsError
from lakehouse_engine.format.file_names import marker_folder
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.view.table_state import TableState
from tests.crash.scenarios import Row, batch
from tests.crash.timeline import expect
from tests.explorer.actors import Act, Me, changed
from tests.explorer.oracle import LOCK
from tests.explorer.turns import HERE

NAME = "hudi"
"""What the names of its actors begin with."""
_TOLERATED_MS = 120_000
_REPEATED = 6
_PAUSE_SECONDS = 1.0
_real_begin = operation.begin


class HudiConflictError(LakehouseError):
    """`HoodieWriteConflictException`, or a heartbeat that expired: the job writes again."""


class _HudiTransaction(Transaction):
    """What is pending when it fails stays, for whoever cleans up."""

    def _show_alive(self, instant: Instant) -> None:
        self.state.storage.create(heartbeat_file(instant.requested_time), b"")

    def complete(self, metadata: HoodieCommitMetadata) -> None:
        assert self._instant is not None
        storage, timed = self.state.storage, self.instant_time
        close_to_attempts(storage, timed)
        _lock(storage)
        try:
            self._check_conflicts(metadata)
            self._check_alive()
            content = self.state.format.encode_commit(metadata)
            self._instant = ActiveTimeline(storage, self.state.format).complete(
                self._instant, content, completion_time(self.state, self._instant)
            )
        finally:
            storage.delete(LOCK)
            storage.delete(LOCK)
        storage.delete(heartbeat_file(timed))
        storage.delete_tree(marker_folder(timed))

    def _check_conflicts(self, metadata: HoodieCommitMetadata) -> None:
        """With every commit after the last that was completed when it began, as `SimpleConcurrentFileWritesConflictResolutionStrategy`."""
        mine, now, last = _groups(metadata), self.state.refresh(), self.state.timeline.completed().writes().last()
        for instant in now.timeline.completed().writes().after(now.order.moment(last.requested_time) if last else ""):
            both = mine & _groups(now.commit_metadata(instant))
            if both:
                raise HudiConflictError(f"{instant.requested_time} wrote {sorted(both)}, too")

    def _check_alive(self) -> None:
        entry = self.state.storage.head(heartbeat_file(self.instant_time))
        if entry is None or time.time() * 1000 - entry.modified_ms > _TOLERATED_MS:
            raise HudiConflictError(f"the heartbeat of {self.instant_time} has expired")


def _groups(metadata: HoodieCommitMetadata) -> set[tuple[str, str]]:
    written = {(stat.partition_path or "", stat.file_id or "") for stat in metadata.write_stats()}
    replaced = metadata.partition_to_replace_file_ids or {}
    return written | {(path, group) for path, groups in replaced.items() for group in groups}


def _lock(storage: Storage) -> None:
    while not _locked(storage):
        time.sleep(_PAUSE_SECONDS)


def _locked(storage: Storage) -> bool:
    try:
        storage.create(LOCK, b"")
    except StoredFileExistsError:
        return False
    return True


def _check_nobody_seems_dead(state: TableState) -> None:
    """What Hudi's lazy cleaning would do to a live writer of this engine: take back what is pending without a heartbeat."""
    for instant in state.timeline.pending().writes():
        if is_plan(state, instant) or state.storage.head(heartbeat_file(instant.requested_time)) is not None:
            continue
        again = state.refresh().timeline.pending().writes()
        turns = HERE.turns
        gone = turns is not None and any(actor.dead for actor in turns.actors.values())
        still = again.contains(instant.requested_time) and state.storage.head(heartbeat_file(instant.requested_time)) is None
        expect(gone or not still, f"Hudi would take {instant} back, whose writer is alive")


@contextmanager
def begin(storage: Storage, **given: Any) -> Iterator[Transaction]:
    """In the place of `commit.transaction.begin`: for actors of that name without the lock, and nothing is abandoned."""
    if HERE.actor is None or not HERE.actor.name.startswith(NAME):
        with _real_begin(storage, **given) as transaction:
            yield transaction
        return
    state = TableState.load(storage)
    _check_nobody_seems_dead(state)
    yield _HudiTransaction(state)


def upserts(*each: list[Row]) -> Act:
    """One write after the other, each again where it is refused."""

    def act(me: Me) -> None:
        for rows in each:
            _upsert(me, rows)

    return act


def _upsert(me: Me, rows: list[Row]) -> None:
    for _ in range(_REPEATED):
        if _is_written(me, rows):
            return
    raise AssertionError(f"Hudi was refused {_REPEATED} times: {me.failed}")


def _is_written(me: Me, rows: list[Row]) -> bool:
    write = me.oracle.begins(me.name, "upsert of Hudi", changed(*rows))
    try:
        result = me.table.upsert(batch(rows))
    except HudiConflictError as error:
        me.oracle.failed(write, error)
        me.failed.append(error)
        return False
    me.oracle.succeeded(write, result.instant)
    return True
