"""Blocks of logs that a local session reads as files: what they give is what Arrow reads, and where there is no room they are decoded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import SparkFiles
from pyspark.sql import SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.files.log_scanner import LoggedSlice
from lakehouse_engine.files.slice_reader import SliceChanges, SliceReader
from lakehouse_engine.spark import local_files
from lakehouse_engine.spark.frames import composed
from lakehouse_engine.spark.frames.by_session import BySession
from lakehouse_engine.spark.frames.logged.effects import EffectCache, ThinnedFile
from lakehouse_engine.spark.frames.logged.logged_files import BLOCKS_FROM
from lakehouse_engine.spark.frames.replaced import positions
from lakehouse_engine.spark.frames.replaced.positions import Replaced
from lakehouse_engine.spark.frames.sent import SentFrames
from tests.support.connect_server import classic_only
from tests.support.readers import assert_same_rows

pytestmark = [classic_only("a server's executors are not of this machine"), pytest.mark.usefixtures("unmerged")]

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("price", pa.decimal128(12, 3)),
        ("at", pa.timestamp("us", tz="UTC")),
        ("parts", pa.list_(pa.struct([("a", pa.int32()), ("b", pa.map_(pa.string(), pa.float64()))]))),
    ]
)


def rows(ids: list[int], seed: int) -> pa.Table:
    parts = [None if one % 4 == 0 else [{"a": seed, "b": [("x", one / 7), ("y", None)]}, None] for one in ids]
    columns = [pa.array(ids), pa.array([one % 2 for one in ids], pa.int32()), pa.array([seed * 1000 + one for one in ids])]
    money = columns[2].cast(pa.decimal128(38, 0)).cast(pa.decimal128(12, 3))
    return pa.table([columns[0], columns[1].cast(pa.date32()), money, columns[2].cast(SCHEMA.field("at").type), parts], schema=SCHEMA)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept from before, and every block is a file."""
    monkeypatch.setattr(composed, "EFFECTS", EffectCache(limit=64 * 1024 * 1024))
    monkeypatch.setattr(composed, "BLOCKS_FROM", 0)
    monkeypatch.setattr(local_files, "_written", {})


