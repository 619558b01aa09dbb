"""Small slices that a local session reads merged: what they give is what Arrow reads, and where they are not merged logs are looked at."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import CorruptLogError, MissingFileError
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.spark import local_files
from lakehouse_engine.spark.frames import composed, scanned
from lakehouse_engine.spark.frames.logged import linked_files, merged_files
from lakehouse_engine.spark.frames.logged.merged_files import MOST
from lakehouse_engine.spark.frames.logged.weights import Weight
from tests.spark.test_partition_discovery import files_opened
from tests.support.connect_server import classic_only
from tests.support.properties import edit_properties
from tests.support.readers import assert_same_rows

pytestmark = [classic_only("a server's executors are not of this machine"), pytest.mark.usefixtures("merged")]

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("price", pa.decimal128(12, 3)),
        ("at", pa.timestamp("us", tz="UTC")),
        ("here", pa.timestamp("us")),
        ("city", pa.string()),
        ("parts", pa.list_(pa.struct([("a", pa.int32()), ("b", pa.map_(pa.string(), pa.float64()))]))),
    ]
)


RECONCILED = {"hoodie.datasource.write.reconcile.schema": "true"}
ZONELESS = {"lakehouse.allow.timestamp.ntz": "true"}
DAY = pa.scalar(1, pa.int32()).cast(pa.date32())


def rows(ids: Sequence[int], seed: int) -> pa.Table:
    parts = [None if one % 4 == 0 else [{"a": seed, "b": [("x", one / 7), ("y", None)]}, None] for one in ids]
    numbers = pa.array([seed * 1000 + one for one in ids], pa.int64())
    days = pa.array([one % 3 - 200_000 * (one % 3 == 2) for one in ids], pa.int32()).cast(pa.date32())  # also of before 1582
    money = numbers.cast(pa.decimal128(38, 0)).cast(pa.decimal128(12, 3))
    cities = pa.array([None if one % 5 == 0 else "" if one % 5 == 1 else f"Zürich {one % 7}" for one in ids], pa.string())
    moments = [numbers.cast(SCHEMA.field(name).type) for name in ("at", "here")]
    return pa.table([pa.array(ids, pa.int64()), days, money, *moments, cities, parts], schema=SCHEMA)


@pytest.fixture(params=[[], ["day"]], ids=["whole", "partitioned"])
def table(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> HoodieTable:
    """With two logs on each slice, and deletions."""
    lake = Lakehouse(str(tmp_path), spark=spark)
    lake.create_schema("s")
    made = lake.create_table(
        "s.t",
        schema=SCHEMA,
        record_key=["id"],
        partition_by=request.param,
        table_type="mor",
        ordering_fields=["price"],
        properties=ZONELESS,
    )
    made.bulk_insert(rows(range(210), 1))
    made.upsert(rows(range(0, 240, 3), 2))
    made.upsert(rows(range(1, 210, 3), 2))
    made.upsert(rows(range(2, 210, 3), 2))
    made.delete(rows(range(0, 210, 30), 2).select(["id", "day"]))
    return made


@pytest.fixture(autouse=True)
def own_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_files, "_written", {})


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The groups whose slices were merged."""
    seen: list[str] = []
    content = merged_files._content

    def seeing(reader: SliceReader, piece: LoggedSlice) -> bytes:
        seen.append(piece.slice.file_id)
        return content(reader, piece)

    monkeypatch.setattr(merged_files, "_content", seeing)
    return seen


def slices(table: HoodieTable) -> int:
    return len(table.to_arrow(meta_columns=True)["_hoodie_partition_path"].unique())


def assert_as_arrow(table: HoodieTable, spark: SparkSession | None = None) -> None:
    assert_same_rows(table.dataframe(spark, meta_columns=True).toArrow(), table.to_arrow(meta_columns=True))


def plan_of(table: HoodieTable) -> str:
    return str(table.dataframe()._jdf.queryExecution().executedPlan().toString())


def written() -> list[Path]:
    return list(Path(SparkFiles.getRootDirectory()).glob("lakehouse-logs-*/*"))


