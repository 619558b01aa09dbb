"""Savepoints: what they pin, what they refuse, and that a crash at any call leaves one or none."""

from __future__ import annotations

import io
import time
from dataclasses import replace

import fastavro
import pyarrow as pa
import pytest

from lakehouse_engine.commit.deletion import delete_files_of, delete_unpinned
from lakehouse_engine.errors import (
    InstantCleanedError,
    InstantNotFoundError,
    LakehouseError,
    MissingFileError,
    ProtectedFileError,
    SavepointError,
)
from lakehouse_engine.model.files import join_path
from lakehouse_engine.model.savepoint import join_comments, split_comments
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.locations import in_object_store
from lakehouse_engine.undo.savepoint import create_savepoint, delete_savepoint, find_savepoint, list_savepoints
from lakehouse_engine.view.protected import protected_files, savepoint_metadata
from tests.support.local_table import LocalTable
from tests.support.versions import state_path
from tests.unit.undo.bringing_back import KINDS, TIMEOUT, copy_of, data_files, history, new_table, rows


@pytest.mark.parametrize("kind", KINDS)
def test_a_savepoint_pins_base_and_log_files_of_the_newest_commit(kind: str) -> None:
    table, instants = history(kind)
    made = create_savepoint(table.storage, name="nightly", comment="before: the load", user="ann", lock_timeout_ms=TIMEOUT)
    assert (made.instant, made.name, made.comment, made.user) == (instants[-1], "nightly", "before: the load", "ann")
    slices = table.state.view.latest_slices()
    expected = {piece.base_file.path for piece in slices if piece.base_file} | {log.path for piece in slices for log in piece.log_files}
    assert set(protected_files(table.state)) == expected
    assert made.files == len(expected)
    assert made.partitions == 2
    assert made.bytes == sum(piece.size for piece in slices)
    assert list_savepoints(table.state) == [made]
    if kind == "mor":
        assert any(".log." in path for path in expected)


def test_the_record_is_the_one_that_hudi_writes() -> None:
    table, instants = history()
    create_savepoint(table.storage, comment="kept", user="tester", lock_timeout_ms=TIMEOUT)
    (record,) = fastavro.reader(io.BytesIO(table.storage.read(state_path(table.storage, f"{instants[-1]}.savepoint"))))
    assert isinstance(record, dict)
    assert list(record) == ["savepointedBy", "savepointedAt", "comments", "partitionMetadata", "version"]
    assert record["comments"] == "kept"
    assert set(record["partitionMetadata"]) == {"part=x", "part=y"}
    assert record["version"] == 1
    # Hudi leaves the inflight file empty, and never reads it. In an object store it stays empty here too.
    copy = b"" if in_object_store(table.storage) else table.storage.read(state_path(table.storage, f"{instants[-1]}.savepoint"))
    assert table.storage.read(state_path(table.storage, f"{instants[-1]}.savepoint.inflight")) == copy


def test_log_files_of_later_delta_commits_are_not_pinned() -> None:
    table, instants = history("mor")
    create_savepoint(table.storage, instant=instants[1], lock_timeout_ms=TIMEOUT)
    later = {stat.path for stat in table.state.commit_metadata(table.state.timeline.completed().writes().instants[2]).write_stats()}
    assert later
    assert not later & set(protected_files(table.state))


@pytest.mark.parametrize("kind", KINDS)
def test_an_older_commit_is_pinned_as_it_was(kind: str) -> None:
    table, instants = history(kind)
    create_savepoint(table.storage, instant=instants[0], lock_timeout_ms=TIMEOUT)
    pinned = set(protected_files(table.state))
    assert all(instants[0] in path for path in pinned)
    assert len(pinned) == 2


def test_names_are_kept_in_comments_that_hudi_shows() -> None:
    assert join_comments("a b", "why") == "[a b] why"
    assert split_comments("[a b] why") == ("a b", "why")
    assert split_comments(join_comments("n", "")) == ("n", "")
    assert split_comments("before: the load") == (None, "before: the load")
    assert split_comments(join_comments(None, "x")) == (None, "x")


MOMENTS = ("20240101000000000", "7", "latest", "Latest", "earliest", "-1", "2026-01-01", "2026-01-01 12:00:00")


@pytest.mark.parametrize("name", ["", " ", *MOMENTS, "a]b", "[a", "a\nb", " a"])
def test_a_name_that_could_be_something_else_is_refused(name: str) -> None:
    table, _ = history()
    with pytest.raises(SavepointError, match="no name for a savepoint"):
        create_savepoint(table.storage, name=name, lock_timeout_ms=TIMEOUT)
    assert list_savepoints(table.state) == []


