"""Merging of small archive files: what is merged, that nothing is lost wherever it dies, and what other programs' merges left."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence

import pytest

from lakehouse_engine.errors import CorruptLogError, OptionError, StorageError
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.v6.archived import (
    archive_blocks,
    archive_file_name,
    merge_archives,
    merged_from,
    read_archive,
    render_archive,
)
from lakehouse_engine.format.v6.metadata_avro import encode_record
from lakehouse_engine.model.archived import ArchivedEntry
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.services import ArchiveResult
from lakehouse_engine.options import ArchiveOptions, CleanOptions, CompactionOptions
from lakehouse_engine.services.archive import archive
from lakehouse_engine.services.archive.merge import merge_archive_files, mergeable
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.archived import ArchivedTimeline
from lakehouse_engine.verify.table import verify
from lakehouse_engine.view.history import history
from tests.support.local_table import LocalTable
from tests.unit.services.clean.tables import COW, MOR, TIMEOUT_MS, content, new_table, rows, twin_of
from tests.unit.timeline.test_archived import FOLDER, LAYOUT, states
from tests.unit.timeline.test_archived import archive as stored_archive

FEW = ArchiveOptions(min_commits=2, max_commits=2, merged_files=4)
APART = ArchiveOptions(min_commits=2, max_commits=2, merges=False)
FAULTS = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)


def run(table: LocalTable, options: ArchiveOptions = FEW) -> ArchiveResult:
    clean, compaction = CleanOptions(commits_retained=1), CompactionOptions(delta_commits=1)
    return archive(table.storage, options, lock_timeout_ms=TIMEOUT_MS, clean=clean, compaction=compaction)


def aged(table: LocalTable, times: int, options: ArchiveOptions) -> list[str]:
    """Upserts, each archived behind; their instants."""
    found = []
    for number in range(times):
        found.append(table.upsert(rows({1: number, 2: 0})).instant)
        run(table, options)
    return [instant for instant in found if instant is not None]


def files(archived: ArchivedTimeline) -> list[str]:
    return [file.name for file in archived.files()]


def named(*numbers: int) -> list[str]:
    return [archive_file_name(number) for number in numbers]


def sized(*sizes: int) -> list[StoredFile]:
    return [StoredFile(f"{FOLDER}/{archive_file_name(number)}", size, 0) for number, size in enumerate(sizes, 1)]


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_an_archive_that_is_merged_is_of_few_files_and_tells_the_same(table_type: str) -> None:
    merged, apart = new_table(table_type), new_table(table_type)
    instants = [aged(table, 24, options) for table, options in ((merged, FEW), (apart, APART))]
    times = dict(zip(*instants, strict=True))
    few, many = merged.state.archived_timeline, apart.state.archived_timeline
    assert (len(few.files()), len(many.files())) == (4, 22)
    assert [times[instant.requested_time] for instant in few.instants()] == [instant.requested_time for instant in many.instants()]
    assert len(list(few.entries())) == len({entry.instant for entry in few.entries()}) == len(list(many.entries())) == 3 * 22
    shown = [[entry.instant for entry in history(table.state, archived=True)] for table in (merged, apart)]
    assert [times[instant] for instant in shown[0]] == shown[1]
    assert content(merged) == content(apart) == {1: 23, 2: 0}
    assert [content(merged, query="incremental", begin=begin) for begin in ("earliest", instants[0][-2])] == [{1: 23, 2: 0}, {1: 23, 2: 0}]
    assert verify(merged.state).ok
    live = merged.state.archived_files()
    assert (live.boundary, live.checkpoint, live.told_to) == (instants[0][-3],) * 3


def test_archiving_says_which_files_it_wrote() -> None:
    table = new_table()
    aged(table, 6, FEW)
    table.upsert(rows({1: 6}))
    folder = table.state.archived_timeline.path
    assert files(table.state.archived_timeline) == named(1, 2, 3, 4)
    assert run(table).files_written == (f"{folder}/{archive_file_name(5)}", f"{folder}/{archive_file_name(6)}")
    assert files(table.state.archived_timeline) == named(5, 6)


def test_it_may_be_switched_off_and_is_refused_for_one_file() -> None:
    read = ArchiveOptions.read({"hoodie.archive.merge.enable": "false", "hoodie.archive.merge.files.batch.size": "3"})
    assert (read.merges, read.merged_files, read.merged_bytes) == (False, 3, 20 * 1024 * 1024)
    with pytest.raises(OptionError, match=r"hoodie\.archive\.merge\.files\.batch\.size=1 is no number of files to merge"):
        ArchiveOptions.read({"hoodie.archive.merge.files.batch.size": 1})
    assert not ArchiveOptions.read({"hoodie.archive.merge.files.batch.size": 1, "hoodie.archive.merge.enable": False}).merges


class TestWhatIsMerged:
    """Few files, and no record written again and again."""

    options = ArchiveOptions(merged_files=3, merged_bytes=6400)

    def merged(self, *sizes: int) -> list[int]:
        return [file.size for file in mergeable(sized(*sizes), self.options)]

    def test_few_files_are_left_alone(self) -> None:
        assert self.merged() == self.merged(1, 2) == []

    def test_trifles_go_together_whatever_their_sizes(self) -> None:
        assert self.merged(100, 1, 99, 2) == [100, 1, 99, 2]

    def test_a_larger_one_goes_with_as_much_as_it_has(self) -> None:
        assert self.merged(300, 100, 100, 100) == [300, 100, 100, 100]
        assert self.merged(301, 100, 100, 100) == [100, 100, 100]

    def test_large_ones_go_together_as_well(self) -> None:
        assert self.merged(2000, 2000, 2000) == [2000, 2000, 2000]
        assert self.merged(6000, 2000, 2000, 2000) == [6000, 2000, 2000, 2000]

    def test_no_more_are_read_at_once_than_the_limit_and_one_file(self) -> None:
        assert self.merged(*[2000] * 9) == [2000] * 4
        assert len(self.merged(*[1] * 3000)) == 500

    def test_a_file_above_the_limit_stays_and_what_is_older(self) -> None:
        assert self.merged(1, 1, 1, 6401, 100, 100, 100) == [100, 100, 100]

    def test_of_many_archivings_few_files_are_left_and_a_record_is_written_a_few_times(self) -> None:
        there: list[int] = []
        written = 0
        for _ in range(3_000):
            chosen = [file.size for file in mergeable(sized(*there), self.options)]
            if chosen:
                there = [*there[: len(there) - len(chosen)], sum(chosen)]
                written += sum(chosen)
            there.append(10)
            assert len([size for size in there if size <= 6400]) < 12
        assert len(there) < 20
        assert written / 30_000 < 20


@pytest.mark.parametrize("fault", FAULTS)
def test_a_crash_anywhere_loses_nothing_and_the_next_archiving_finishes(fault: Fault) -> None:
    table = new_table()
    instants = aged(table, 6, FEW)
    last = table.upsert(rows({1: 6})).instant
    assert last is not None
    instants.append(last)
    source = table.storage
    assert isinstance(source, MemoryStorage)
    assert len(table.state.archived_timeline.files()) == FEW.merged_files
    beside = 0
    for call in itertools.count(1):
        inner = twin_of(source)
        try:
            assert run(LocalTable(FaultyStorage(inner, call, fault))).archived
            break
        except SimulatedCrash:
            survivor = LocalTable(inner)
        beside += 1 < len(survivor.state.archived_timeline.files()) != FEW.merged_files
        everything(survivor, instants[:-3])
        assert content(survivor) == {1: 6, 2: 0}
        run(survivor)
        assert survivor.instants() == instants[-2:]
        assert files(survivor.state.archived_timeline)[0] == archive_file_name(5)
        assert len(survivor.state.archived_timeline.files()) == 2
        everything(survivor, instants[:-2])
        assert verify(survivor.state).ok
        assert content(survivor) == {1: 6, 2: 0}
    assert call > 9
    assert beside >= 4


def everything(table: LocalTable, instants: Sequence[str]) -> None:
    """The archive has these instants, maybe also what is about to leave, each state once."""
    archived = table.state.archived_timeline
    found = [instant.requested_time for instant in archived.instants()]
    assert found[: len(instants)] == list(instants)
    assert len(list(archived.entries())) == 3 * len(found)


def test_what_a_dead_merge_left_goes_with_the_next_one_where_another_program_archived_between() -> None:
    storage, archived = archive_of(1, 2, 3)
    merged = merge_archives({name: archive_blocks(storage.read(f"{FOLDER}/{name}")) for name in named(3, 2, 1)})
    storage.create(f"{FOLDER}/{archive_file_name(4)}", merged)
    storage.delete(f"{FOLDER}/{archive_file_name(2)}")
    storage.create(f"{FOLDER}/{archive_file_name(5)}", render_archive([states("5")], 10, sealed=False))
    assert archived.newest_file().merged_from == ()
    assert known(archived) == ["1", "2", "3", "5"]
    assert merge_archive_files(archived, ArchiveOptions(merged_files=4)) == f"{FOLDER}/{archive_file_name(6)}"
    assert files(archived) == named(6)
    assert [entry.instant.requested_time for entry in read_archive(storage.read(f"{FOLDER}/{archive_file_name(6)}"))] == [
        time for time in "5321" for _ in range(3)
    ]


def test_archiving_goes_on_where_merging_fails(caplog: pytest.LogCaptureFixture) -> None:
    class Full(MemoryStorage):
        def create(self, path: str, data: bytes) -> None:
            if path.endswith(archive_file_name(6)) and merged_from(read_blocks(data)):
                raise StorageError("no space left on device", path=path)
            super().create(path, data)

    table = new_table()
    instants = aged(table, 7, ArchiveOptions(min_commits=2, max_commits=2, merges=False))
    full = Full()
    for entry in table.storage.walk():
        full.create(entry.path, table.storage.read(entry.path))
    LocalTable(full).upsert(rows({1: 9}))
    with caplog.at_level(logging.WARNING):
        assert run(LocalTable(full)).files_written == (f"{FOLDER}/{archive_file_name(6)}",)
    assert "were not merged: no space left on device" in caplog.text
    everything(LocalTable(full), instants[:6])
    assert files(LocalTable(full).state.archived_timeline) == named(1, 2, 3, 4, 5, 6)


def archive_of(*numbers: int) -> tuple[MemoryStorage, ArchivedTimeline]:
    """An archive with an instant of that time in a file of that number."""
    return stored_archive(*((number, [states(str(number))]) for number in numbers))


def known(archived: ArchivedTimeline) -> list[str]:
    return [instant.requested_time for instant in archived.instants()]


class TestBesideHudi:
    """Merges of Hudi's go by a plan, and write a file block by block."""

    def plan(self, storage: MemoryStorage, target: int, *sources: int) -> None:
        names = [f"file:/elsewhere/.hoodie/archived/{name}" for name in named(*sources)]
        plan = {"candidate": names, "mergedArchiveFileName": archive_file_name(target)}
        storage.create(f"{FOLDER}/mergeArchivePlan", encode_record("HoodieMergeArchiveFilePlan", plan))

    @pytest.mark.parametrize("written", ["nothing", "some blocks", "a part of a block", "another archiving"])
    def test_nothing_is_merged_or_deleted_while_its_plan_is_there(self, written: str) -> None:
        storage, archived = archive_of(1, 2, 3)
        self.plan(storage, 9, 1, 2, 3)
        path, whole = f"{FOLDER}/{archive_file_name(9)}", render_archive([states("3"), states("2")], 3, sealed=False)
        if written == "another archiving":
            storage.create(path, render_archive([states("4")], 3, sealed=False))
        elif written != "nothing":
            storage.create(path, whole if written == "some blocks" else whole[:-9])
        before = {entry.name for entry in archived.listed()}
        assert merge_archive_files(archived, ArchiveOptions(merged_files=2)) is None
        assert {entry.name for entry in archived.listed()} == before
        assert known(archived) == ["1", "2", "3", *(["4"] if written == "another archiving" else [])]

    def test_what_it_writes_is_no_file_that_a_checkpoint_counts(self) -> None:
        storage, archived = archive_of(1, 2, 3)
        assert archived.newest_number() == 3
        self.plan(storage, 4, 1, 2, 3)
        assert (archived.newest_number(), archived.next_number()) == (3, 5)
        storage.create(f"{FOLDER}/{archive_file_name(4)}", b"#HUDI#")
        assert (archived.newest_number(), archived.next_number()) == (3, 5)

    def test_damage_of_what_it_wrote_shows_once_a_file_that_it_merged_is_gone(self) -> None:
        storage, archived = archive_of(1, 2)
        self.plan(storage, 9, 1, 2)
        storage.create(f"{FOLDER}/{archive_file_name(9)}", render_archive([states("2"), states("1")], 3, sealed=False)[:-9])
        assert known(archived) == ["1", "2"]
        assert not archived.damaged()
        storage.delete(f"{FOLDER}/{archive_file_name(1)}")
        with pytest.raises(CorruptLogError):
            archived.instants()
        assert [file.name for file, _ in archived.damaged()] == named(9)

    def test_merging_goes_on_behind_a_damaged_file(self, caplog: pytest.LogCaptureFixture) -> None:
        storage, archived = archive_of(1, 2, 4, 5)
        storage.create(f"{FOLDER}/{archive_file_name(3)}", render_archive([states("3")], 10)[:-9])
        with caplog.at_level(logging.WARNING):
            assert merge_archive_files(archived, ArchiveOptions(merged_files=3)) is None
            assert files(archived) == named(1, 2, 3, 4, 5)
            assert merge_archive_files(archived, ArchiveOptions(merged_files=2)) is not None
        assert "archive.3_1-0-1 of memory: is not merged with others" in caplog.text.replace(storage.root, "memory:")
        assert files(archived) == named(1, 2, 3, 6)

    def test_what_hudi_wrote_is_merged_with_what_we_did(self) -> None:
        storage, archived = archive_of(1, 3)
        storage.create(f"{FOLDER}/{archive_file_name(2)}", render_archive([states("2")], 10, sealed=False))
        before = [entry.record for number in (3, 2, 1) for entry in read_archive(storage.read(f"{FOLDER}/{archive_file_name(number)}"))]
        assert merge_archive_files(archived, ArchiveOptions(merged_files=3)) == f"{FOLDER}/{archive_file_name(4)}"
        assert [entry.record for entry in read_archive(storage.read(f"{FOLDER}/{archive_file_name(4)}"))] == before
        assert files(archived) == named(4)


