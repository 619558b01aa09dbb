"""Cleaning and archiving on copies of every table that Hudi wrote: all rows stay. Hudi's own archives, read and written again."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.errors import UnsupportedTableError
from lakehouse_engine.format.v6.archived import read_archive, render_archive
from lakehouse_engine.format.v6.archived_record import archived_commit, archived_entry
from lakehouse_engine.format.v6.plans_codec import decode_plan
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieCleanerPlan, HoodieCleanMetadata
from lakehouse_engine.options import ArchiveOptions, CleanOptions, CompactionOptions
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.scan import plan_snapshot
from lakehouse_engine.services.archive import archive
from lakehouse_engine.services.clean import clean
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.archived import ArchivedTimeline
from lakehouse_engine.view.history import history
from lakehouse_engine.view.table_state import TableState
from tests.support.fixtures import EVERY_VERSION, expected_readings, fixtures_root, spark_fixtures, unpack_spark_fixture
from tests.support.readers import assert_same_rows, read_with_hudi_rs

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")

TABLES = spark_fixtures(EVERY_VERSION)
ARCHIVES = [name for name in spark_fixtures() if "archive" in name]
CLEAN = CleanOptions(commits_retained=1)
POLICIES = (CLEAN, CleanOptions(policy="KEEP_LATEST_FILE_VERSIONS", versions_retained=1))
ARCHIVE = ArchiveOptions(min_commits=2, max_commits=3)
TIMEOUT_MS = 10_000


def opened(name: str, folder: Path) -> tuple[LocalStorage, TableState]:
    storage = LocalStorage(str(unpack_spark_fixture(name, folder)))
    return storage, TableState.load(storage)


def snapshot(storage: LocalStorage) -> pa.Table:
    return read_arrow(plan_snapshot(TableState.load(storage)), meta_columns=True)


def before(name: str, storage: LocalStorage) -> pa.Table:
    """What we read from the untouched table, which other tests compare with what Hudi reads."""
    try:
        return snapshot(storage)
    except UnsupportedTableError as error:
        pytest.skip(f"{name} is refused: {error.message}")


def archive_of(state: TableState) -> ArchivedTimeline:
    return ArchivedTimeline(state.storage, state.format, state.config.archive_folder)


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives_of_hudi_are_read_whole(name: str, tmp_path: Path) -> None:
    _, state = opened(name, tmp_path)
    entries = list(archive_of(state).entries())
    by_time = {time: list(found) for time, found in groupby(entries, key=lambda entry: entry.instant.requested_time)}
    for time, found in by_time.items():
        assert [entry.instant.state for entry in found] == list(State), time
    completed = [entry for entry in entries if entry.instant.is_completed]
    assert sorted(by_time) == [instant.requested_time for instant in archive_of(state).instants()]
    for entry in completed:
        metadata = archived_commit(entry)
        assert (metadata is not None) == entry.instant.action.is_write
        if metadata is not None:
            assert metadata.operation_type is not None
            assert metadata.schema_json
            for stat in metadata.write_stats():
                assert stat.path is not None
                assert stat.file_size_in_bytes > 0
    shown = history(state, archived=True)
    assert len(shown) == len(state.timeline) + len(by_time)


@pytest.mark.parametrize("name", [name for name in ARCHIVES if "0.15.0" in name])
def test_archives_of_hudi_are_written_byte_for_byte(name: str, tmp_path: Path) -> None:
    storage, state = opened(name, tmp_path)
    for file in archive_of(state).files():
        data = storage.read(file.path)
        instants = [list(found) for _, found in groupby(read_archive(data), key=lambda entry: entry.instant.requested_time)]
        # The tables were made with hoodie.commits.archival.batch=2.
        assert render_archive(instants, 2, sealed=False) == data
        assert read_archive(render_archive(instants, 2)) == read_archive(data)


@pytest.mark.parametrize("name", [name for name in ARCHIVES if "0.15.0" in name])
def test_records_made_of_state_files_have_the_members_that_hudis_have(name: str, tmp_path: Path) -> None:
    """Instants that Hudi has not archived yet, against those of the same action and state that it has."""
    storage, state = opened(name, tmp_path)
    shapes = {
        (entry.instant.action, entry.instant.state): _shape(entry.record)
        for entry in archive_of(state).entries()
        if _has_files(entry.record)
    }
    compared = 0
    for file in storage.list(".hoodie"):
        instant = None if file.is_directory else state.format.parse_file_name(file.name)
        theirs = None if instant is None else shapes.get((instant.action, instant.state))
        if instant is not None and theirs is not None:
            entry = archived_entry(state.format, instant, storage.read(file.path), "20260101000000000")
            (read_back,) = read_archive(render_archive([[entry]], 10))
            assert _shape(read_back.record) == theirs, instant
            compared += 1
    assert compared >= 5


def _has_files(record: dict[str, object]) -> bool:
    return "'path': None" not in str(record)


def _shape(record: dict[str, object]) -> dict[str, object]:
    """Which members are there, down to the members of records, of which maps and lists show one."""
    shape: dict[str, object] = {}
    for key, value in record.items():
        first = next(iter(value.values()), None) if isinstance(value, dict) and "partition" in key.lower() else value
        first = first[0] if isinstance(first, list) and first else first
        shape[key] = _shape(first) if isinstance(first, dict) else type(first).__name__
    return shape


@pytest.mark.parametrize("options", POLICIES, ids=lambda options: options.policy)
@pytest.mark.parametrize("name", TABLES)
def test_after_a_clean_the_snapshot_is_the_same_and_no_needed_file_is_gone(name: str, options: CleanOptions, tmp_path: Path) -> None:
    storage, _ = opened(name, tmp_path)
    rows = before(name, storage)
    result = clean(storage, options, lock_timeout_ms=TIMEOUT_MS)
    assert_same_rows(snapshot(storage), rows)
    assert all(storage.head(path) is None for path in result.files_deleted)
    assert clean(storage, options, lock_timeout_ms=TIMEOUT_MS).files_deleted == ()


@pytest.mark.parametrize("name", TABLES)
def test_after_archiving_all_that_may_leave_the_snapshot_is_the_same(name: str, tmp_path: Path) -> None:
    storage, _ = opened(name, tmp_path)
    rows = before(name, storage)
    clean(storage, CLEAN, lock_timeout_ms=TIMEOUT_MS)
    result = archive(storage, ARCHIVE, lock_timeout_ms=TIMEOUT_MS, clean=CLEAN, compaction=CompactionOptions(delta_commits=1))
    assert_same_rows(snapshot(storage), rows)
    state = TableState.load(storage)
    assert not set(result.archived) & {instant.requested_time for instant in state.timeline if instant.action is not Action.SAVEPOINT}
    assert set(result.archived) <= {instant.requested_time for instant in state.archived_timeline.instants()}


@pytest.mark.parametrize("name", ["v6-0.15.0/cow_archive_beyond_savepoint", "v6-0.15.0/cow_clean_commits", "v6-0.15.0/mor_clean_commits"])
def test_hudi_rs_reads_what_we_read_after_archiving_past_a_savepoint(name: str, tmp_path: Path) -> None:
    storage, state = opened(name, tmp_path)
    rows = before(name, storage)
    (saved,) = state.timeline.savepointed
    archive(storage, replace(ARCHIVE, min_commits=2, max_commits=2), lock_timeout_ms=TIMEOUT_MS, clean=CLEAN)
    assert not TableState.load(storage).timeline.writes().contains(saved)
    assert_same_rows(read_with_hudi_rs(storage.root), rows)
    folder, readings = expected_readings(name)
    if f"as_of_{saved}" in readings and "error" not in readings[f"as_of_{saved}"]:
        travelled = read_arrow(plan_snapshot(TableState.load(storage), saved), meta_columns=True)
        assert_same_rows(travelled, pq.read_table(folder / f"as_of_{saved}.parquet"))


@pytest.mark.parametrize("name", ["v6-0.15.0/cow_clean_versions", "v6-0.15.0/mor_clean_versions"])
def test_our_plan_is_the_one_that_hudi_made_of_the_same_files(name: str, tmp_path: Path) -> None:
    """Hudi's clean taken back, as far as names go: its files are put back empty, and we plan."""
    storage, state = opened(name, tmp_path)
    done = next(instant for instant in state.timeline if instant.action is Action.CLEAN)
    timeline = ActiveTimeline(storage, state.format)
    theirs = decode_plan(HoodieCleanerPlan, timeline.read(Instant(done.requested_time, Action.CLEAN, State.REQUESTED)))
    metadata = decode_plan(HoodieCleanMetadata, timeline.read(done))
    planned = {
        f"{partition}/{(file.file_path or '').rpartition('/')[2]}"
        for partition, files in (theirs.file_paths_to_be_deleted_per_partition or {}).items()
        for file in files
    }
    for path in planned:
        storage.create(path, b"")
    for partition in metadata.partition_metadata:
        if storage.head(f"{partition}/.hoodie_partition_metadata") is None:
            storage.create(f"{partition}/.hoodie_partition_metadata", b"")
    for later in state.timeline.after(done.requested_time):
        timeline.delete(later)
    for reached in State:
        timeline.delete(done.at(reached))
    options = CleanOptions(policy="KEEP_LATEST_FILE_VERSIONS", versions_retained=1)
    ours = clean(storage, options, lock_timeout_ms=TIMEOUT_MS, dry_run=True)
    assert set(ours.files_deleted) == planned
