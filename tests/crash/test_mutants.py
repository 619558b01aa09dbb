"""The checker is worth something: with each of these faults planted in the engine it finds a violation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lakehouse_engine.actions.metadata_table as metadata_table
import lakehouse_engine.actions.rollback.execute as rollback_execute
import lakehouse_engine.actions.rollback.recover as rollback_recover
import lakehouse_engine.actions.transaction as transaction
import lakehouse_engine.actions.write.plan_cow as write_plan
import lakehouse_engine.actions.write.tasks as tasks
from lakehouse_engine.actions.write.operation import _Write
from lakehouse_engine.errors import CommitOutcomeUnknownError, StorageError
from lakehouse_engine.format.file_names import marker_folder
from lakehouse_engine.model.instant import Instant, State
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.clock import InstantClock
from tests.crash.checker import check_rows, look
from tests.crash.harness import FAULTS, calls_of, check_point, check_recovery, write_on
from tests.crash.scenarios import COLUMNS, SCENARIOS, Scenario, copy_of, open_table

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
Patch = pytest.MonkeyPatch


def check_all(scenario: Scenario, start: MemoryStorage) -> None:
    """Every point of a write in depth one, then in depth two."""
    calls = len(calls_of(scenario, start))
    for call in range(1, calls + 1):
        for fault in FAULTS:
            check_point(scenario, start, call, fault)
    for call in range(1, calls + 1):
        check_recovery(scenario, start, call)


def commits_before_its_data(patch: Patch) -> None:
    original = _Write._commit

    def commit(write: Any, statuses: Any, **arguments: Any) -> Any:
        storage = write.transaction.state.storage
        held = {status.stat.path: storage.read(status.stat.path) for status in statuses}
        for path in held:
            storage.delete(path)
        patch.setattr(type(write.transaction), "_remove_strays", lambda self, metadata: None)
        result = original(write, statuses, **arguments)
        for path, data in held.items():
            storage.overwrite(path, data)
        return result

    patch.setattr(_Write, "_commit", commit)


def rollback_keeps_the_data(patch: Patch) -> None:
    patch.setattr(rollback_execute, "delete_files_of", lambda storage, time, paths: [])


def rollback_deletes_the_instant_first(patch: Patch) -> None:
    original = rollback_execute._delete

    def delete(state: Any, plan: Any, time: str) -> Any:
        target = plan.instant_to_rollback
        timeline = ActiveTimeline(state.storage, state.layout)
        timeline.delete_pending(Instant(time, rollback_execute.Action(target.action), State.INFLIGHT))
        state.storage.delete_tree(marker_folder(time))
        return original(state, plan, time)

    def without_plan(state: Any, instant: Instant) -> None:
        plan = rollback_recover.plan_rollback(state, instant)
        delete(state, plan, instant.requested_time)

    patch.setattr(rollback_recover, "_roll_back", without_plan)


def rollback_deletes_what_the_commit_before_wrote(patch: Patch) -> None:
    def delete_wrong(storage: Any, time: str, paths: Any) -> list[str]:
        wrong = [entry.path for entry in storage.walk() if entry.path.endswith(".parquet") and time not in entry.path]
        return [path for path in wrong[:1] if storage.delete(path)]

    patch.setattr(rollback_execute, "delete_files_of", delete_wrong)


def creation_overwrites(patch: Patch) -> None:
    """No put-if-absent, and nobody looks first: with a clock that stands still, a commit gets the instant of the one before."""
    patch.setattr(MemoryStorage, "create", lambda self, path, data: self.overwrite(path, data))
    patch.setattr(InstantClock, "next", lambda self, timeline: timeline.last().requested_time)
    patch.setattr(ActiveTimeline, "_expect_no_completed", lambda self, instant: None)


def unknown_outcome_is_cleaned_up(patch: Patch) -> None:
    def complete(self: ActiveTimeline, instant: Instant, content: bytes) -> Instant:
        self.storage.create(self._path(instant.at(State.COMPLETED)), content)
        return instant.at(State.COMPLETED)

    def delete_pending(self: ActiveTimeline, instant: Instant) -> None:
        for state in (State.INFLIGHT, State.REQUESTED):
            self.delete(instant.at(state))

    patch.setattr(ActiveTimeline, "complete", complete)
    patch.setattr(ActiveTimeline, "delete_pending", delete_pending)


def no_markers_and_no_listing(patch: Patch) -> None:
    original = tasks.announce

    def announce(context: Any, file: Any, kind: Any) -> None:
        original(context, file, kind)
        context.storage.delete_tree(marker_folder(context.instant_time))
        context.storage.create(f"{marker_folder(context.instant_time)}/MARKERS.type", b"DIRECT")

    patch.setattr(tasks, "announce", announce)


def strays_of_the_wrong_side(patch: Patch) -> None:
    """The commit removes the files that its stats name."""

    def remove(self: Any, metadata: Any) -> None:
        written = [stat.path for stat in metadata.write_stats()]
        transaction.delete_files_of(self.state.storage, self.instant_time, written)

    patch.setattr(transaction.Transaction, "_remove_strays", remove)


def nothing_is_rolled_back(patch: Patch) -> None:
    patch.setattr(transaction, "roll_back_dead_writes", lambda state: state)


def leftovers_stay(patch: Patch) -> None:
    patch.setattr(transaction, "remove_leftovers", lambda state: None)


def metadata_table_stays(patch: Patch) -> None:
    patch.setattr(transaction, "drop_metadata_table", lambda state: state)


def files_go_before_the_property_that_names_them(patch: Patch) -> None:
    """And once they are gone nobody looks at the property."""
    original = metadata_table.drop_metadata_table

    def drop(state: Any) -> Any:
        if not state.storage.list(".hoodie/metadata"):
            return state
        state.storage.delete_tree(".hoodie/metadata")
        return original(state)

    patch.setattr(transaction, "drop_metadata_table", drop)


def published_commit_fails_on_its_markers(patch: Patch) -> None:
    def complete(self: Any, metadata: Any) -> None:
        self._remove_strays(metadata)
        self._instant = self._timeline.complete(self._instant, self.state.layout.encode_commit(metadata))
        self.state.storage.delete_tree(marker_folder(self.instant_time))

    patch.setattr(transaction.Transaction, "complete", complete)


def moved_rows_stay_behind(patch: Patch) -> None:
    original = write_plan._Plan._merge
    patch.setattr(write_plan._Plan, "_merge", lambda self, number, change: original(self, number, _without_deletes(change)))


def _without_deletes(change: Any) -> Any:
    change.deletes = []
    return change


MUTANTS: list[tuple[Callable[[Patch], None], str]] = [
    (commits_before_its_data, "upsert"),
    (rollback_keeps_the_data, "upsert"),
    (rollback_deletes_the_instant_first, "upsert"),
    (rollback_deletes_what_the_commit_before_wrote, "upsert"),
    (creation_overwrites, "bulk insert"),
    (unknown_outcome_is_cleaned_up, "upsert"),
    (no_markers_and_no_listing, "insert"),
    (strays_of_the_wrong_side, "bulk insert"),
    (nothing_is_rolled_back, "insert"),
    (leftovers_stay, "insert"),
    (metadata_table_stays, "metadata table drop, then upsert"),
    (files_go_before_the_property_that_names_them, "metadata table drop, then upsert"),
    (published_commit_fails_on_its_markers, "insert"),
    (moved_rows_stay_behind, "upsert"),
]


@pytest.mark.parametrize(("mutant", "scenario"), MUTANTS, ids=lambda value: value if isinstance(value, str) else value.__name__)
def test_mutant_is_caught(mutant: Callable[[Patch], None], scenario: str, monkeypatch: Patch) -> None:
    start = BY_NAME[scenario].setup()
    mutant(monkeypatch)
    with pytest.raises(AssertionError) as caught:
        check_all(BY_NAME[scenario], start)
    print(f"{mutant.__name__}: {caught.value}"[:300])


class Interrupted(MemoryStorage):
    """Ctrl-C reaches the writer right behind the creation of a completed file, before it knows of it."""

    def create(self, path: str, data: bytes) -> None:
        super().create(path, data)
        if path.endswith(".commit"):
            raise KeyboardInterrupt


def test_interrupt_while_publishing_deletes_nothing_of_the_commit() -> None:
    check_interrupt(BY_NAME["upsert"])


def test_mutant_that_cleans_up_after_an_interrupt_is_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(
        transaction.Transaction,
        "_publish",
        lambda self, instant, content: self._timeline.complete(instant, content),
    )
    with pytest.raises(AssertionError):
        check_interrupt(BY_NAME["upsert"])


def check_interrupt(scenario: Scenario) -> None:
    storage = copy_of(scenario.setup(), Interrupted())
    with pytest.raises(KeyboardInterrupt):
        scenario.act(open_table(storage))
    left = look(storage, COLUMNS)
    check_rows(left, scenario.after)
    write_on(copy_of(storage), left)


class Blind(MemoryStorage):
    """The answer to the creation of a completed file is lost, and then the storage cannot be read."""

    def __init__(self) -> None:
        super().__init__()
        self.blind = False

    def create(self, path: str, data: bytes) -> None:
        super().create(path, data)
        if path.endswith(".commit"):
            self.blind = True
            raise StorageError("no answer", path=path)

    def read(self, path: str) -> bytes:
        if self.blind:
            raise StorageError("no answer", path=path)
        return super().read(path)


def test_commit_of_unknown_outcome_keeps_every_file() -> None:
    scenario = BY_NAME["upsert"]
    storage = copy_of(scenario.setup(), Blind())
    with pytest.raises(CommitOutcomeUnknownError):
        scenario.act(open_table(storage))
    storage.blind = False
    left = look(storage, COLUMNS)
    check_rows(left, scenario.after)
    write_on(copy_of(storage), left)
