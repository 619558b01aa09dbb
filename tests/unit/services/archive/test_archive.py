"""Archiving of tables that the engine wrote: what leaves, where it stops and why, and that nothing reads differently."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.errors import InstantCleanedError, OptionError
from lakehouse_engine.format.v6.archived_record import archived_commit
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.services import ArchiveResult
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.options import ArchiveOptions, CleanOptions, CompactionOptions
from lakehouse_engine.services.archive import archive, archive_is_due, plan
from lakehouse_engine.services.clean import clean
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.history import History
from lakehouse_engine.verify import verify
from lakehouse_engine.view.history import history
from tests.support.local_table import LocalTable
from tests.support.untouched import make_table, refused
from tests.unit.services.clean.tables import COW, MOR, TIMEOUT_MS, content, new_table, rows, times, twin_of, updated
from tests.unit.services.versions import version

__all__ = ["version"]

STATES = {TableVersion.SIX: ("requested", "inflight", "completed"), TableVersion.NINE: ("completed",)}
"""What is archived of each instant."""
CLEAN = CleanOptions(commits_retained=1)
COMPACTION = CompactionOptions(delta_commits=1)


def run(table: LocalTable, least: int = 2, most: int = 3, *, dry_run: bool = False, beyond: bool = True) -> ArchiveResult:
    options = ArchiveOptions(min_commits=least, max_commits=most, beyond_savepoint=beyond)
    return archive(table.storage, options, lock_timeout_ms=TIMEOUT_MS, clean=CLEAN, compaction=COMPACTION, dry_run=dry_run)


def archived(table: LocalTable) -> History:
    return table.state.archived_timeline


def readings(table: LocalTable, instants: list[str]) -> list[dict[int, int]]:
    """The snapshot, and the incremental read since each instant and since the start."""
    return [content(table), *(content(table, query="incremental", begin=begin) for begin in ["earliest", *instants])]


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_above_the_most_the_oldest_commits_leave_down_to_the_least_and_all_reads_stay(table_type: str) -> None:
    table = new_table(table_type)
    instants = updated(table, 5)
    before = readings(table, instants)
    result = run(table)
    assert result.archived == tuple(instants[:4])
    assert table.instants() == instants[4:]
    assert [instant.requested_time for instant in archived(table).instants()] == instants[:4]
    assert readings(table, instants) == before
    table.upsert(rows({2: 9}))
    assert content(table) == {1: 5, 2: 9}


def test_up_to_the_most_nothing_leaves() -> None:
    table = new_table()
    updated(table, 2)
    assert run(table) == ArchiveResult()
    assert not archive_is_due(table.state, ArchiveOptions(min_commits=2, max_commits=3), clean=CLEAN)


def test_whether_it_is_due_is_asked_without_opening_rollbacks_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked after each commit, and those of published writes stay for good."""
    table, options = new_table(), ArchiveOptions(min_commits=2, max_commits=3)
    updated(table, 1)
    for number in range(5):
        table.upsert(rows({1: number}))
        table.rollback()
    opened: list[object] = []
    monkeypatch.setattr(ActiveTimeline, "note", lambda self, kind, instant: opened.append(instant))
    assert not archive_is_due(table.state, options, clean=CLEAN)
    assert not opened
    updated(table, 4)
    assert archive_is_due(table.state, options, clean=CLEAN)


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_archiving_that_died_with_the_target_of_a_restore_loses_no_later_commit(table_type: str) -> None:
    """It was left on the active timeline for one that the restore had put there, and what came after it did not count any more."""
    table = new_table(table_type)
    instants = updated(table, 2)
    table.restore(to=instants[1])
    for number in range(5):
        table.upsert(rows({10 + number: number}, part=f"p{number}"))
    expected = content(table)
    for call in itertools.count(1):
        twin = twin_of(table.storage)
        faulty = LocalTable(FaultyStorage(twin, call, Fault.CRASH_BEFORE), lock_timeout_ms=TIMEOUT_MS)
        try:
            run(faulty)
            break
        except SimulatedCrash:
            died = LocalTable(twin, lock_timeout_ms=TIMEOUT_MS)
        assert content(died) == expected
        run(died, 20, 30)  # finishes it, and has nothing more to archive
        assert content(died) == expected
        died.upsert(rows({1: 99}))
        assert content(died) == {**expected, 1: 99}
    assert call > 5


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_savepoint_that_is_made_after_archiving_died_can_be_restored(table_type: str) -> None:
    table = new_table(table_type)
    instants = updated(table, 5)
    faulty = LocalTable(FaultyStorage(table.storage, 5, Fault.CRASH_BEFORE), lock_timeout_ms=TIMEOUT_MS)
    with pytest.raises(SimulatedCrash):
        run(faulty)
    assert set(instants) == set(table.instants())
    expected = content(table, as_of=instants[2])
    table.savepoint(instants[2], "kept")
    run(table, 20, 30)
    assert instants[2] not in table.instants()
    assert verify(table.state).ok
    table.restore("kept")
    assert content(table) == expected


