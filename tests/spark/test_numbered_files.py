"""Files of which logs replace rows, read by links whose directories say where the bits of their rows are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import SparkFiles
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import CorruptFileError
from lakehouse_engine.spark import local_files
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.frames import composed
from lakehouse_engine.spark.frames.logged import effects as frames_effects
from lakehouse_engine.spark.frames.logged.effects import EffectCache
from lakehouse_engine.spark.frames.replaced import numbered
from lakehouse_engine.spark.frames.sent import SentFrames
from tests.spark.test_partition_discovery import files_opened
from tests.support.connect_server import classic_only
from tests.support.readers import assert_same_rows

pytestmark = [classic_only("a server's executors are not of this machine"), pytest.mark.usefixtures("unmerged", "by_number")]

SCHEMA = pa.schema(
    [("id", pa.int64()), ("day", pa.date32()), ("n", pa.int64()), ("price", pa.decimal128(12, 3)), ("tags", pa.list_(pa.string()))]
)
PLACE = "__lakehouse_place"


def rows(ids: Sequence[int], seed: int) -> pa.Table:
    days = pa.array([one % 3 for one in ids], pa.int32()).cast(pa.date32())
    numbers = pa.array([seed * 1000 + one for one in ids], pa.int64())
    money = numbers.cast(pa.decimal128(38, 0)).cast(pa.decimal128(12, 3))
    tags = [None if one % 4 == 0 else ["a", None, str(seed)] for one in ids]
    return pa.table([pa.array(ids, pa.int64()), days, numbers, money, pa.array(tags, pa.list_(pa.string()))], schema=SCHEMA)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept from before, and every block is a file."""
    monkeypatch.setattr(composed, "EFFECTS", EffectCache(limit=64 * 1024 * 1024))
    monkeypatch.setattr(composed, "BLOCKS_FROM", 0)
    monkeypatch.setattr(local_files, "_written", {})


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Lakehouse:
    made = Lakehouse(str(tmp_path), spark=spark)
    made.create_schema("s")
    return made


@pytest.fixture(params=[[], ["day"]], ids=["whole", "partitioned"])
def table(request: pytest.FixtureRequest, lake: Lakehouse) -> HoodieTable:
    """Of row groups of 50 rows, with two logs on each slice, the second of which takes back some of the first."""
    made = lake.create_table(
        "s.t",
        schema=SCHEMA,
        record_key=["id"],
        partition_by=request.param,
        table_type="mor",
        ordering_fields=["n"],
        properties={"lakehouse.parquet.row.group.rows": "50"},
    )
    made.bulk_insert(rows(range(1000), 1))
    made.upsert(rows(range(0, 1020, 7), 2))
    made.upsert(rows([*range(0, 300, 14), 999], 3))
    made.delete(rows(range(0, 210, 30), 3).select(["id", "day"]))
    return made


def assert_as_arrow(table: HoodieTable, **query: Any) -> None:
    assert_same_rows(table.dataframe(meta_columns=True, **query).toArrow(), table.to_arrow(meta_columns=True, **query))


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def is_numbered(table: HoodieTable) -> bool:
    return PLACE in plan_of(table.dataframe())