@pytest.fixture(params=[[], ["day"]], ids=["whole", "partitioned"])
def table(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> HoodieTable:
    """With two logs on each slice, the second of which takes back some of the first."""
    lake = Lakehouse(str(tmp_path), spark=spark)
    lake.create_schema("s")
    made = lake.create_table(
        "s.t", schema=SCHEMA, record_key=["id"], partition_by=request.param, table_type="mor", ordering_fields=["price"]
    )
    made.bulk_insert(rows(list(range(200)), 1))
    made.upsert(rows(list(range(0, 200, 3)), 2))
    made.upsert(rows(list(range(0, 200, 5)), 3))
    return made


def written() -> list[Path]:
    return list(Path(SparkFiles.getRootDirectory()).glob("lakehouse-logs-*/*"))


def assert_as_arrow(table: HoodieTable) -> None:
    assert_same_rows(table.dataframe(meta_columns=True).toArrow(), table.to_arrow(meta_columns=True))


def test_blocks_are_written_once_and_rows_are_right(table: HoodieTable) -> None:
    before, slices = len(written()), len(table.to_arrow(meta_columns=True)["_hoodie_partition_path"].unique())
    for _ in range(2):
        assert_as_arrow(table)
        assert len(written()) - before == 2 * slices
    assert table.dataframe(columns=["price"]).agg({"price": "sum"}).collect()[0][0] == pc.sum(table.to_arrow()["price"]).as_py()
    assert table.dataframe().count() == 200
    assert table.dataframe().where("day = date'1970-01-02'").count() == 100
    assert len(written()) - before == 2 * slices


def test_one_scan_reads_base_files_and_blocks_where_paths_tell_nothing(table: HoodieTable) -> None:
    told = table.to_arrow(meta_columns=True)["_hoodie_partition_path"][0].as_py()
    plan = table.dataframe()._jdf.queryExecution().executedPlan().toString()
    assert plan.count("FileScan parquet") == (2 if told.startswith("day=") else 1)
    assert "ExistingRDD" not in plan


def test_a_log_that_comes_is_written_and_no_other(table: HoodieTable) -> None:
    assert_as_arrow(table)
    before = len(written())
    table.upsert(rows([3], 4))  # of the slice of one day
    assert_as_arrow(table)
    assert len(written()) - before == 3
    table.delete(rows([3, 6], 4).select(["id", "day"]))
    assert_as_arrow(table)


def test_incremental_reads_and_moments(table: HoodieTable) -> None:
    times = [write.requested_time for write in table.timeline.completed().writes()]
    for query in ({"as_of": times[1]}, {"query": "incremental", "begin": times[0]}, {"query": "incremental", "begin": times[1]}):
        assert_same_rows(table.dataframe(meta_columns=True, **query).toArrow(), table.to_arrow(meta_columns=True, **query))  # type: ignore[arg-type]


@pytest.mark.parametrize("salted", [False, True])
def test_frames_can_be_joined_and_filtered(table: HoodieTable, salted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if salted:
        monkeypatch.setattr(positions, "_sizes_are_known", lambda files: False)
        monkeypatch.setattr(composed, "SENT", SentFrames(limit=64 * 1024 * 1024))
    left, right = table.dataframe(), table.dataframe()
    assert left.join(right, left["id"] == right["id"]).count() == 200
    narrowed = table.dataframe(filters=pc.field("day") == pa.scalar(1, pa.int32()).cast(pa.date32()))
    expected = [one for one in range(200) if one % 2 == 1]
    assert sorted(row.id for row in narrowed.where("day = date'1970-01-02'").select("id").collect()) == expected


def take_room(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file can be written for the application: for it has no room, or the disk has none."""
    if why == "room":
        monkeypatch.setattr(local_files, "_MOST", 10)
    else:

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_bytes", full)


@pytest.mark.parametrize("why", ["room", "disk"])
def test_without_room_rows_are_decoded(table: HoodieTable, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = len(written())
    take_room(why, monkeypatch)
    assert_as_arrow(table)
    assert len(written()) == before
    assert_as_arrow(table)
    monkeypatch.undo()
    assert_as_arrow(table)


def test_what_is_written_again_is_told_apart(table: HoodieTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was sent of replaced rows names files, by their names where sizes do not tell."""
    monkeypatch.setattr(positions, "_sizes_are_known", lambda files: False)
    small = SentFrames(limit=64 * 1024 * 1024)
    monkeypatch.setattr(composed, "SENT", small)
    monkeypatch.setattr("lakehouse_engine.spark.frames.logged.logged_files.FILES", BySession(0, lambda one: 1))
    for _ in range(2):
        assert_as_arrow(table)


def test_files_are_used_when_there_is_no_room_for_more(table: HoodieTable, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_as_arrow(table)
    before, read = len(written()), list[str]()
    monkeypatch.setattr(local_files, "_MOST", sum(local_files._written.values()))
    changes = SliceReader.changes

    def counted(self: SliceReader, piece: LoggedSlice, columns: Sequence[str], **how: int | None) -> SliceChanges:
        read.append(piece.slice.file_id)
        return changes(self, piece, columns, **how)

    monkeypatch.setattr(SliceReader, "changes", counted)
    assert_as_arrow(table)
    assert_same_rows(table.dataframe(spark.newSession()).toArrow(), table.to_arrow())
    assert not read
    table.upsert(rows([3], 4))  # of the slice of one day: only that is decoded
    assert_as_arrow(table)
    assert len(read) == 1
    assert len(written()) == before


def test_what_was_sent_is_not_sent_again_for_other_columns(
    table: HoodieTable, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It weighs what its bits do, and not what blocks do, which are of megabytes."""
    slices = len(table.to_arrow(meta_columns=True)["_hoodie_partition_path"].unique())
    kept = SentFrames(limit=200_000)
    monkeypatch.setattr(composed, "SENT", kept)
    before, sent = len(written()), list[int]()
    replaced_of = composed.replaced_of

    def seeing(files: Sequence[ThinnedFile]) -> Replaced:
        found = replaced_of(files)
        sent.append(found.longs.nbytes)
        return found

    monkeypatch.setattr(composed, "replaced_of", seeing)
    for columns in (["id"], ["price"], ["day"], ["id"]):
        table.dataframe(columns=columns).count()
    assert len(written()) - before == 2 * slices
    assert len(sent) == 1
    assert kept.of(spark).size == sent[0]


def test_sessions_share_files(table: HoodieTable, spark: SparkSession) -> None:
    assert_as_arrow(table)
    before = len(written())
    for _ in range(2):
        assert_same_rows(table.dataframe(spark.newSession()).toArrow(), table.to_arrow())
    assert len(written()) == before


@pytest.mark.parametrize("room", [True, False])
def test_files_that_somebody_removed_are_written_again(table: HoodieTable, room: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_as_arrow(table)
    for path in written():
        path.unlink()
    if not room:
        monkeypatch.setattr(local_files, "_MOST", 10)
    assert_as_arrow(table)
    assert bool(written()) == room


def test_small_blocks_are_no_files(table: HoodieTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composed, "BLOCKS_FROM", BLOCKS_FROM)
    before = len(written())
    assert_as_arrow(table)
    assert len(written()) == before


def test_another_session_of_the_application(table: HoodieTable, spark: SparkSession) -> None:
    assert_as_arrow(table)
    assert_same_rows(table.dataframe(spark.newSession()).toArrow(), table.to_arrow())
