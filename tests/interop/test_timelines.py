"""Timelines that we and Apache Hudi keep in turns: either reads what the other archived, cleaned and rolled back and goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine.errors import TimelineRestoredError
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.services import ArchiveResult
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline.archived import ArchivedTimeline
from tests.interop.client import HudiJudge
from tests.interop.continuation import HudiWriter
from tests.interop.shared import writer_of
from tests.model_based.restore_scenarios import Cell, rows
from tests.support.local_table import LocalTable
from tests.support.readers import assert_same_rows, read_with_hudi_rs

KINDS = pytest.mark.parametrize("merge_on_read", [False, True], ids=["cow", "mor"])


def check(cell: Cell, theirs: HudiWriter) -> None:
    ours = cell.read()
    assert_same_rows(theirs.read(), ours)
    assert_same_rows(read_with_hudi_rs(cell.path), ours)


def written(cell: Cell) -> dict[str, int]:
    """Rows that each commit of the active timeline put into files, as Hudi counts them."""
    state = cell.table.state
    found = {}
    for instant in state.timeline.completed().writes():
        stats = state.commit_metadata(instant).write_stats()
        found[instant.requested_time] = sum(stat.num_writes for stat in stats)
    return found


def archived_by_us(cell: Cell) -> list[str]:
    state = cell.table.state
    instants = ArchivedTimeline(cell.storage, state.format, state.config.archive_folder).instants()
    return [instant.requested_time for instant in instants if instant.action.is_write]


def in_history(cell: Cell) -> set[str]:
    """Instants of writes that people are shown as archived."""
    entries = HoodieTable.open(str(cell.path)).history(archived=True)
    return {entry.instant for entry in entries if entry.archived and entry.inserts is not None}


def check_archive(cell: Cell, theirs: HudiWriter, counts: dict[str, int]) -> None:
    """Both list all commits that left the active timeline, with the same numbers of rows."""
    gone = {instant: count for instant, count in counts.items() if instant not in written(cell)}
    assert len(gone) > 1
    assert set(archived_by_us(cell)) == in_history(cell) == set(gone)
    listed = {entry["commit_time"]: entry["total_records_written"] for entry in theirs.archived()}
    assert listed == gone


@KINDS
def test_hudi_reads_our_archive_and_we_what_it_archives_on_top(hudi: HudiJudge, merge_on_read: bool, tmp_path: Path) -> None:
    cell = Cell.create(tmp_path / "t", merge_on_read=merge_on_read, partitioned=True)
    theirs = writer_of(hudi, cell)
    cell.begin()
    cell.upsert(3)
    cell.table.rollback()
    for seed in (4, 5):
        cell.upsert(seed)
    if merge_on_read:
        cell.table.compact()
    cell.upsert(6)
    assert cell.table.clean(1).files_deleted
    cell.upsert(7)
    counts = written(cell)
    assert cell.table.archive(2, 3).archived
    check(cell, theirs)
    check_archive(cell, theirs, counts)

    # Hudi goes on, cleans on top of our clean and archives on top of our archive: our clean and rollback as well.
    theirs.upsert(rows([1, 2, 30], 8))
    theirs.upsert(rows([2, 3, 31], 9))
    if merge_on_read:
        theirs.compact("scheduleAndExecute")
    theirs.upsert(rows([3, 4], 10))
    theirs.clean(1)
    counts |= written(cell)
    theirs.archive(2, 3)
    assert len(written(cell)) < 4
    check(cell, theirs)
    check_archive(cell, theirs, counts)

    for seed in (11, 12, 13):
        cell.upsert(seed)
    counts |= written(cell)
    assert cell.table.archive(2, 3).archived
    check(cell, theirs)
    check_archive(cell, theirs, counts)


@KINDS
def test_we_go_on_from_what_hudi_archived(hudi: HudiJudge, merge_on_read: bool, tmp_path: Path) -> None:
    cell = Cell(tmp_path / "t", merge_on_read, partitioned=True)
    theirs = writer_of(hudi, cell)
    for seed in range(1, 7):
        theirs.upsert(rows(range(seed, seed + 6), seed))
        if merge_on_read and seed == 5:
            # What is not compacted yet Hudi does not archive.
            theirs.compact("scheduleAndExecute")
    counts = written(cell)
    theirs.archive(2, 3)
    check(cell, theirs)
    check_archive(cell, theirs, counts)
    for seed in (7, 8, 9):
        cell.upsert(seed)
    counts |= written(cell)
    cell.table.clean(1)
    assert cell.table.archive(2, 3).archived
    check(cell, theirs)
    check_archive(cell, theirs, counts)
    theirs.upsert(rows([2, 3, 50], 10))
    check(cell, theirs)


MERGES = {
    "hoodie.archive.merge.enable": "true",
    "hoodie.archive.merge.files.batch.size": "3",
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.automatic": "true",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.metadata.enable": "false",
    "hoodie.index.type": "SIMPLE",
}


@KINDS
def test_archives_are_merged_in_turns(hudi: HudiJudge, merge_on_read: bool, tmp_path: Path) -> None:
    """Hudi reads what we merged, also where that died half way, and merges it with its own; we read all of it and go on.

    Releases from 1.0 on read merged archives and merge none.
    """
    cell = Cell.create(tmp_path / "t", merge_on_read=merge_on_read, partitioned=True)
    theirs = writer_of(hudi, cell)
    counts: dict[str, int] = {}

    def grow(seed: int) -> None:
        cell.upsert(seed)
        if merge_on_read:
            cell.table.compact()
        cell.table.clean(1)
        counts.update(written(cell))

    def archive(table: LocalTable) -> ArchiveResult:
        return table.archive(2, 2, merged=3)

    def files() -> list[str]:
        return [file.name for file in cell.table.state.archived_timeline.files()]

    cell.begin()
    merged = 0
    for seed in range(3, 10):
        grow(seed)
        merged += len(archive(cell.table).files_written) > 1
    assert merged >= 2
    check(cell, theirs)
    check_archive(cell, theirs, counts)

    while len(files()) < 3:
        grow(20 + len(files()))
        archive(cell.table)
    grow(30)
    sources = files()
    cell.dies(r"delete.*archived/\.commits", archive)
    assert files()[:-1] == sources
    check_archive(cell, theirs, counts)
    for seed in (31, 32, 33, 34, 35):
        options = {**theirs.options, **MERGES, "hoodie.compact.inline": str(merge_on_read).lower()}
        theirs.judge.write(cell.path, rows([1, 2, seed], seed), options)
        counts.update(written(cell))
    check(cell, theirs)
    if hudi.version.startswith("0."):
        assert not set(files()) & set(sources)

    grow(40)
    assert archive(cell.table).archived
    assert not set(files()) & set(sources)
    check(cell, theirs)
    check_archive(cell, theirs, {instant: count for instant, count in counts.items() if instant in set(archived_by_us(cell))})


@KINDS
def test_hudi_finishes_the_clean_and_the_rollback_that_died_with_us(hudi: HudiJudge, merge_on_read: bool, tmp_path: Path) -> None:
    cell = Cell.create(tmp_path / "t", merge_on_read=merge_on_read, partitioned=True)
    theirs = writer_of(hudi, cell)
    cell.begin()
    for seed in (3, 4):
        cell.upsert(seed)
    if merge_on_read:
        cell.table.compact()
    cell.upsert(5)
    before = cell.data_files()
    cell.dies(r"delete.*part=", lambda table: table.clean(1))
    assert cell.data_files() == before
    theirs.clean(1)
    assert len(theirs.instants("clean")) == len(list((cell.path / ".hoodie").glob("*.clean.requested")))
    assert set(cell.data_files()) < set(before)
    check(cell, theirs)

    kept = cell.read()
    gone = cell.upsert(6, [2, 3, 60])
    cell.dies(r"\.rollback$", lambda table: table.rollback())
    theirs.upsert(rows([70], 7))
    with pytest.raises(TimelineRestoredError):
        cell.table.read(query="incremental", begin=gone)
    assert 60 not in cell.read().column("id").to_pylist()
    assert cell.read().num_rows == kept.num_rows + 1
    check(cell, theirs)
    cell.upsert(8)
    check(cell, theirs)


@KINDS
def test_hudi_lists_our_rollbacks(hudi: HudiJudge, merge_on_read: bool, tmp_path: Path) -> None:
    cell = Cell.create(tmp_path / "t", merge_on_read=merge_on_read, partitioned=True)
    theirs = writer_of(hudi, cell)
    cell.begin()
    gone = cell.upsert(3)
    done = cell.table.rollback()
    listed = theirs.listed("show_rollbacks")
    assert [(entry["instant"], entry["rollback_instant"]) for entry in listed] == [(done.instant, gone)]
    detail = theirs.listed("show_rollback_detail", instant_time=done.instant)
    assert {entry["rollback_instant"] for entry in detail} == {f"[{gone}]"}
    assert cell.table.state.timeline.find(done.instant) is not None
    assert [one.action for one in cell.table.state.timeline.completed()].count(Action.ROLLBACK) == 1