def test_one_scan_reads_all(table: HoodieTable) -> None:
    for _ in range(2):
        assert_as_arrow(table)
        plan = plan_of(table.dataframe())
        assert plan.count("FileScan parquet") == 1
        assert PLACE in plan
        assert "Union" not in plan
    left, right = table.dataframe(), table.dataframe()
    assert left.join(right, left["id"] == right["id"]).count() == len(table.to_arrow())
    assert table.dataframe(columns=[]).count() == len(table.to_arrow())
    assert_same_rows(table.dataframe(table._spark.newSession()).toArrow(), table.to_arrow())  # type: ignore[union-attr]


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_row_groups_that_a_condition_skips_do_not_move_numbers(table: HoodieTable, vectorized: str, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    found = table.to_arrow()
    for condition, expected in [
        ("id >= 700", pc.field("id") >= 700),
        ("id between 301 and 309", (pc.field("id") >= 301) & (pc.field("id") <= 309)),
        ("id = 14", pc.field("id") == 14),
        ("n > 2000 and id < 500", (pc.field("n") > 2000) & (pc.field("id") < 500)),
        ("id in (7, 499, 500, 994, 1015)", pc.field("id").isin([7, 499, 500, 994, 1015])),
        ("price is null", pc.field("price").is_null()),
    ]:
        assert_same_rows(table.dataframe().where(condition).toArrow(), found.filter(expected))


@pytest.mark.parametrize("table", [["day"]], indirect=True)
def test_files_are_skipped_by_their_partitions(table: HoodieTable, spark: SparkSession) -> None:
    table.dataframe().createOrReplaceTempView("numbered")
    opened = []
    for day in range(3):
        frame = table.dataframe().where(f"datediff(day, date'1970-01-01') = {day}")
        opened.append(files_opened(frame))
        assert_same_rows(frame.toArrow(), table.to_arrow().filter(pc.field("day").cast(pa.int32()) == day))
    assert sum(opened) == files_opened(table.dataframe())
    assert min(opened) > 1
    few = spark.sql("select n.* from numbered n join (select date'1970-01-02' d) on day = d where n.n > 0")
    assert files_opened(few) == opened[1]


def test_moments_and_changes(table: HoodieTable) -> None:
    times = [write.requested_time for write in table.timeline.completed().writes()]
    for query in ({"as_of": times[1]}, {"as_of": times[2]}, *({"query": "incremental", "begin": time} for time in times[:3])):
        assert_as_arrow(table, **query)


def test_rows_at_the_borders_of_words(lake: Lakehouse) -> None:
    """Of files whose sizes are on both sides of powers of two."""
    table = lake.create_table("s.t", schema=SCHEMA, record_key=["id"], partition_by=["day"], table_type="mor")
    counts, borders = {0: 64, 1: 65, 2: 8193}, [0, 1, 62, 63, 64, 65, 127, 128, 4095, 4096, 8191, 8192]
    ids = {day: [3 * row + day for row in range(count)] for day, count in counts.items()}
    table.bulk_insert(rows([one for of_day in ids.values() for one in of_day], 1))
    changed = [of_day[border] for of_day in ids.values() for border in borders if border < len(of_day)]
    table.upsert(rows(changed, 2))
    assert is_numbered(table)
    assert_as_arrow(table)
    assert sorted(row.id for row in table.dataframe().where("n >= id + 2000").collect()) == sorted(changed)


def test_a_log_that_comes_counts(table: HoodieTable) -> None:
    before = table.dataframe()
    expected = table.to_arrow()
    for step in (4, 5):
        table.upsert(rows(range(step, 900, 11), step))
        assert_as_arrow(table)
    assert_same_rows(before.toArrow(), expected)
    table.compact()
    assert_as_arrow(table)


@pytest.mark.parametrize("names", [(PLACE, "__Lakehouse_Replaced"), ("_metadata", "__LAKEHOUSE_PLACE"), ("__lakehouse_place_", PLACE)])
def test_columns_may_be_called_as_those_of_the_scan(names: tuple[str, str], lake: Lakehouse) -> None:
    schema = pa.schema([("id", pa.int64()), *((name, pa.string()) for name in names)])
    table = lake.create_table("s.t", schema=schema, record_key=["id"], table_type="mor")
    table.insert(pa.table([[1, 2, 3], ["a", "b", "c"], ["d", "e", "f"]], schema=schema))
    table.upsert(pa.table([[2], ["x"], ["y"]], schema=schema))
    assert "__lakehouse_place_" in plan_of(table.dataframe())
    assert_as_arrow(table)


@pytest.mark.parametrize("bound", ["rows", "files", "words", "links", "numbers"])
def test_otherwise_rows_are_found_by_what_spark_tells_of_files(table: HoodieTable, bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_numbered(table)

    def refused(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    if bound == "links":
        monkeypatch.setattr(Path, "symlink_to", refused)
    elif bound == "numbers":
        monkeypatch.setattr(type(abilities_of(table._spark)), "numbers_rows", lambda self, column: False)  # type: ignore[arg-type]
    else:
        name, value = {"rows": ("ROWS_FROM", 100_000), "files": ("MOST", 1), "words": ("MOST_WORDS", 3)}[bound]
        monkeypatch.setattr(numbered, name, value)
    table.upsert(rows([3], 4))
    assert not is_numbered(table)
    assert_as_arrow(table)


def test_only_columns_that_are_numbers_of_rows_to_spark_are_taken_for_them(spark: SparkSession) -> None:
    assert abilities_of(spark).numbers_rows(numbered.ROW_NUMBERS)
    assert not abilities_of(spark).numbers_rows("row_index")


def test_without_any_row_that_was_replaced_nothing_is_linked(lake: Lakehouse) -> None:
    bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table = lake.create_table("s.t", schema=SCHEMA, record_key=["id"], table_type="mor", properties=bucket)
    table.upsert(rows(range(20), 1))
    table.upsert(rows(range(20, 40), 1))
    assert not is_numbered(table)
    assert_as_arrow(table)


def test_changes_without_base_files(lake: Lakehouse) -> None:
    bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table = lake.create_table("s.t", schema=SCHEMA, record_key=["id"], table_type="mor", properties=bucket)
    table.upsert(rows(range(20), 1))
    table.upsert(rows(range(10, 30), 2))
    assert is_numbered(table)
    assert_as_arrow(table)


def test_what_was_sent_is_not_sent_again_for_other_columns(table: HoodieTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbered, "SENT", SentFrames(limit=64 * 1024 * 1024))
    sent, words_of = list[int](), numbered.words_of
    monkeypatch.setattr(numbered, "words_of", lambda *given: sent.append(1) or words_of(*given))
    for columns in (["id"], ["price"], ["day"], ["id"]):
        assert_same_rows(table.dataframe(columns=columns).toArrow(), table.to_arrow(columns=columns))
    assert len(sent) == 1


def test_links_that_somebody_removed_are_made_again(table: HoodieTable) -> None:
    for _ in range(2):
        assert_as_arrow(table)
        for link in Path(SparkFiles.getRootDirectory()).glob("lakehouse-links-*/**/*.parquet"):
            link.unlink()


@pytest.mark.parametrize("size", ["same", "other"])
def test_a_base_file_that_changes_while_a_frame_is_made(table: HoodieTable, size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read by the places of rows that it had."""
    scanned_links = numbered.scanned_links

    def changing(*given: Any) -> DataFrame:
        frame = scanned_links(*given)
        for path in Path(table.path).rglob("*.parquet"):
            if size == "other":
                path.write_bytes(path.read_bytes() + b"x")
            else:
                os.utime(path, ns=(1, 1))
        return frame

    monkeypatch.setattr(numbered, "scanned_links", changing)
    if size == "other":
        with pytest.raises(CorruptFileError):
            table.dataframe()
    else:
        assert not is_numbered(table)
        assert_as_arrow(table)


def test_a_file_that_has_more_rows_than_it_had_is_an_error(lake: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    of_a_slice = frames_effects._effect
    monkeypatch.setattr(frames_effects, "_effect", lambda *given: replace(of_a_slice(*given), base_rows=128))
    table = lake.create_table("s.t", schema=SCHEMA, record_key=["id"], table_type="mor")
    table.bulk_insert(rows(range(1000), 1))
    table.upsert(rows([0, 1], 2))
    with pytest.raises(PySparkException, match="more rows"):
        table.dataframe().toArrow()
