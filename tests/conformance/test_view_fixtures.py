"""The view over tables that Apache Hudi wrote, held against the write stats of their commits."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.view.table_state import TableState
from tests.support.fixtures import expected_readings, rs_fixtures, spark_fixtures, unpack_rs_fixture, unpack_spark_fixture

COPY_ON_WRITE = spark_fixtures(table_type="cow")
MERGE_ON_READ = spark_fixtures(table_type="mor")
V6_OF_HUDI_RS = [name for name in rs_fixtures() if "__v6_" in name]

if not COPY_ON_WRITE or not V6_OF_HUDI_RS:
    pytest.skip("the tables written by Apache Hudi are not here (LAKEHOUSE_FIXTURES)", allow_module_level=True)


def opened(name: str, target: Path) -> TableState:
    folder = unpack_spark_fixture(name, target) if "/" in name else unpack_rs_fixture(name, target)
    return TableState.load(LocalStorage(str(folder)))


def writes(state: TableState) -> Iterator[Instant]:
    return iter(state.timeline.completed().writes())


def base_file_of(state: TableState, instant: Instant) -> dict[FileGroupId, str]:
    """Base files that a commit wrote, by group."""
    written = {}
    for partition, stats in state.commit_metadata(instant).partition_to_write_stats.items():
        for stat in stats:
            if stat.file_id and stat.path and not stat.path.rpartition("/")[2].startswith("."):
                written[FileGroupId(partition, stat.file_id)] = stat.path
    return written


def expected_as_of(state: TableState, as_of: str) -> dict[FileGroupId, str]:
    """The newest base file of each group that commits up to `as_of` wrote and none of them replaced."""
    live: dict[FileGroupId, str] = {}
    replaced: set[FileGroupId] = set()
    for instant in writes(state):
        if instant.requested_time <= as_of:
            live.update(base_file_of(state, instant))
            for partition, file_ids in (state.commit_metadata(instant).partition_to_replace_file_ids or {}).items():
                replaced |= {FileGroupId(partition, file_id) for file_id in file_ids}
    return {group: path for group, path in live.items() if group not in replaced}


def found_as_of(state: TableState, as_of: str) -> dict[FileGroupId, str]:
    return {piece.group: piece.base_file.path for piece in state.view.slices_as_of(as_of) if piece.base_file is not None}


def archived(state: TableState) -> bool:
    folder = f"{state.format.timeline_folder}/{state.config.archive_folder}"
    return any(not entry.is_directory for entry in state.storage.list(folder))


def cleaned(state: TableState) -> bool:
    return any(instant.action is Action.CLEAN for instant in state.timeline.completed())


@pytest.mark.parametrize("name", COPY_ON_WRITE + [name for name in V6_OF_HUDI_RS if "__cow__" in name])
def test_copy_on_write_slices_are_those_of_the_write_stats_now_and_at_every_instant(name: str, tmp_path: Path) -> None:
    state = opened(name, tmp_path)
    newest = state.timeline.completed().writes().last()
    if newest is None:
        assert state.view.latest_slices() == []
        return
    expected = expected_as_of(state, newest.requested_time)
    found = {piece.group: piece.base_file.path for piece in state.view.latest_slices() if piece.base_file is not None}
    if archived(state):
        # Groups that only archived commits wrote to are in the listing alone.
        assert expected.items() <= found.items()
        start = state.timeline.start
        assert start is not None
        rest = [piece for piece in state.view.latest_slices() if piece.group not in expected]
        assert all(piece.base_instant < start.requested_time for piece in rest)
    else:
        assert found == expected
    for instant in writes(state):
        expected, found = expected_as_of(state, instant.requested_time), found_as_of(state, instant.requested_time)
        if cleaned(state) or archived(state):
            # What is left of an old instant is right, though a clean may have taken some of it.
            stored = {path for path in expected.values() if state.storage.head(path) is not None}
            assert stored <= set(found.values())
        else:
            assert found == expected


def rows_of(state: TableState, slices: Iterable[FileSlice]) -> int:
    files = [piece.base_file.path for piece in slices if piece.base_file is not None]
    return sum(pq.read_metadata(f"{state.storage.root}/{path}").num_rows for path in files)


@pytest.mark.parametrize("name", COPY_ON_WRITE + MERGE_ON_READ)
def test_base_files_of_the_slices_hold_as_many_rows_as_hudi_reads(name: str, tmp_path: Path) -> None:
    state = opened(name, tmp_path)
    checked = 0
    for query, answer in expected_readings(name)[1].items():
        if "rows" not in answer or (name in MERGE_ON_READ and query != "read_optimized"):
            continue
        if query in ("snapshot", "read_optimized"):
            slices = state.view.latest_slices()
        elif query.startswith("as_of_"):
            slices = state.view.slices_as_of(query.removeprefix("as_of_"))
        else:
            continue
        assert rows_of(state, slices) == answer["rows"], query
        checked += 1
    if not checked:
        pytest.skip("Hudi itself answered every such query with an error")


@pytest.mark.parametrize("name", MERGE_ON_READ + [name for name in V6_OF_HUDI_RS if "__mor__" in name])
def test_merge_on_read_slices_have_every_base_and_log_file_of_the_write_stats(name: str, tmp_path: Path) -> None:
    state = opened(name, tmp_path)
    newest = state.timeline.completed().writes().last()
    if newest is None:
        assert state.view.latest_slices() == []
        return
    expected = expected_as_of(state, newest.requested_time)
    latest = {piece.group: piece for piece in state.view.latest_slices()}
    found = {group: piece.base_file.path for group, piece in latest.items() if piece.base_file is not None}
    assert expected.items() <= found.items()
    start = state.timeline.start
    assert start is not None
    assert all(
        path.rpartition("_")[2].removesuffix(".parquet") < start.requested_time for path in set(found.values()) - set(expected.values())
    )
    gone = state.view.replaced_as_of()
    for instant in writes(state):
        for stat in state.commit_metadata(instant).write_stats():
            name_of_file = (stat.path or "").rpartition("/")[2]
            if not name_of_file.startswith(".") or name_of_file.endswith(".cdc") or stat.file_id is None:
                continue
            group = FileGroupId(stat.partition_path or "", stat.file_id)
            base_instant = name_of_file.split(".log.")[0].rpartition("_")[2]
            if group in gone:
                assert group not in latest
            elif base_instant >= latest[group].base_instant:
                assert name_of_file in {log.name for log in latest[group].log_files}
            else:
                assert name_of_file not in {log.name for log in latest[group].log_files}


@pytest.mark.parametrize("name", [name for name in MERGE_ON_READ if "compaction_pending" in name])
def test_logs_of_a_pending_compaction_lie_on_the_slice_before_it(name: str, tmp_path: Path) -> None:
    state = opened(name, tmp_path)
    (pending,) = [instant for instant in state.timeline.pending() if instant.action is Action.COMPACTION]
    merged = [piece for piece in state.view.latest_slices() if any(log.instant_time == pending.requested_time for log in piece.log_files)]
    assert merged
    for piece in merged:
        assert piece.base_file is not None
        assert piece.base_instant == piece.base_file.instant_time < pending.requested_time
        instants = [log.instant_time for log in piece.log_files]
        assert instants == sorted(instants)
        (before,) = [old for old in state.view.slices_as_of(piece.base_instant, piece.partition_path) if old.group == piece.group]
        assert before.base_file == piece.base_file


@pytest.mark.parametrize("name", COPY_ON_WRITE + MERGE_ON_READ + V6_OF_HUDI_RS)
def test_no_slice_has_files_of_a_pending_or_unknown_write(name: str, tmp_path: Path) -> None:
    state = opened(name, tmp_path)
    pending = {instant.requested_time for instant in state.timeline.pending().writes()}
    for partition in state.view.partitions():
        for group in state.view.file_groups(partition):
            for piece in group.slices:
                assert piece.base_file is None or (piece.base_instant not in pending and state.timeline.is_committed(piece.base_instant))


@pytest.mark.parametrize("name", COPY_ON_WRITE + MERGE_ON_READ)
def test_partitions_are_those_that_hold_base_files(name: str, tmp_path: Path) -> None:
    state = opened(name, tmp_path)
    root = Path(state.storage.root)
    holding = {str(path.parent.relative_to(root)) for path in root.rglob("*.parquet") if ".hoodie" not in path.relative_to(root).parts}
    assert {"" if folder == "." else folder for folder in holding} <= set(state.view.partitions())
    assert bool(state.config.partition_fields) == ("" not in state.view.partitions()) or not state.view.partitions()


@pytest.mark.parametrize("name", COPY_ON_WRITE[:3])
def test_opening_a_fixture_is_fast(name: str, tmp_path: Path) -> None:
    folder = unpack_spark_fixture(name, tmp_path)
    begin = time.perf_counter()
    TableState.load(LocalStorage(str(folder)))
    assert time.perf_counter() - begin < 0.2