def test_a_name_is_used_once_and_a_commit_has_one_savepoint() -> None:
    table, instants = history()
    first = create_savepoint(table.storage, instant=instants[0], name="a", lock_timeout_ms=TIMEOUT)
    with pytest.raises(SavepointError, match=instants[0]):
        create_savepoint(table.storage, name="a", lock_timeout_ms=TIMEOUT)
    with pytest.raises(SavepointError, match="named 'a'"):
        create_savepoint(table.storage, instant=instants[0], name="b", lock_timeout_ms=TIMEOUT)
    assert create_savepoint(table.storage, instant=instants[0], name="a", comment="other", lock_timeout_ms=TIMEOUT) == first
    assert create_savepoint(table.storage, instant=instants[0], lock_timeout_ms=TIMEOUT) == first


def test_savepoints_are_found_by_name_instant_and_latest() -> None:
    table, instants = history()
    create_savepoint(table.storage, instant=instants[0], name="a", lock_timeout_ms=TIMEOUT)
    create_savepoint(table.storage, instant=instants[2], lock_timeout_ms=TIMEOUT)
    assert find_savepoint(table.state, "a", savepoint_metadata(table.state)).instant == instants[0]
    assert find_savepoint(table.state, instants[2], savepoint_metadata(table.state)).name is None
    assert find_savepoint(table.state, "latest", savepoint_metadata(table.state)).instant == instants[2]
    with pytest.raises(SavepointError, match=rf"a \({instants[0]}\), {instants[2]}"):
        find_savepoint(table.state, "b", savepoint_metadata(table.state))


def test_what_is_no_completed_write_cannot_be_kept() -> None:
    with pytest.raises(SavepointError, match="no completed write"):
        create_savepoint(new_table().storage, lock_timeout_ms=TIMEOUT)
    table, instants = history()
    with pytest.raises(InstantNotFoundError, match=instants[0]):
        create_savepoint(table.storage, instant="20200101000000000", lock_timeout_ms=TIMEOUT)


def test_a_commit_whose_files_were_cleaned_cannot_be_kept() -> None:
    table, instants = history()
    table.clean(1)
    with pytest.raises(InstantCleanedError, match="the earliest instant"):
        create_savepoint(table.storage, instant=instants[0], lock_timeout_ms=TIMEOUT)
    assert list_savepoints(table.state) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_file_is_named_before_anything_is_published(kind: str) -> None:
    table, _ = history(kind)
    files = [piece.log_files[-1] if piece.log_files else piece.base_file for piece in table.state.view.latest_slices()]
    lost = next(file.path for file in files if file is not None)
    table.storage.delete(lost)
    with pytest.raises(MissingFileError, match=lost.rpartition("/")[2]):
        create_savepoint(table.storage, lock_timeout_ms=TIMEOUT)
    assert not [entry for entry in table.storage.list(".hoodie") if "savepoint" in entry.name]


def test_a_dry_run_writes_nothing() -> None:
    table, instants = history()
    before = {entry.path for entry in table.storage.walk()}
    made = create_savepoint(table.storage, name="n", lock_timeout_ms=TIMEOUT, dry_run=True)
    assert (made.instant, made.files) == (instants[-1], 2)
    assert {entry.path for entry in table.storage.walk()} == before


def test_pinned_files_are_deleted_through_no_door() -> None:
    table, instants = history()
    create_savepoint(table.storage, name="n", lock_timeout_ms=TIMEOUT)
    (path, *_) = [path for path in protected_files(table.state) if instants[2] in path]
    for door in (lambda: delete_files_of(table.storage, instants[2], [path]), lambda: delete_unpinned(table.storage, [path])):
        with pytest.raises(ProtectedFileError, match="pinned by the savepoint"):
            door()
    assert table.storage.head(path) is not None
    delete_savepoint(table.storage, "n", lock_timeout_ms=TIMEOUT)
    assert delete_unpinned(table.storage, [path]) == [path]


def test_a_log_file_is_deleted_only_as_work_of_who_wrote_its_blocks() -> None:
    table, instants = history("mor")
    last = ".log.2_" if table.state.config.version is TableVersion.SIX else f"_{instants[2]}.log.1_"
    (log, *_) = sorted(path for path in data_files(table.storage) if last in path)
    with pytest.raises(ProtectedFileError, match="was not written by"):
        delete_files_of(table.storage, instants[0], [log])
    with pytest.raises(ProtectedFileError, match="no data file"):
        delete_files_of(table.storage, instants[0], [".hoodie/hoodie.properties"])
    assert delete_files_of(table.storage, instants[2], [log]) == [log]


def test_deleting_a_savepoint_leaves_the_data_and_can_be_told_apart_from_an_unknown_one() -> None:
    table, instants = history()
    made = create_savepoint(table.storage, name="n", lock_timeout_ms=TIMEOUT)
    before = data_files(table.storage)
    assert delete_savepoint(table.storage, "latest", lock_timeout_ms=TIMEOUT, dry_run=True) == made
    assert list_savepoints(table.state) == [made]
    assert delete_savepoint(table.storage, "latest", lock_timeout_ms=TIMEOUT) == made
    assert data_files(table.storage) == before
    assert list_savepoints(table.state) == []
    with pytest.raises(SavepointError, match="savepoints of this table: none"):
        delete_savepoint(table.storage, "n", lock_timeout_ms=TIMEOUT)
    assert create_savepoint(table.storage, instant=instants[2], name="n", lock_timeout_ms=TIMEOUT).instant == instants[2]