def test_savepoints_that_are_passed_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table()
    for name in updated(table, 8):
        table.savepoint(name, f"s{name}")
    real, asked = plan.savepoint_metadata, []
    monkeypatch.setattr(plan, "savepoint_metadata", lambda state: asked.append(state) or real(state))
    assert sum(text.startswith("the savepoint 's") for text in run(table).kept) == 7
    assert len(asked) == 1


def test_a_dry_run_says_the_same_and_changes_nothing() -> None:
    table = new_table()
    updated(table, 5)
    before = {entry.path for entry in table.storage.walk()}
    planned = run(table, dry_run=True)
    assert {entry.path for entry in table.storage.walk()} == before
    assert planned.archived == run(table).archived
    assert planned.dry_run


def test_every_state_of_an_instant_is_archived_with_what_it_said(version: TableVersion) -> None:
    """In versions 8 and 9 the completed one, as Hudi has it."""
    table = new_table()
    instants = updated(table, 5)
    stats = {instant: table.state.commit_metadata(instant).partition_to_write_stats for instant in table.state.timeline.writes()}
    run(table)
    entries = list(archived(table).entries())
    assert [str(entry.instant).split(".")[2] for entry in entries] == list(STATES[version]) * 4
    for entry in entries:
        metadata = archived_commit(entry)
        assert (metadata is not None) == entry.instant.is_completed
        if metadata is not None:
            written = stats[entry.instant]
            assert {part: [stat.path for stat in found] for part, found in metadata.partition_to_write_stats.items()} == {
                part: [stat.path for stat in found] for part, found in written.items()
            }
    assert [entry.transition_time for entry in entries] == sorted(str(entry.transition_time) for entry in entries)
    shown = history(table.state, archived=True)
    assert [entry.instant for entry in shown] == sorted(instants, reverse=True)
    assert [entry.archived for entry in shown] == [False] * 2 + [True] * 4
    assert (shown[-1].inserts, shown[-2].updates) == (2, 1)


def test_time_travel_to_what_is_archived_names_the_earliest_instant_that_can_be_read() -> None:
    table = new_table()
    instants = updated(table, 5)
    run(table)
    with pytest.raises(InstantCleanedError, match=table.state.order.moment(instants[4])):
        content(table, as_of=instants[1])
    assert content(table, as_of=instants[4]) == {1: 4, 2: 0}


def test_incremental_reads_from_archived_time_include_it_and_up_to_archived_time_say_that_they_cannot() -> None:
    table = new_table()
    instants = [str(table.insert(rows({number: number}, f"p{number}")).instant) for number in range(6)]
    run(table)
    assert content(table, query="incremental", begin=instants[1]) == {2: 2, 3: 3, 4: 4, 5: 5}
    assert content(table, query="incremental", begin=instants[1], end=instants[4]) == {2: 2, 3: 3, 4: 4}
    with pytest.raises(InstantCleanedError):
        content(table, query="incremental", begin=instants[0], end=instants[2])


