"""Frames over base files that a session keeps: nothing is listed twice, and nothing else shows than what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import MissingFileError
from lakehouse_engine.spark.frames import scan
from tests.support.connect_server import classic_only
from tests.support.readers import assert_same_rows

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string())])
SETTING = "spark.sql.sources.parallelPartitionDiscovery.threshold"


@pytest.fixture
def table(lakehouse: Lakehouse) -> HoodieTable:
    """`shop.t`, of forty files: more than Spark lists without a job."""
    simple = {"hoodie.index.type": "SIMPLE"}
    made = lakehouse.create_table("shop.t", schema=SCHEMA, record_key=["id"], partition_by=["day"], properties=simple)
    made.bulk_insert(pa.table({"id": range(80), "day": [f"d{one % 40:02d}" for one in range(80)]}, schema=SCHEMA))
    return made


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files Spark was told to look at, each time."""
    found, original = list[int](), scan._listed

    def counted(spark: Any, plan: Any, paths: Any) -> Any:
        found.append(len(paths))
        return original(spark, plan, paths)

    monkeypatch.setattr(scan, "_listed", counted)
    return found


def test_statements_on_the_same_files_list_them_once(table: HoodieTable, lakehouse: Lakehouse, listed: list[int]) -> None:
    for _ in range(3):
        assert lakehouse.sql("select count(*) from shop.t where id >= 0").collect()[0][0] == 80
    assert lakehouse.sql("select count(distinct day) from shop.t").collect()[0][0] == 40
    assert listed == [40]
    table.upsert(pa.table({"id": [0, 100], "day": ["d00", "d99"]}, schema=SCHEMA))
    assert lakehouse.sql("select count(*) from shop.t").collect()[0][0] == 81
    assert listed == [40, 41]


@classic_only("jobs are counted by a SparkContext")
def test_many_files_are_listed_without_a_job_of_spark(table: HoodieTable, lakehouse: Lakehouse, spark: SparkSession) -> None:
    before, context = spark.conf.get(SETTING), spark.sparkContext
    context.setJobGroup("listing", "what planning runs")
    frame = lakehouse.sql("select id from shop.t")
    assert list(context.statusTracker().getJobIdsForGroup("listing")) == []
    assert spark.conf.get(SETTING) == before
    assert frame.count() == 80


def test_frames_of_the_same_files_can_be_joined(table: HoodieTable, lakehouse: Lakehouse, spark: SparkSession, listed: list[int]) -> None:
    for left, right in (
        (table.dataframe(spark), table.dataframe(spark)),
        (lakehouse.sql("select * from shop.t"), lakehouse.sql("select * from shop.t")),
    ):
        joined = left.join(right, left["id"] == right["id"] + 1)
        assert joined.count() == 79
        assert joined.select(left["id"], right["id"]).where(left["id"] != right["id"] + 1).count() == 0
    assert lakehouse.sql("select 1 from shop.t a join shop.t b on a.id = b.id + 1").count() == 79
    assert listed == [40]


def test_a_file_that_went_is_missed_by_the_next_statement(table: HoodieTable, lakehouse: Lakehouse) -> None:
    lakehouse.sql("select count(*) from shop.t").collect()
    next(Path(table.path, "day=d07").glob("*.parquet")).unlink()
    with pytest.raises(MissingFileError):
        lakehouse.sql("select count(*) from shop.t")


def test_other_columns_and_other_moments_have_frames_of_their_own(table: HoodieTable, lakehouse: Lakehouse) -> None:
    lakehouse.sql("select * from shop.t").collect()
    lakehouse.sql("alter table shop.t add columns (n int)")
    assert_same_rows(lakehouse.sql("select * from shop.t").toArrow(), table.to_arrow())
    assert lakehouse.sql("select * from shop.t version as of '-1'").columns == ["id", "day"]