@pytest.mark.table_versions(6)
def test_the_commit_of_a_deleted_savepoint_that_archiving_passed_by_hides_nothing() -> None:
    table, _ = history()
    create_savepoint(table.storage, name="n", lock_timeout_ms=TIMEOUT)
    for seed in range(4, 10):
        table.insert(rows([20 + seed], seed))
    table.archive(2, 3)
    expected = table.read()
    delete_savepoint(table.storage, "n", lock_timeout_ms=TIMEOUT)
    assert table.read().sort_by("id") == expected.sort_by("id")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", list(Fault))
def test_a_failure_at_any_call_leaves_a_whole_savepoint_or_none(kind: str, fault: Fault) -> None:
    table, instants = history(kind)
    for act in (_create, _delete):
        start = copy_of(table.storage)
        if act is _delete:
            _create(LocalTable(start))
        trial = FaultyStorage(copy_of(start))
        act(LocalTable(trial))
        for call in range(1, len(trial.mutations) + 1):
            storage = copy_of(start)
            try:
                act(LocalTable(FaultyStorage(storage, call, fault)))
            except (SimulatedCrash, LakehouseError):
                left = savepoint_metadata(LocalTable(storage).state)
                assert all(_whole(LocalTable(storage), metadata) for metadata in left.values())
            again = LocalTable(storage)
            create_savepoint(storage, instant=instants[2], lock_timeout_ms=TIMEOUT)
            again.upsert(rows([1], 9))
            assert not len(again.state.timeline.pending())
            again.restore(instants[2])
            assert again.read().sort_by("id") == table.read().sort_by("id")
            delete_savepoint(storage, instants[2], lock_timeout_ms=TIMEOUT)
            assert not [entry for entry in storage.list(".hoodie") if "savepoint" in entry.name]


def _create(table: LocalTable) -> None:
    create_savepoint(table.storage, name="n", lock_timeout_ms=TIMEOUT)


def _delete(table: LocalTable) -> None:
    delete_savepoint(table.storage, "n", lock_timeout_ms=TIMEOUT)


def _whole(table: LocalTable, metadata: object) -> bool:
    pinned = metadata.pinned_files()  # type: ignore[attr-defined]
    return all(table.storage.head(join_path(partition, name)) for partition, names in pinned.items() for name in names)


def test_a_begun_savepoint_is_none_and_goes_with_the_next_one() -> None:
    table, instants = history()
    table.storage.create(state_path(table.storage, f"{instants[0]}.savepoint.inflight"), b"")
    assert list_savepoints(table.state) == []
    create_savepoint(table.storage, lock_timeout_ms=TIMEOUT)
    assert table.storage.head(state_path(table.storage, f"{instants[0]}.savepoint.inflight")) is None
    table.storage.create(state_path(table.storage, f"{instants[0]}.savepoint.inflight"), b"")
    assert delete_savepoint(table.storage, instants[0], lock_timeout_ms=TIMEOUT).files == 0
    assert [made.instant for made in list_savepoints(table.state)] == [instants[2]]


def test_ten_thousand_files_are_pinned_in_a_second() -> None:
    table = new_table()
    table.insert(rows([0], 1))
    _pretend_files(table, 10_000)
    began = time.perf_counter()
    made = create_savepoint(table.storage, lock_timeout_ms=TIMEOUT)
    assert made.files == 10_001
    # A goal of one second on an idle machine; this one may be busy, and the storage of this test is a dictionary.
    assert time.perf_counter() - began < 10


def _pretend_files(table: LocalTable, count: int) -> None:
    """As many more files that the one commit of the table names."""
    state = table.state
    (commit,) = state.timeline.writes().instants
    metadata = state.commit_metadata(commit)
    (stat,) = metadata.write_stats()
    folder, _, name = str(stat.path).rpartition("/")
    stats = [stat]
    for number in range(count):
        group = f"{number:08d}-0000-0000-0000-000000000000-0"
        path = f"{folder}/{group}{name[name.index('_') :]}"
        table.storage.create(path, b"x")
        stats.append(replace(stat, path=path, file_id=group, file_size_in_bytes=1, total_write_bytes=1))
    told = replace(metadata, partition_to_write_stats={str(stat.partition_path): tuple(stats)})
    table.storage.overwrite(f"{state.format.timeline_folder}/{state.format.file_name(commit)}", state.format.encode_commit(told))


def test_rows_as_of_a_savepoint_are_readable_after_a_clean() -> None:
    table, instants = history()
    expected = table.read(as_of=instants[1])
    create_savepoint(table.storage, instant=instants[1], lock_timeout_ms=TIMEOUT)
    table.upsert(rows([2], 5))
    table.clean(1)
    found = table.read(as_of=instants[1])
    assert isinstance(found, pa.Table)
    assert found.sort_by("id") == expected.sort_by("id")