def test_a_range_of_which_all_instants_are_archived_is_read_up_to_a_savepoint() -> None:
    table = new_table(MOR)
    instants = updated(table, 2)
    table.savepoint(instants[2])
    expected = content(table, query="incremental", begin=instants[0], end=instants[2])
    updated(table, 5, "b", 11)
    run(table)
    assert instants[2] not in table.instants()
    assert content(table, query="incremental", begin=instants[0], end=instants[2]) == expected == {1: 2}


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_archiving_goes_past_a_savepoint_and_the_table_can_still_be_restored_to_it(table_type: str) -> None:
    table = new_table(table_type)
    updated(table, 1)
    table.savepoint(name="good")
    saved = table.instants()[-1]
    updated(table, 3, "b", 11)
    table.upsert(rows({1: 7}))
    run(table)
    clean(table.storage, CLEAN, lock_timeout_ms=TIMEOUT_MS)
    assert saved not in table.instants()
    assert content(table, as_of=saved) == {1: 1, 2: 0}
    table.restore("good")
    assert content(table) == {1: 1, 2: 0}
    table.upsert(rows({2: 5}))
    assert content(table) == {1: 1, 2: 5}
    updated(table, 4, "c", 21)
    result = run(table)
    assert saved in result.archived
    table.restore("good")
    assert content(table) == {1: 1, 2: 0}


def test_rows_of_commits_between_a_savepoint_and_the_active_timeline_stay_visible() -> None:
    table = new_table()
    for number in range(7):
        table.insert(rows({number: number}, f"p{number}"))
        if number in (1, 3):
            table.savepoint()
    run(table)
    # Hudi and hudi-rs hide files of archived instants that are newer than the first active commit, be it savepointed or not.
    assert len(table.instants()) == 2
    assert content(table) == {number: number for number in range(7)}
    table.restore("latest")
    assert content(table) == {number: number for number in range(4)}
    table.delete_savepoint("latest")
    assert content(table) == {number: number for number in range(4)}


def test_what_is_kept_aside_for_a_savepoint_goes_with_it() -> None:
    table = new_table()
    updated(table, 1)
    table.savepoint(name="good")
    updated(table, 4, "b", 11)
    run(table)
    assert table.storage.list(".hoodie/.aux/savepointed")
    table.delete_savepoint("good")
    run(table)
    assert table.storage.list(".hoodie/.aux/savepointed") == []


def test_archiving_stops_at_the_first_savepoint_if_told_so() -> None:
    table = new_table()
    instants = updated(table, 5)
    table.savepoint(instants[1], name="good")
    result = run(table, beyond=False)
    assert result.archived == (instants[0],)
    assert result.kept == (f"archiving stops at the savepoint 'good' of {instants[1]}",)


def test_archiving_stops_at_a_pending_compaction() -> None:
    table = new_table(MOR)
    instants = updated(table, 1)
    pending = table.schedule_compaction().instant
    instants += [str(table.upsert(rows({1: number})).instant) for number in range(5)]
    result = run(table)
    assert result.archived == (instants[0],)
    assert result.kept == (f"archiving stops at pending compaction {pending}",)
    table.run_compaction()
    assert content(table) == {1: 4, 2: 0}


def test_archiving_stops_at_a_replace_commit_until_what_it_replaced_is_cleaned() -> None:
    table = new_table()
    instants = updated(table, 1)
    replacing = str(table.insert_overwrite(rows({1: 5})).instant)
    others = updated(table, 4, "b", 11)
    result = run(table)
    assert result.archived == tuple(instants)
    assert result.kept == (f"archiving stops at the replacecommit {replacing}: files that it replaced are not cleaned yet",)
    assert content(table) == {1: 5, 11: 4, 12: 0}
    clean(table.storage, CLEAN, lock_timeout_ms=TIMEOUT_MS)
    assert run(table).archived[0] == replacing
    assert content(table) == {1: 5, 11: 4, 12: 0}
    assert times(others, table) == others[-2:]


def test_delta_commits_that_are_counted_for_the_next_compaction_stay() -> None:
    table = new_table(MOR)
    instants = updated(table, 8)
    options = ArchiveOptions(min_commits=2, max_commits=3)
    result = archive(table.storage, options, lock_timeout_ms=TIMEOUT_MS, clean=CLEAN, compaction=CompactionOptions(delta_commits=5))
    assert result.archived == tuple(instants[:-5])
    assert result.kept == (f"archiving stops at the deltacommit {instants[-5]}: the next compaction is reckoned from it",)


