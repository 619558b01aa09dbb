"""Reads in object stores find files by the metadata table, and list the table wherever that one is wrong, behind or not worth it."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from obstore.store import MemoryStore

from lakehouse_engine import HoodieTable
from lakehouse_engine.errors import MissingFileError
from lakehouse_engine.read import listed
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.storage.objects import store as object_store
from lakehouse_engine.storage.objects.store import ObjectStorage
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.fixtures import EVERY_VERSION, spark_fixtures, unpack_spark_fixture
from tests.support.readers import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64())])
PARTITIONS = 10
WITH_FILES = {"hoodie.metadata.enable": "true"}


def rows(numbers: range, value: int = 0) -> pa.Table:
    columns = {"id": [f"k{one}" for one in numbers], "part": [f"p{one % PARTITIONS}" for one in numbers], "n": [value] * len(numbers)}
    return pa.table(columns, schema=SCHEMA)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> ObjectStorage:
    held = MemoryStore()
    monkeypatch.setattr(object_store, "_from_url", lambda location, **settings: held)
    return ObjectStorage.at(f"s3://bucket-{uuid.uuid4().hex}/t")


@pytest.fixture(autouse=True)
def worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed, "FROM_FILES", 1)
    monkeypatch.setattr(listed, "FROM_PARTITIONS", 2)


def table_in(bucket: ObjectStorage, kind: str) -> HoodieTable:
    """A table with commits of several kinds, whose metadata table has every one."""
    spec = TableSpec(name="t", schema=SCHEMA, record_key=["id"], partition_by=["part"], table_type=kind, properties=WITH_FILES)
    create_table(bucket, spec)
    table = HoodieTable(bucket)
    table.bulk_insert(rows(range(40)))
    table.upsert(rows(range(0, 40, 3), 1))
    table.delete(pa.table({"id": ["k7"], "part": ["p7"]}))
    assert table.config.metadata_partitions == ("files",)
    return table


class Calls:
    """What is asked of a storage for data files: listings, by path."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found: list[str] = []
        for name in ("list", "walk_up_to", "walk"):
            real = getattr(ObjectStorage, name)

            def counted(storage: ObjectStorage, path: str = "", *given: object, _real: object = real) -> object:
                if ".hoodie" not in f"{storage.root}/{path}":
                    self.found.append(path)
                return _real(storage, path, *given)  # type: ignore[operator]

            monkeypatch.setattr(ObjectStorage, name, counted)

    def take(self) -> list[str]:
        found, self.found = self.found, []
        return found


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


def paths(state: TableState, query: Query) -> list[str]:
    plan = plan_query(state, query)
    return sorted([*(file.path for file in plan.base_files()), *(log.path for piece in plan.logged for log in piece.slice.log_files)])


def queries(table: HoodieTable) -> list[Query]:
    first = next(iter(table.state.timeline.completed().writes())).requested_time
    some = pc.field("part").isin([f"p{number}" for number in range(5)])
    kinds = [Query(), Query(filters=some), Query("read_optimized"), Query(as_of=first), Query(as_of=first, filters=some)]
    return [*kinds, Query("incremental", begin=first), Query("incremental", begin="000", end=first)]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_files_are_found_without_a_listing_and_are_those_of_one(bucket: ObjectStorage, calls: Calls, kind: str) -> None:
    table = table_in(bucket, kind)
    for query in queries(table):
        state = TableState.load(bucket)
        calls.take()
        found = paths(state, query)
        assert calls.take() == []
        assert state.view.rests_on_kept
        assert found == paths(TableState.load(bucket).refresh(), query)
        assert len(calls.take()) > 0
    assert len(table.to_arrow()) == 39


def test_a_table_without_partitions_is_found_there_too(bucket: ObjectStorage, calls: Calls) -> None:
    create_table(bucket, TableSpec(name="t", schema=SCHEMA, record_key=["id"], partition_by=[], table_type="mor", properties=WITH_FILES))
    table = HoodieTable(bucket)
    table.bulk_insert(rows(range(4)))
    table.upsert(rows(range(2), 1))
    calls.take()
    assert sorted(HoodieTable(bucket).to_arrow()["n"].to_pylist()) == [0, 0, 1, 1]
    assert calls.take() == []