def test_one_scan_reads_all(table: HoodieTable, read: list[str]) -> None:
    for _ in range(2):
        assert_as_arrow(table)
        plan = plan_of(table)
        assert plan.count("FileScan parquet") == 1
        assert "Union" not in plan
        assert " Filter (" not in plan
    assert table.dataframe(columns=["price"]).agg({"price": "sum"}).collect()[0][0] == pc.sum(table.to_arrow()["price"]).as_py()
    assert table.dataframe().where("day = date'1970-01-02'").count() == pc.sum(pc.equal(table.to_arrow()["day"], DAY)).as_py()
    assert len(read) == len(set(read)) == slices(table)
    left, right = table.dataframe(), table.dataframe()
    assert left.join(right, left["id"] == right["id"]).count() == len(table.to_arrow())


@pytest.mark.parametrize("most", [64, 1])
@pytest.mark.parametrize("table", [["day"]], indirect=True)
def test_base_files_without_logs_are_in_the_same_scan(table: HoodieTable, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By links where directories tell values, unless they are many. Both ways Spark skips files by their partitions."""
    monkeypatch.setattr(linked_files, "MOST", most)
    table.compact()
    table.upsert(rows([3], 4))
    assert_as_arrow(table)
    plan = plan_of(table)
    assert plan.count("FileScan parquet") == (1 if most > 1 else 2)
    assert " Filter (" not in plan
    for day, files in ((0, 1), (1, 1), (5, 0)):
        frame = table.dataframe().where(f"datediff(day, date'1970-01-01') = {day}")
        assert files_opened(frame) == files
        assert_same_rows(frame.toArrow(), table.to_arrow().filter(pc.field("day").cast(pa.int32()) == day))


@pytest.mark.parametrize("table", [["day"]], indirect=True)
def test_links_that_somebody_removed_are_made_again(table: HoodieTable) -> None:
    for _ in range(2):
        assert_as_arrow(table)
        for link in Path(SparkFiles.getRootDirectory()).glob("lakehouse-links-*/**/*.parquet"):
            link.unlink()


@pytest.mark.parametrize("table", [["day"]], indirect=True)
def test_without_links_files_are_read_where_they_are(table: HoodieTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "symlink_to", refused)
    table.compact()
    table.upsert(rows([3], 4))
    assert_as_arrow(table)
    assert plan_of(table).count("FileScan parquet") == 2


@pytest.mark.parametrize("table", [["day"]], indirect=True)
def test_a_linked_base_file_that_is_lost_is_named(table: HoodieTable) -> None:
    table.compact()
    table.upsert(rows([3], 4))
    assert_as_arrow(table)
    lost = next(Path(table.path).glob("day=1970-01-02/*.parquet"))
    for path in Path(table.path).glob("day=1970-01-02/*.parquet"):
        path.unlink()
    with pytest.raises(MissingFileError, match=lost.parent.name):
        table.dataframe()


def test_a_log_that_comes_has_its_slice_merged_and_no_other(table: HoodieTable, read: list[str]) -> None:
    assert_as_arrow(table)
    read.clear()
    table.upsert(rows([3], 4))
    assert_as_arrow(table)
    assert len(read) == 1
    table.delete(rows([3, 6], 4).select(["id", "day"]))
    assert_as_arrow(table)


def test_moments_and_changes(table: HoodieTable) -> None:
    """Of what changed between two commits nothing is merged: most rows of the base files are not asked for."""
    times = [write.requested_time for write in table.timeline.completed().writes()]
    moments = [{"as_of": times[number]} for number in (1, 3)]
    for query in (*moments, *({"query": "incremental", "begin": times[number]} for number in (0, 2))):
        assert_same_rows(table.dataframe(meta_columns=True, **query).toArrow(), table.to_arrow(meta_columns=True, **query))  # type: ignore[arg-type]
    before = len(written())
    table.upsert(rows([4], 6))
    assert_same_rows(
        table.dataframe(query="incremental", begin=times[2]).toArrow(), table.to_arrow(query="incremental", begin=times[2])
    )
    assert len(written()) == before


@pytest.mark.parametrize("bound", ["slices", "stored", "values", "decoded"])
def test_what_is_too_much_at_once_is_not_merged(table: HoodieTable, bound: str, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged_files, "MOST_AT_ONCE", replace(Weight(1000, 1 << 40, 1 << 40, 1 << 40), **{bound: 0}))
    assert_as_arrow(table)
    assert not read


def test_a_large_slice_is_left_and_others_are_merged(table: HoodieTable, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame has both kinds then."""
    monkeypatch.setattr(merged_files, "MOST", replace(MOST, values=2500))
    table.upsert(rows(range(2000, 2900, 3), 3))
    table.compact()
    table.upsert(rows([0, 1, 2, 3, 2000], 4))
    assert_as_arrow(table)
    groups = set(table.to_arrow(meta_columns=True)["_hoodie_file_name"].to_pylist())
    assert len(read) == len(set(read)) < len(groups)
    assert " Filter (" in plan_of(table)
    if slices(table) > 1:
        assert read


def test_a_slice_without_rows(table: HoodieTable) -> None:
    table.delete(table.to_arrow().select(["id", "day"]))
    assert table.dataframe().count() == 0
    assert plan_of(table).count("FileScan parquet") == 1
    table.upsert(rows([7], 9))
    assert_as_arrow(table)


def test_changes_alone_are_merged(tmp_path: Path, spark: SparkSession) -> None:
    """A slice without a base file."""
    lake = Lakehouse(str(tmp_path), spark=spark)
    lake.create_schema("s")
    bucket = {**ZONELESS, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    made = lake.create_table("s.t", schema=SCHEMA, record_key=["id"], table_type="mor", properties=bucket)
    made.upsert(rows(range(20), 1))
    made.upsert(rows(range(10, 30), 2))
    assert_as_arrow(made)
    assert plan_of(made).count("FileScan parquet") == 1


def test_a_table_without_meta_columns(tmp_path: Path, spark: SparkSession) -> None:
    lake = Lakehouse(str(tmp_path), spark=spark)
    lake.create_schema("s")
    path = lake.create_table("s.t", schema=SCHEMA, record_key=["id"], table_type="mor", properties=ZONELESS).storage.root
    edit_properties(path, {"hoodie.populate.meta.fields=true": "hoodie.populate.meta.fields=false"})
    made = lake.table("s.t")
    made.bulk_insert(rows(range(20), 1))
    made.upsert(rows(range(10, 30), 2))
    assert_same_rows(made.dataframe().toArrow(), made.to_arrow())
    assert plan_of(made).count("FileScan parquet") == 1
    assert made.dataframe(meta_columns=True).where("_hoodie_record_key is not null").count() == 0


def test_columns_come_and_become_wider(table: HoodieTable) -> None:
    table.upsert(rows([0, 500], 7).append_column("more", pa.array([1, 2], pa.int32())), options=RECONCILED)
    assert_as_arrow(table)
    table.upsert(rows([1, 501], 7).append_column("more", pa.array([1, 1 << 40], pa.int64())), options=RECONCILED)
    assert_as_arrow(table)
    assert table.dataframe().where("more > 1").count() == 2


def take_room(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file can be written for the application: for it has no room, or the disk has none."""
    if why == "room":
        monkeypatch.setattr(local_files, "_MOST", 10)
    else:

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_bytes", full)


@pytest.mark.parametrize("why", ["room", "disk"])
def test_without_room_logs_are_looked_at(table: HoodieTable, why: str, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    before = len(written())
    take_room(why, monkeypatch)
    assert table.dataframe().count() == len(table.to_arrow())
    merged = len(read)
    assert bool(merged) == (why == "disk")
    assert table.dataframe().count() == len(table.to_arrow())
    assert len(read) == merged  # not for nothing a second time
    assert len(written()) == before


def test_files_that_somebody_removed_are_written_again(table: HoodieTable) -> None:
    assert_as_arrow(table)
    for path in written():
        path.unlink()
    assert_as_arrow(table)


def test_files_are_used_when_there_is_no_room_for_more(
    table: HoodieTable, read: list[str], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_as_arrow(table)
    before = len(written())
    monkeypatch.setattr(local_files, "_MOST", sum(local_files._written.values()))
    read.clear()
    assert table.dataframe(spark.newSession()).count() == len(table.to_arrow())
    assert plan_of(table).count("FileScan parquet") == 1
    assert not read
    table.upsert(rows([3], 4))
    assert_as_arrow(table)
    assert len(written()) == before


def test_a_base_file_in_the_place_of_another_is_merged_anew(table: HoodieTable, read: list[str]) -> None:
    assert_as_arrow(table)
    read.clear()
    for path in Path(table.storage.root).rglob("*.parquet"):
        os.utime(path, ns=(1, 1))
    table.dataframe().count()
    assert read


@pytest.mark.parametrize("table", [["day"]], indirect=True)
def test_a_base_file_that_goes_while_its_link_is_listed_is_told(
    table: HoodieTable, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    """To Spark a link to nothing is no file."""
    table.compact()
    table.upsert(rows([3, 6], 3))
    listed = max(Path(table.path).glob("day=1970-01-02/*.parquet"), key=lambda path: path.name.rpartition("_")[2])
    gone, scanned_links = listed.with_suffix(".gone"), scanned.scanned_links

    def remove_first(*arguments: Any) -> DataFrame:
        if listed.exists():
            listed.rename(gone)
        return scanned_links(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(composed, "scanned_links", remove_first)
        with pytest.raises(MissingFileError, match=listed.name):
            table.dataframe()
    gone.rename(listed)
    assert_as_arrow(table)


def test_a_damaged_log_is_told_and_leaves_nothing(table: HoodieTable) -> None:
    log = next(Path(table.storage.root).rglob(".*.log.*"))
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    before = len(written())
    with pytest.raises(CorruptLogError):
        table.dataframe()
    assert len(written()) == before


def test_threads_merge_once(table: HoodieTable, read: list[str]) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: table.dataframe().count(), range(4)))
    assert found == [len(table.to_arrow())] * 4
    assert len(read) == slices(table)


@pytest.mark.parametrize("values", [400, 1000])
def test_values_of_logs_count(tmp_path: Path, spark: SparkSession, values: int, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of equal ones a log of few bytes has many."""
    monkeypatch.setattr(merged_files, "MOST", replace(MOST, values=values))
    lake = Lakehouse(str(tmp_path), spark=spark)
    lake.create_schema("s")
    bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    made = lake.create_table("s.t", schema=pa.schema([("id", pa.int64())]), record_key=["id"], table_type="mor", properties=bucket)
    made.upsert(pa.table({"id": [1]}))
    made.upsert(pa.table({"id": range(100)}), options={"hoodie.logfile.data.block.format": "parquet"})
    assert_as_arrow(made)
    assert bool(read) == (values == 1000)


@pytest.mark.parametrize("value", [float("nan"), 1.0])
def test_numbers_that_are_none_are_found(tmp_path: Path, spark: SparkSession, value: float) -> None:
    """Spark has NaN above all numbers, statistics leave it out, and by them 0.0 is not -0.0."""
    lake = Lakehouse(str(tmp_path), spark=spark)
    lake.create_schema("s")
    made = lake.create_table("s.t", schema=pa.schema([("id", pa.int64()), ("p", pa.float64())]), record_key=["id"], table_type="mor")
    made.bulk_insert(pa.table({"id": [1, 2, 3], "p": [0.5, 0.25, -0.0]}))
    made.upsert(pa.table({"id": [2], "p": [value]}))
    assert plan_of(made).count("FileScan parquet") == 1
    assert made.dataframe().where("p > 0.75").toArrow()["id"].to_pylist() == [2]
    assert made.dataframe().where("p = 0.0").toArrow()["id"].to_pylist() == [3]