def test_cleans_leave_on_their_own_count_and_not_before_the_commits_that_they_cleaned(version: TableVersion) -> None:
    table = new_table()
    table.insert(rows({1: 0}))
    for number in range(8):
        table.upsert(rows({1: number}))
        clean(table.storage, CLEAN, lock_timeout_ms=TIMEOUT_MS)
    cleans = [instant.requested_time for instant in table.state.timeline if instant.action is Action.CLEAN]
    result = run(table)
    left = [instant.requested_time for instant in table.state.timeline if instant.action is Action.CLEAN]
    assert left == cleans[-2:]
    assert set(cleans[:-2]) < set(result.archived)
    if version is TableVersion.SIX:
        order = [str(entry.instant.action) for entry in archived(table).entries()]
        assert order == sorted(order), "cleans come first in the file"


def test_fewer_commits_than_a_clean_keeps_are_refused() -> None:
    with pytest.raises(OptionError, match=r"hoodie.keep.min.commits=2 is not more than hoodie.clean.commits.retained=2"):
        archive(
            new_table().storage,
            ArchiveOptions(min_commits=2, max_commits=3),
            lock_timeout_ms=TIMEOUT_MS,
            clean=CleanOptions(commits_retained=2),
        )


@pytest.mark.parametrize("version", [TableVersion.SIX], indirect=True)
def test_blocks_are_closed_after_the_instant_that_fills_them() -> None:
    table = new_table()
    updated(table, 9)
    options = ArchiveOptions(min_commits=2, max_commits=3, batch=4)
    (path,) = archive(table.storage, options, lock_timeout_ms=TIMEOUT_MS, clean=CLEAN).files_written
    # Eight instants of three records: two of them reach the four of a block.
    assert table.storage.read(path).count(b"#HUDI#") == 4
    assert path.endswith("/.commits_.archive.1_1-0-1")


FAULTS = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_crash_anywhere_changes_no_reading_and_the_next_archiving_finishes(fault: Fault, version: TableVersion) -> None:
    table = new_table()
    instants = updated(table, 2)
    table.savepoint(instants[1])
    instants += updated(table, 3, "b", 11)
    expected, source = readings(table, instants), table.storage
    assert isinstance(source, MemoryStorage)
    for call in itertools.count(1):
        inner = twin_of(source)
        try:
            run(LocalTable(FaultyStorage(inner, call, fault)))
            break
        except SimulatedCrash:
            survivor = LocalTable(inner)
        assert readings(survivor, instants) == expected
        assert not survivor.state.timeline.pending().instants
        run(survivor)
        assert survivor.instants() == instants[-2:]
        assert [instant.requested_time for instant in archived(survivor).instants() if instant.action.is_write] == instants[:-2]
        assert len(list(archived(survivor).entries())) == len(STATES[version]) * len(instants[:-2])
        assert [entry.instant for entry in history(survivor.state, archived=True) if entry.action == "commit"] == instants[::-1]
        assert readings(survivor, instants) == expected
    assert call > 10


def test_what_stays_active_follows_what_a_clean_keeps_unless_it_is_said() -> None:
    def read(**given: object) -> tuple[int, int]:
        options = ArchiveOptions.read({f"hoodie.{key.replace('_', '.')}": value for key, value in given.items()})
        return options.min_commits, options.max_commits

    assert read() == (20, 30)
    assert read(clean_commits_retained=4) == (20, 30)
    assert read(clean_commits_retained=50) == (60, 70)
    assert read(cleaner_commits_retained=50, keep_max_commits=65) == (60, 65)
    assert read(clean_commits_retained=50, clean_policy="KEEP_LATEST_FILE_VERSIONS") == (20, 30)


def test_a_write_that_could_never_archive_is_refused_before_anything_is_changed(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string())])
    table = make_table(tmp_path / "t", schema)
    rows = pa.table({"id": ["x"]}, schema=schema)
    few = {"hoodie.keep.min.commits": 5, "hoodie.keep.max.commits": 6}
    refused(tmp_path, OptionError, lambda: table.upsert(rows, options=few), match="is not more than hoodie.clean.commits.retained=10")
    assert table.upsert(rows, options={**few, "hoodie.archive.automatic": False}).inserts == 1
    assert table.upsert(rows, options={**few, "hoodie.clean.commits.retained": 4}).updates == 1