def test_a_few_partitions_and_small_tables_are_listed(bucket: ObjectStorage, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    table_in(bucket, "cow")
    calls.take()
    paths(TableState.load(bucket), Query(filters=pc.field("part") == "p3"))
    assert calls.take() == ["part=p3"]
    monkeypatch.setattr(listed, "FROM_FILES", 1000)
    state = TableState.load(bucket)
    paths(state, Query())
    assert calls.take() == [""]
    assert not state.view.rests_on_kept


def test_a_handle_asks_again_only_about_what_was_touched(bucket: ObjectStorage, calls: Calls) -> None:
    table = table_in(bucket, "cow")
    handle = HoodieTable(bucket)
    before = handle.to_arrow()
    calls.take()
    assert_same_rows(handle.to_arrow(), before)
    table.upsert(pa.table({"id": ["k3"], "part": ["p3"], "n": [9]}, schema=SCHEMA))
    calls.take()
    assert handle.to_arrow(filters=pc.field("n") == 9)["id"].to_pylist() == ["k3"]
    assert calls.take() == ["part=p3"]


def test_what_reads_found_by_the_metadata_table_is_no_listing_for_writes(bucket: ObjectStorage, calls: Calls) -> None:
    table = table_in(bucket, "cow")
    handle = HoodieTable(bucket)
    handle.to_arrow()
    (gone, *_) = plan_query(table.state, Query()).files
    bucket.delete(gone.path)
    with pytest.raises(MissingFileError, match=gone.name):
        handle.upsert(pa.table({"id": ["k3"], "part": [gone.partition_path.removeprefix("part=")], "n": [9]}, schema=SCHEMA))
    calls.take()
    assert handle.state.view.partitions() == [f"part=p{number}" for number in range(PARTITIONS)]
    assert calls.take() != []


def test_a_lost_file_is_missed_when_it_is_opened_after_the_table_was_listed(bucket: ObjectStorage, calls: Calls) -> None:
    table = table_in(bucket, "cow")
    (gone, *_) = plan_query(table.state, Query()).files
    bucket.delete(gone.path)
    assert gone in plan_query(TableState.load(bucket), Query()).files
    calls.take()
    with pytest.raises(MissingFileError, match=gone.name):
        HoodieTable(bucket).to_arrow()
    assert calls.take() != []


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_metadata_table_that_lags_is_not_believed(
    bucket: ObjectStorage, calls: Calls, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    table = table_in(bucket, kind)
    newest = table.state.timeline.completed().writes().last()
    assert newest is not None
    metadata = [entry for entry in bucket.walk(".hoodie/metadata/.hoodie") if newest.requested_time in entry.name]
    assert metadata
    for entry in metadata:
        bucket.delete(entry.path)
    calls.take()
    assert len(HoodieTable(bucket).to_arrow()) == 39
    assert calls.take() == [""]
    assert "files in the metadata table of t" in caplog.text
    assert "does not know of" in caplog.text


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("wrong", ["lacks", "size"])
def test_a_metadata_table_that_contradicts_the_commits_is_not_believed(
    bucket: ObjectStorage, calls: Calls, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: str, wrong: str
) -> None:
    expected = table_in(bucket, kind).to_arrow()
    real = listed._stored

    def changed(path: str, files: pa.Table) -> object:
        found = real(path, files)
        if path != "part=p4":
            return found
        return [] if wrong == "lacks" else [type(one)(one.path, one.size - 1, 0) for one in found]

    monkeypatch.setattr(listed, "_stored", changed)
    calls.take()
    assert_same_rows(HoodieTable(bucket).to_arrow(), expected)
    assert calls.take() == [""]
    assert "are not those that its commits demand" in caplog.text


def test_a_metadata_table_that_knows_no_partition_is_not_believed(
    bucket: ObjectStorage, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = table_in(bucket, "cow").to_arrow()
    monkeypatch.setattr(listed, "partition_paths", lambda table: ["part=p1"])
    calls.take()
    assert_same_rows(HoodieTable(bucket).to_arrow(), expected)
    assert calls.take() == [""]


def test_files_that_no_commit_named_are_not_read(bucket: ObjectStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_in(bucket, "cow")
    base = plan_query(table.state, Query()).files[0]
    stray = base.path.replace(base.write_token, "7-7-7")
    real = listed._stored

    def more(path: str, files: pa.Table) -> object:
        found = real(path, files)
        return [*found, type(found[0])(stray, 1, 0)] if path == base.partition_path else found

    monkeypatch.setattr(listed, "_stored", more)
    plan = plan_query(TableState.load(bucket), Query())
    assert base in plan.files
    assert stray not in {file.path for file in plan.files}


def test_a_damaged_file_of_the_metadata_table_costs_a_warning(bucket: ObjectStorage, caplog: pytest.LogCaptureFixture) -> None:
    expected = table_in(bucket, "cow").to_arrow()
    for entry in bucket.list(".hoodie/metadata/files"):
        bucket.overwrite(entry.path, b"x" * 10)
    assert_same_rows(HoodieTable(bucket).to_arrow(), expected)
    assert "is not used" in caplog.text


def test_directories_of_this_machine_are_listed() -> None:
    storage = MemoryStorage()
    create_table(storage, TableSpec(name="t", schema=SCHEMA, record_key=["id"], partition_by=["part"], properties=WITH_FILES))
    table = HoodieTable(storage)
    table.bulk_insert(rows(range(40)))
    state = table.state
    assert len(plan_query(state, Query()).files) == PARTITIONS
    assert not state.view.rests_on_kept


@pytest.mark.parametrize("name", [one for one in spark_fixtures(EVERY_VERSION) if one.endswith(("_metadata", "_defaults"))])
def test_tables_of_hudi_have_the_same_files(name: str, tmp_path: Path, bucket: ObjectStorage, calls: Calls) -> None:
    folder = unpack_spark_fixture(name, tmp_path)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.endswith(".crc"):
            bucket.create(path.relative_to(folder).as_posix(), path.read_bytes())
    table = HoodieTable(bucket)
    calls.take()
    for query in (Query(), Query("read_optimized")):
        state = TableState.load(bucket)
        found = paths(state, query)
        assert calls.take() == []
        assert found == paths(TableState.load(bucket).refresh(), query)
        calls.take()
    assert_same_rows(table.to_arrow(), HoodieTable.open(str(folder)).to_arrow())
