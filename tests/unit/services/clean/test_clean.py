"""Cleaning of tables that the engine wrote: what goes, what stays and why, and what the timeline says of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from lakehouse_engine.commit.deletion import delete_cleaned
from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import InstantCleanedError, ProtectedFileError
from lakehouse_engine.format.v6.plans_codec import decode_plan, encode_plan
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State, format_instant_time
from lakehouse_engine.model.plans import HoodieCleanerPlan, HoodieCleanMetadata
from lakehouse_engine.model.services import CleanResult
from lakehouse_engine.options import CleanOptions
from lakehouse_engine.services.clean import clean, clean_is_due
from lakehouse_engine.timeline.active import ActiveTimeline
from tests.support.local_table import LocalTable
from tests.unit.services.clean.tables import COW, MOR, TIMEOUT_MS, content, data_files, new_table, rows, updated
from tests.unit.services.versions import version

__all__ = ["version"]

VERSIONS = CleanOptions(policy="KEEP_LATEST_FILE_VERSIONS", versions_retained=1)


def run(table: LocalTable, options: CleanOptions | None = None, *, dry_run: bool = False) -> CleanResult:
    return clean(table.storage, options or CleanOptions(commits_retained=1), lock_timeout_ms=TIMEOUT_MS, dry_run=dry_run)


def record(table: LocalTable, instant: str | None) -> HoodieCleanMetadata:
    assert instant is not None
    timeline = ActiveTimeline(table.storage, table.state.format)
    return decode_plan(HoodieCleanMetadata, timeline.read(Instant(instant, Action.CLEAN, State.COMPLETED)))


def test_versions_older_than_the_one_at_the_earliest_retained_commit_are_deleted() -> None:
    table = new_table()
    instants = updated(table, 4)
    before = data_files(table)
    result = run(table, CleanOptions(commits_retained=2))
    gone = before - data_files(table)
    # As of the earliest retained commit, queries read its own version; the one before it may be in use by running ones.
    assert gone == {path for path in before if any(time in path for time in instants[:2])}
    assert set(result.files_deleted) == gone
    assert result.earliest_retained == instants[3]
    assert content(table) == {1: 4, 2: 0}
    assert content(table, as_of=instants[3]) == {1: 3, 2: 0}
    with pytest.raises(InstantCleanedError):
        content(table, as_of=instants[0])


def test_the_timeline_says_what_was_deleted_and_what_stays_readable() -> None:
    table = new_table()
    instants = updated(table, 4)
    result = run(table)
    found = record(table, result.instant)
    assert found.earliest_commit_to_retain == instants[4]
    assert found.last_completed_commit_timestamp == instants[4]
    assert found.total_files_deleted == len(result.files_deleted) == 3
    partition = found.partition_metadata["part=a"]
    assert sorted(partition.success_delete_files) == sorted(path.rpartition("/")[2] for path in result.files_deleted)
    assert (partition.policy, partition.is_partition_deleted, found.version) == ("KEEP_LATEST_COMMITS", False, 2)


def test_nothing_to_delete_leaves_no_instant_behind() -> None:
    table = new_table()
    table.insert(rows({1: 1}))
    table.insert(rows({2: 2}, "b"))
    result = run(table)
    assert result.instant is None
    assert not [instant for instant in table.state.timeline if instant.action is Action.CLEAN]


def test_a_dry_run_says_the_same_and_changes_nothing() -> None:
    table = new_table()
    updated(table, 4)
    before = {entry.path for entry in table.storage.walk()}
    planned = run(table, dry_run=True)
    assert {entry.path for entry in table.storage.walk()} == before
    assert set(planned.files_deleted) == set(run(table).files_deleted)
    assert planned.dry_run


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_what_a_savepoint_pins_stays_until_the_savepoint_is_deleted(table_type: str) -> None:
    table = new_table(table_type)
    first = table.insert(rows({1: 0, 2: 0})).instant
    table.savepoint(name="before")
    for number in range(1, 5):
        table.upsert(rows({1: number}))
        if table_type is MOR:
            table.compact()
    result = run(table, VERSIONS)
    assert any("savepoint" in note and str(first) in note for note in result.kept)
    assert result.files_deleted
    assert content(table, as_of=str(first)) == {1: 0, 2: 0}
    assert record(table, result.instant).extra_metadata["savepointed_timestamps"] == first  # type: ignore[index]
    table.delete_savepoint("before")
    assert run(table, VERSIONS).files_deleted
    assert content(table) == {1: 4, 2: 0}
    with pytest.raises(InstantCleanedError):
        content(table, as_of=str(first))


def test_after_a_savepoint_is_deleted_partitions_that_were_not_written_since_are_cleaned_too() -> None:
    table = new_table()
    updated(table, 1, "a")
    table.savepoint(table.instants()[0], name="old")
    updated(table, 3, "b", 11)
    assert {path.split("/")[0] for path in run(table).files_deleted} == {"part=b"}
    updated(table, 3, "c", 21)
    assert {path.split("/")[0] for path in run(table).files_deleted} == {"part=b", "part=c"}
    table.delete_savepoint("old")
    updated(table, 3, "d", 31)
    assert {path.split("/")[0] for path in run(table).files_deleted} == {"part=a", "part=c", "part=d"}


@pytest.mark.parametrize("options", [CleanOptions(commits_retained=1), VERSIONS])
def test_logs_go_with_their_slice_and_the_newest_slice_keeps_its_own(options: CleanOptions) -> None:
    table = new_table(MOR)
    updated(table, 2)
    table.compact()
    table.upsert(rows({2: 7}))
    table.upsert(rows({1: 9}))
    before = data_files(table)
    deleted = set(run(table, options).files_deleted)
    assert deleted == before - data_files(table)
    assert any(".log." in path for path in deleted)
    assert any(".log." in path for path in data_files(table))
    assert content(table) == {1: 9, 2: 7}


@pytest.mark.parametrize("options", [CleanOptions(commits_retained=1), VERSIONS])
def test_a_pending_compaction_keeps_what_it_will_read(options: CleanOptions) -> None:
    table = new_table(MOR)
    updated(table, 2)
    table.schedule_compaction()
    table.upsert(rows({1: 8}))
    result = run(table, options)
    assert result.files_deleted == ()
    table.run_compaction()
    assert content(table) == {1: 8, 2: 0}


def test_replaced_groups_go_once_their_replacing_commit_is_older_than_what_is_kept() -> None:
    table = new_table()
    updated(table, 1)
    replacing = table.insert_overwrite(rows({1: 5})).instant
    old = data_files(table) - {path for path in data_files(table) if str(replacing) in path}
    assert not set(run(table, CleanOptions(commits_retained=1)).files_deleted) & old
    table.insert(rows({9: 9}, "b"))
    assert set(run(table, CleanOptions(commits_retained=1)).files_deleted) == old
    assert content(table) == {1: 5, 9: 9}


def test_a_partition_in_which_nothing_is_left_is_deleted() -> None:
    table = new_table()
    updated(table, 1, "a", 11)
    updated(table, 1, "b")
    table.delete_partitions(["part=a"])
    table.insert(rows({3: 3}, "c"))
    result = run(table, CleanOptions(commits_retained=1))
    assert record(table, result.instant).partition_metadata["part=a"].is_partition_deleted
    assert table.storage.list("part=a") == []
    assert content(table) == {1: 1, 2: 0, 3: 3}


def test_files_of_a_write_that_is_not_committed_stay() -> None:
    table = new_table()
    updated(table, 3)
    stray = "part=a/11111111-1111-1111-1111-111111111111-0_0-1-0_20990101000000000.parquet"
    table.storage.create(stray, b"rows of a writer that is at work")
    run(table, VERSIONS)
    assert stray in data_files(table)


def test_the_door_refuses_what_no_clean_may_take() -> None:
    table = new_table()
    instants = updated(table, 2)
    table.savepoint(instants[0])
    by_instant = {time: next(path for path in data_files(table) if time in path) for time in instants}
    for time, reason in ((instants[2], "newest slice"), (instants[0], "savepoint")):
        with pytest.raises(ProtectedFileError, match=reason):
            delete_cleaned(table.state, [by_instant[instants[1]], by_instant[time]])
    for path in (".hoodie/hoodie.properties", "part=a/notes.txt"):
        with pytest.raises(ProtectedFileError, match="no data file"):
            delete_cleaned(table.state, [path])
    assert data_files(table) == set(by_instant.values())
    assert delete_cleaned(table.state, [by_instant[instants[1]]]) == [by_instant[instants[1]]]


def test_a_clean_is_due_when_commits_left_something_and_costs_no_listing() -> None:
    table = new_table()
    options = CleanOptions(commits_retained=2)
    table.insert(rows({1: 0}))
    table.insert(rows({2: 0}, "b"))
    table.insert(rows({3: 0}, "c"))
    assert not clean_is_due(table.state, options), "a table that only grows has nothing to clean"
    for number in range(3):
        table.upsert(rows({1: number}))
    assert clean_is_due(table.state, options)
    assert not clean_is_due(table.state, replace(options, max_commits=50))
    run(table, options)
    assert not clean_is_due(table.state, options)


class TestPendingClean:
    """A clean whose process died before it was done."""

    def pending(self, table: LocalTable, *, inflight: bool) -> HoodieCleanerPlan:
        state = table.state
        done = run(table)
        timeline = ActiveTimeline(table.storage, state.format)
        instant = str(done.instant)
        plan = timeline.read(Instant(instant, Action.CLEAN, State.REQUESTED))
        timeline.delete(Instant(instant, Action.CLEAN, State.COMPLETED))
        if not inflight:
            timeline.delete(Instant(instant, Action.CLEAN, State.INFLIGHT))
        return decode_plan(HoodieCleanerPlan, plan)

    @pytest.mark.parametrize("inflight", [False, True])
    def test_it_is_finished_by_the_next(self, inflight: bool) -> None:
        table = new_table()
        updated(table, 3)
        self.pending(table, inflight=inflight)
        assert clean_is_due(table.state, CleanOptions(commits_retained=10))
        result = run(table)
        assert not table.state.timeline.pending().instants
        assert len(result.files_deleted) == 2
        assert content(table) == {1: 3, 2: 0}

    def test_files_that_became_needed_since_its_plan_stay(self) -> None:
        table = new_table()
        instants = updated(table, 3)
        newest = next(path for path in data_files(table) if instants[3] in path)
        plan = self.pending(table, inflight=False)
        # As a restore may have it: what was an old version when the plan was made is the newest one now.
        files = dict(plan.file_paths_to_be_deleted_per_partition or {})
        files["part=a"] = (*files["part=a"], replace(files["part=a"][0], file_path=table.storage.uri(newest)))
        timeline = ActiveTimeline(table.storage, table.state.format)
        requested = table.state.timeline.pending().instants[0]
        timeline.delete(requested)
        timeline.create_requested(requested, encode_plan(replace(plan, file_paths_to_be_deleted_per_partition=files)))
        result = run(table)
        assert any(newest in note for note in result.kept)
        assert newest in data_files(table)
        assert content(table) == {1: 3, 2: 0}

    def test_a_torn_plan_has_not_begun_and_is_dropped(self) -> None:
        table = new_table()
        updated(table, 3)
        table.storage.create(".hoodie/20260101000000000.clean.requested", b"Obj")
        run(table)
        assert not table.state.timeline.contains("20260101000000000")


def test_incremental_reads_over_cleaned_versions_still_answer_or_say_so() -> None:
    table = new_table()
    instants = updated(table, 4)
    run(table)
    assert content(table, query="incremental", begin=instants[0]) == {1: 4}
    with pytest.raises(InstantCleanedError):
        content(table, query="incremental", begin="earliest", end=instants[1])


def test_hours_are_counted_by_the_clock_and_not_from_an_instant_that_is_ahead_of_it() -> None:
    """Of a program whose clock is 20 hours ahead: what was written a moment ago would be that old."""
    table = new_table()
    instants = updated(table, 2)
    state = table.state
    ahead = format_instant_time(datetime.now(UTC) + timedelta(hours=20))
    for step in (State.REQUESTED, State.INFLIGHT, State.COMPLETED):
        name = state.format.file_name(Instant(ahead, Action.COMMIT, step, ahead if step is State.COMPLETED else None))
        done = state.format.encode_commit(HoodieCommitMetadata()) if step is State.COMPLETED else b""
        table.storage.create(f"{state.format.timeline_folder}/{name}", done)
    result = run(table, CleanOptions(policy="KEEP_LATEST_BY_HOURS", hours_retained=1))
    assert (result.files_deleted, result.earliest_retained) == ((), instants[0])
    assert content(table, as_of=instants[0]) == {1: 0, 2: 0}