def test_of_a_merged_file_that_was_cut_between_blocks_what_is_missing_shows() -> None:
    parts = {"b": render_archive([states("3")], 3), "a": render_archive([states("1"), states("2")], 3)}
    data = merge_archives({name: archive_blocks(part) for name, part in parts.items()})
    assert merged_from(read_blocks(data)) == ("b", "a")
    assert len(read_archive(data)) == 9
    places = [place for place in range(1, len(data)) if data.startswith(b"#HUDI#", place)]
    assert len(places) == 2
    for place in places:
        with pytest.raises(CorruptLogError, match="was cut short"):
            read_archive(data[:place])


def test_what_is_sought_is_decoded_alone() -> None:
    _, archived = archive_of(11, 12, 13)
    merge_archive_files(archived, ArchiveOptions(merged_files=3))
    found = list(archived.entries_with("12"))
    assert {entry.instant.requested_time for entry in found} == {"12"}


class Racing(MemoryStorage):
    """Another process merges the archive when one of its files has been read."""

    reads = 0

    def read(self, path: str) -> bytes:
        data = super().read(path)
        if archive_file_name(3) in path:
            type(self).reads += 1
            if self.reads == 1:
                merge_archive_files(ArchivedTimeline(self, LAYOUT), ArchiveOptions(merged_files=3))
        return data


@pytest.mark.parametrize("ask", ["instants", "readable_instants", "entries", "entries_with"])
def test_who_reads_while_files_are_merged_reads_all_of_them(ask: str) -> None:
    Racing.reads = 0
    storage = Racing()
    for number in (1, 2, 3):
        storage.create(f"{FOLDER}/{archive_file_name(number)}", render_archive([states(f"1{number}")], 10))
    archived = ArchivedTimeline(storage, LAYOUT)
    found: Sequence[Instant | ArchivedEntry] = list(archived.entries_with("1") if ask == "entries_with" else getattr(archived, ask)())
    times = [(one.instant if isinstance(one, ArchivedEntry) else one).requested_time for one in found]
    assert set(times) == {"11", "12", "13"}
    assert len(times) == {"entries": 9, "entries_with": 12}.get(ask, 3)
    assert files(archived) == named(4)
