"""The checker is worth something: with each of these faults planted in the engine it finds a violation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

import lakehouse_engine.commit.deletion as deletion
import lakehouse_engine.commit.locked as locked
import lakehouse_engine.commit.metadata_table as metadata_table
import lakehouse_engine.commit.publish as publish
import lakehouse_engine.commit.restore.execute as restore_execute
import lakehouse_engine.commit.rollback.execute as rollback_execute
import lakehouse_engine.commit.rollback.recover as rollback_recover
import lakehouse_engine.services.archive.execute as archive_execute
import lakehouse_engine.services.archive.merge as archive_merge
import lakehouse_engine.services.archive.plan as archive_plan
import lakehouse_engine.services.clean.execute as clean_execute
import lakehouse_engine.services.clean.plan as clean_plan
import lakehouse_engine.services.executor.execution as service_execution
import lakehouse_engine.undo.savepoint as savepoint
import lakehouse_engine.write.plan.cow as plan_cow
import lakehouse_engine.write.tasks.base_files as tasks
from lakehouse_engine.commit.table_clock import completion_time
from lakehouse_engine.errors import CommitOutcomeUnknownError, StorageError
from lakehouse_engine.format.file_names import marker_folder
from lakehouse_engine.model.instant import Instant, State
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.archived import ArchivedTimeline
from lakehouse_engine.timeline.clock import InstantClock
from lakehouse_engine.write.operation import _Steps
from tests.crash.checker import check_rows, look
from tests.crash.harness import Harness, check_readings
from tests.crash.scenarios import CASES, CASES_OF_9, COLUMNS, Case, copy_of, open_table

EACH_VERSION = pytest.mark.parametrize("version", ["", ", v9"], ids=["v6", "v9"])
BY_NAME = {str(case): case for case in (*CASES, *CASES_OF_9)}
Patch = pytest.MonkeyPatch


def commits_before_its_data(patch: Patch) -> None:
    original = _Steps._commit

    def commit(write: Any, statuses: Any, **arguments: Any) -> Any:
        storage = write.transaction.state.storage
        held = {status.stat.path: storage.read(status.stat.path) for status in statuses}
        for path in held:
            storage.delete(path)
        patch.setattr(publish, "_remove_unnamed", lambda storage, time, metadata: None)
        patch.setattr(publish, "check_seen", lambda state, time, metadata: 0)
        result = original(write, statuses, **arguments)
        for path, data in held.items():
            storage.overwrite(path, data)
        return result

    patch.setattr(_Steps, "_commit", commit)


def rollback_keeps_the_data(patch: Patch) -> None:
    patch.setattr(rollback_execute, "delete_files_of", lambda storage, time, paths: [])


def rollback_deletes_the_instant_first(patch: Patch) -> None:
    original = rollback_execute._delete

    def delete(state: Any, plan: Any, time: str) -> Any:
        target = plan.instant_to_rollback
        timeline = ActiveTimeline(state.storage, state.format)
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
    patch.setattr(ActiveTimeline, "_expect_no_other_completion", lambda self, completed: None)


def unknown_outcome_is_cleaned_up(patch: Patch) -> None:
    def complete(self: ActiveTimeline, instant: Instant, content: bytes, completed_at: str | None = None) -> Instant:
        completed = replace(instant.at(State.COMPLETED), completed_at=completed_at)
        self.storage.create(self.path(completed), content)
        return completed

    def delete_pending(self: ActiveTimeline, instant: Instant) -> None:
        for state in (State.INFLIGHT, State.REQUESTED):
            self.delete(instant.at(state))

    patch.setattr(ActiveTimeline, "complete", complete)
    patch.setattr(ActiveTimeline, "delete_pending", delete_pending)


def no_markers_and_no_listing(patch: Patch) -> None:
    original = tasks.announce

    def announce(context: Any, file: Any, kind: Any) -> None:
        original(context, file, kind)
        for entry in context.storage.walk(marker_folder(context.instant_time)):
            if ".marker." in entry.path:
                context.storage.delete(entry.path)
        context.storage.overwrite(f"{marker_folder(context.instant_time)}/MARKERS.type", b"DIRECT")

    patch.setattr(tasks, "announce", announce)


def strays_of_the_wrong_side(patch: Patch) -> None:
    """The commit removes the files that its stats name, once it has looked for them."""

    def remove(state: Any, time: str, metadata: Any) -> int:
        publish.delete_files_of(state.storage, time, [stat.path for stat in metadata.write_stats()])
        return 0

    patch.setattr(publish, "check_seen", remove)


def nothing_is_rolled_back(patch: Patch) -> None:
    patch.setattr(locked, "roll_back_dead_writes", lambda state, lost: state)


def leftovers_stay(patch: Patch) -> None:
    patch.setattr(locked, "remove_leftovers", lambda state: None)


def metadata_table_stays(patch: Patch) -> None:
    patch.setattr(locked, "join_all", lambda state: state)


def files_go_before_the_property_that_names_them(patch: Patch) -> None:
    """And once they are gone nobody looks at the property."""
    original = metadata_table.drop_metadata_table

    def drop(state: Any) -> Any:
        if not state.storage.list(".hoodie/metadata"):
            return state
        state.storage.delete_tree(".hoodie/metadata")
        return original(state, "it is a mutant's")

    patch.setattr(locked, "join_all", drop)


def published_commit_fails_on_its_markers(patch: Patch) -> None:
    """And is taken back then."""
    original = publish.Publication._complete

    def complete(self: Any, state: Any, inflight: Instant, content: bytes) -> Instant:
        completed = original(self, state, inflight, content)
        self.may_be_done = False
        state.storage.delete_tree(marker_folder(inflight.requested_time))
        return completed

    patch.setattr(publish.Publication, "_complete", complete)


def moved_rows_stay_behind(patch: Patch) -> None:
    original = plan_cow.CowPlan._merge
    patch.setattr(plan_cow.CowPlan, "_merge", lambda self, number, change: original(self, number, _without_deletes(change)))


def _without_deletes(change: Any) -> Any:
    change.deletes = []
    return change


def clean_ignores_savepoints(patch: Patch) -> None:
    for module in (clean_plan, clean_execute, deletion):
        patch.setattr(module, "protected_files", lambda state: {})


def clean_takes_the_newest_slices(patch: Patch) -> None:
    patch.setattr(clean_plan._Sieve, "_superfluous", lambda self, group: [version for version in group.versions if version.is_committed])
    patch.setattr(deletion, "needed_files", lambda state, partitions: {})


def savepoint_lists_base_files_only(patch: Patch) -> None:
    original = savepoint.pins

    def pins(state: Any, target: str, slices: Any) -> Any:
        parts = original(state, target, slices).items()
        return {name: replace(part, savepoint_data_file=_base_files(part.savepoint_data_file)) for name, part in parts}

    patch.setattr(savepoint, "pins", pins)


def _base_files(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name.endswith(".parquet"))


def savepoint_is_published_before_its_files_are_known(patch: Patch) -> None:
    patch.setattr(savepoint, "pins", lambda state, target, slices: {})


def archive_removes_completed_files_first(patch: Patch) -> None:
    original = ActiveTimeline.delete_all

    def remove(state: Any, instants: Any, files: Any) -> None:
        timeline = ActiveTimeline(state.storage, state.format)
        states = [found for instant in instants for found, _ in files[archive_execute._key(instant)]]
        original(timeline, (found for found in states if found.is_completed))
        original(timeline, (found for found in states if not found.is_completed))

    patch.setattr(archive_execute, "_remove", remove)


def archive_removes_what_it_merges_before_it_writes(patch: Patch) -> None:
    original = archive_merge._replace

    def replace(archive: ArchivedTimeline, path: str, sources: Mapping[str, Any]) -> None:
        archive_merge.remove_merged(archive, sources)
        original(archive, path, sources)

    patch.setattr(archive_merge, "_replace", replace)


def archive_removes_before_it_writes(patch: Patch) -> None:
    original = archive_execute.execute_archive

    def execute(state: Any, instants: Any, options: Any) -> tuple[str, ...]:
        archive_execute._remove(state, instants, archive_execute._state_files(state))
        # What they wrote cannot be read any more.
        patch.setattr(archive_execute, "keep_savepointed", lambda state: None)
        patch.setattr(archive_execute, "write_checkpoint", lambda state, boundary, number: "")
        return original(state, (), options)

    patch.setattr("lakehouse_engine.services.archive.service.execute_archive", execute)


def replace_commit_is_archived_early(patch: Patch) -> None:
    patch.setattr(archive_plan, "has_replaced_files", lambda state, instant: False)


def restore_has_no_plan(patch: Patch) -> None:
    """Whoever comes next does not know of it."""

    def forget(state: Any, instant: Instant) -> Any:
        ActiveTimeline(state.storage, state.format).delete_pending(instant)
        return state.refresh()

    patch.setattr(locked, "resume_restore", forget)


def restore_deletes_files_of_published_commits(patch: Patch) -> None:
    original, traces = restore_execute._Restore.unpublish, restore_execute._Restore.remove_traces
    plans: list[Any] = []

    def late(self: Any) -> None:
        original(self, plans[-1])
        traces(self)

    patch.setattr(restore_execute._Restore, "unpublish", lambda self, plan: plans.append(plan))
    patch.setattr(restore_execute._Restore, "remove_traces", late)


def rollback_deletes_files_of_a_published_commit(patch: Patch) -> None:
    """The completed file goes after the data."""
    original = rollback_execute.execute_rollback

    def execute(state: Any, rollback: Instant, plan: Any) -> Any:
        target = plan.instant_to_rollback
        [completed] = [one for one in state.timeline.completed().writes() if one.requested_time == target.commit_time]
        path = f"{state.format.timeline_folder}/{state.format.file_name(completed)}"
        if state.storage.head(path) is None:
            state.storage.create(path, state.format.encode_commit(state.commit_metadata(completed)))
            rollback_execute._delete(state, plan, target.commit_time)
            state.storage.delete(path)
        return original(state, rollback, plan)

    patch.setattr("lakehouse_engine.undo.rollback.execute_rollback", execute)


def dead_compactions_leave_their_files(patch: Patch) -> None:
    def take_back(state: Any, instant: Instant, *, of_dead: bool = False) -> None:
        ActiveTimeline(state.storage, state.format).delete(Instant(instant.requested_time, instant.action, State.INFLIGHT))
        state.storage.delete_tree(marker_folder(instant.requested_time))

    patch.setattr(service_execution, "take_back", take_back)


MUTANTS: list[tuple[Callable[[Patch], None], str]] = [
    (commits_before_its_data, "upsert, cow"),
    (rollback_keeps_the_data, "upsert, cow"),
    (rollback_keeps_the_data, "upsert, mor"),
    (rollback_deletes_the_instant_first, "upsert, cow"),
    (rollback_deletes_what_the_commit_before_wrote, "upsert, cow"),
    (creation_overwrites, "bulk insert, cow"),
    (unknown_outcome_is_cleaned_up, "upsert, cow"),
    (unknown_outcome_is_cleaned_up, "upsert, mor"),
    (no_markers_and_no_listing, "insert, cow"),
    (strays_of_the_wrong_side, "bulk insert, cow"),
    (nothing_is_rolled_back, "insert, cow"),
    (nothing_is_rolled_back, "upsert, mor"),
    (leftovers_stay, "insert, cow"),
    (metadata_table_stays, "metadata table drop, then upsert, cow"),
    (files_go_before_the_property_that_names_them, "metadata table drop, then upsert, cow"),
    (published_commit_fails_on_its_markers, "insert, cow"),
    (moved_rows_stay_behind, "upsert, cow"),
    (clean_ignores_savepoints, "clean, cow"),
    (clean_takes_the_newest_slices, "clean, mor"),
    (savepoint_lists_base_files_only, "savepoint, mor"),
    (savepoint_is_published_before_its_files_are_known, "savepoint, cow"),
    (archive_removes_completed_files_first, "archive, mor"),
    (archive_removes_before_it_writes, "archive, cow"),
    (archive_removes_what_it_merges_before_it_writes, "archive that merges, cow"),
    (replace_commit_is_archived_early, "archive, cow"),
    (restore_has_no_plan, "restore, cow"),
    (restore_deletes_files_of_published_commits, "restore, mor"),
    (rollback_deletes_files_of_a_published_commit, "rollback, mor"),
    (dead_compactions_leave_their_files, "compaction run, mor"),
]


@EACH_VERSION
@pytest.mark.parametrize(("mutant", "name"), MUTANTS, ids=lambda value: value if isinstance(value, str) else value.__name__)
def test_mutant_is_caught(mutant: Callable[[Patch], None], name: str, version: str, monkeypatch: Patch) -> None:
    if version and mutant is archive_removes_what_it_merges_before_it_writes:
        pytest.skip("files of the history of later versions are merged beside those that count")
    harness = Harness(BY_NAME[name + version])
    mutant(monkeypatch)
    with pytest.raises(AssertionError) as caught:
        harness.check_all()
    print(f"{mutant.__name__}: {caught.value}"[:400])


def check_savepoint_beside_a_clean(name: str) -> None:
    """A clean dies with its plan written; then an older commit, whose files are in the plan, is savepointed; then the clean goes on."""
    case = BY_NAME[name]
    start, checked = case.setup(), 0
    calls = Harness(case).calls()
    planned = next(number for number, call in enumerate(calls, 1) if ".clean.inflight" in call)
    for time in start.instants[:-1]:
        storage = copy_of(start.storage)
        with pytest.raises(SimulatedCrash):
            case.act(open_table(FaultyStorage(storage, planned, Fault.CRASH_BEFORE)))
        table = open_table(storage)
        table.savepoint(time)
        table.clean(1)
        found = look(storage, COLUMNS)
        check_rows(found, start.rows)
        check_readings(storage, found, start.history)
        table.restore(time, cascade=True)
        check_rows(look(storage, COLUMNS), start.history[time])
        checked += 1
    assert checked


@EACH_VERSION
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_savepoint_made_after_the_plan_of_a_clean_keeps_its_files(table_type: str, version: str) -> None:
    check_savepoint_beside_a_clean(f"clean, {table_type}{version}")


@EACH_VERSION
def test_mutant_that_cleans_without_looking_for_savepoints_again_is_caught(version: str, monkeypatch: Patch) -> None:
    for module in (clean_execute, deletion):
        monkeypatch.setattr(module, "protected_files", lambda state: {})
    with pytest.raises(AssertionError):
        check_savepoint_beside_a_clean(f"clean, cow{version}")


class Interrupted(MemoryStorage):
    """Ctrl-C reaches the writer right behind the creation of a completed file, before it knows of it."""

    def create(self, path: str, data: bytes) -> None:
        super().create(path, data)
        if path.endswith(".commit"):
            raise KeyboardInterrupt


@EACH_VERSION
def test_interrupt_while_publishing_deletes_nothing_of_the_commit(version: str) -> None:
    check_interrupt(BY_NAME[f"upsert, cow{version}"])


@EACH_VERSION
def test_mutant_that_cleans_up_after_an_interrupt_is_caught(version: str, monkeypatch: Patch) -> None:
    def complete(self: publish.Publication, state: Any, inflight: Instant, content: bytes) -> Instant:
        return ActiveTimeline(state.storage, state.format).complete(inflight, content, completion_time(state, inflight))

    monkeypatch.setattr(publish.Publication, "_complete", complete)
    with pytest.raises(AssertionError):
        check_interrupt(BY_NAME[f"upsert, cow{version}"])


def check_interrupt(case: Case) -> None:
    storage = copy_of(case.setup().storage, Interrupted())
    with pytest.raises(KeyboardInterrupt):
        case.act(open_table(storage))
    left = look(storage, COLUMNS)
    check_rows(left, case.after())
    Harness(case).write_on(copy_of(storage), left, left.rows)


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


@EACH_VERSION
def test_commit_of_unknown_outcome_keeps_every_file(version: str) -> None:
    case = BY_NAME[f"upsert, cow{version}"]
    storage = copy_of(case.setup().storage, Blind())
    with pytest.raises(CommitOutcomeUnknownError):
        case.act(open_table(storage))
    storage.blind = False
    left = look(storage, COLUMNS)
    check_rows(left, case.after())
    Harness(case).write_on(copy_of(storage), left, left.rows)
