"""What Spark skips by the names of directories, and that it never takes other values from them than the files have."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.record.keys.partition_values import PathRules
from lakehouse_engine.spark.frames.partitions import tells_values
from tests.support import connect_server
from tests.support.readers import assert_same_rows

ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["007", "%41", "a=b", "it's", "x y", "1.0", "\u00e9", "a/b", 'q"q', "{z}", "a:b", "null", "#"]),
    "int": (pa.int32(), [-7, 0, 7, None]),
    "long": (pa.int64(), [2**63 - 1, -(2**63), 5, None]),
    "date": (pa.date32(), [dt.date(2026, 1, 1), dt.date(1969, 12, 31), dt.date(1000, 1, 1), None]),
    "boolean": (pa.bool_(), [True, False, None]),
    "decimal": (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-3.00"), Decimal("0.01"), None]),
}


def files_opened(frame: DataFrame) -> int:
    """Run it; the files that its scans of Parquet files opened."""
    if connect_server.WANTED:
        frame.toArrow()
        collected = frame.executionInfo.metrics
        plans = {} if collected is None else {plan.plan_id: plan for plan in collected._metrics}
        return sum(metric.value for plan in plans.values() for metric in plan.metrics if metric.name == "numFiles")
    frame.collect()
    return _files(frame._jdf.queryExecution().executedPlan())


def _files(plan: Any) -> int:
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        return _files(plan.executedPlan())
    if kind.endswith("QueryStageExec"):
        return _files(plan.plan())
    own = plan.metrics().apply("numFiles").value() if kind == "FileSourceScanExec" else 0
    children = plan.children()
    return int(own) + sum(_files(children.apply(number)) for number in range(children.size()))


def days(lakehouse: Lakehouse, table_type: str, count: int = 8, **arguments: Any) -> HoodieTable:
    schema = pa.schema([("id", pa.int64()), ("day", pa.string()), ("n", pa.int64())])
    table = lakehouse.create_table(
        "shop.days", schema=schema, record_key=["id"], partition_by=["day"], table_type=table_type, **arguments
    )
    numbers = list(range(count * 5))
    rows = pa.table({"id": numbers, "day": [f"2026-01-{1 + one % count:02d}" for one in numbers], "n": [0] * len(numbers)}, schema=schema)
    table.bulk_insert(rows)
    table.upsert(rows.slice(0, 2).set_column(2, "n", pa.array([1, 1], pa.int64())))
    return table


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_partition_columns_have_the_values_that_the_files_have(
    name: str, table_type: str, lakehouse: Lakehouse, spark: SparkSession
) -> None:
    kind, values = VALUES[name]
    schema = pa.schema([("p", kind), ("id", pa.int64()), ("q", pa.int32()), ("v", pa.int64())])
    table = lakehouse.create_table(
        "shop.t", schema=schema, record_key=["id"], partition_by=["p", "q"], table_type=table_type, properties=ENCODED
    )
    count = 2 * len(values)
    numbers = list(range(count))
    columns = {"p": pa.array(values * 2, kind), "id": numbers, "q": [one // len(values) for one in numbers], "v": [0] * count}
    rows = pa.table(columns, schema=schema)
    table.insert(rows)
    table.upsert(rows.slice(0, 1).set_column(3, "v", pa.array([1], pa.int64())))
    frame = table.dataframe(spark)
    assert frame.columns == schema.names
    assert_same_rows(frame.toArrow(), table.to_arrow())
    one = frame.where((frame.p == values[1]) & (frame.q == 1)).select("id")
    assert files_opened(one) == 1
    assert [row.id for row in one.collect()] == [len(values) + 1]


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_condition_on_the_partition_opens_its_files_only(table_type: str, lakehouse: Lakehouse) -> None:
    table = days(lakehouse, table_type)
    one = lakehouse.sql("select * from shop.days where day = '2026-01-01'")
    assert files_opened(one) == 1  # type: ignore[arg-type]
    assert_same_rows(one.toArrow(), table.to_arrow().filter(pc.field("day") == "2026-01-01"))  # type: ignore[union-attr]
    some = lakehouse.sql("select sum(n) as s from shop.days where day in ('2026-01-02', '2026-01-03') or day > '2026-01-07'")
    assert files_opened(some) == 3  # type: ignore[arg-type]
    changed = lakehouse.sql("update shop.days set n = n + 10 where day = '2026-01-01'")
    assert changed is not None
    assert sorted(table.to_arrow().filter(pc.field("n") > 5)["id"].to_pylist()) == [0, 8, 16, 24, 32]


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_join_opens_the_partitions_that_it_finds(table_type: str, lakehouse: Lakehouse, spark: SparkSession) -> None:
    days(lakehouse, table_type)
    names = [(f"2026-01-{day:02d}", "x" if day in (2, 4, 6) else "y") for day in range(1, 9)]
    spark.createDataFrame(names, "day string, kind string").createOrReplaceTempView("kinds")
    joined = lakehouse.sql("select /*+ broadcast(k) */ d.id from shop.days d join kinds k on d.day = k.day where k.kind = 'x'")
    assert files_opened(joined) == 3  # type: ignore[arg-type]
    assert joined.count() == 15  # type: ignore[union-attr]


def opened_for_one_day(table: HoodieTable, spark: SparkSession, day: Any) -> int:
    frame = table.dataframe(spark)
    assert_same_rows(frame.toArrow(), table.to_arrow())
    return files_opened(frame.where(frame.day == day))


def test_paths_that_spark_would_read_otherwise_are_not_read_by_it(lakehouse: Lakehouse, spark: SparkSession) -> None:
    plain = pa.table({"id": [1, 2], "day": ["%41", "A"], "n": [0, 0]})
    unencoded = {"hoodie.datasource.write.partitionpath.urlencode": "false"}
    table = lakehouse.create_table("shop.days", schema=plain.schema, record_key=["id"], partition_by=["day"], properties=unencoded)
    table.insert(plain)
    assert opened_for_one_day(table, spark, "A") == 2


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_directory_that_spark_passes_over_is_read_as_it_is(table_type: str, lakehouse: Lakehouse, spark: SparkSession) -> None:
    rows = pa.table({"id": [1, 2, 3], "day": ["x._COPYING_", "._COPYING_", "y"], "n": [0, 0, 0]})
    table = lakehouse.create_table("shop.days", schema=rows.schema, record_key=["id"], partition_by=["day"], table_type=table_type)
    table.insert(rows)
    table.upsert(rows.slice(0, 1))
    assert opened_for_one_day(table, spark, "y") == 3


def test_a_partition_that_holds_nulls_and_empty_texts_is_read_as_it_is(lakehouse: Lakehouse, spark: SparkSession) -> None:
    rows = pa.table({"id": [1, 2, 3], "day": pa.array(["", None, "x"]), "n": [0, 0, 0]})
    table = lakehouse.create_table("shop.days", schema=rows.schema, record_key=["id"], partition_by=["day"])
    table.insert(rows)
    assert opened_for_one_day(table, spark, "x") == 2


def test_a_table_whose_rows_may_be_elsewhere_is_read_as_it_is(lakehouse: Lakehouse, spark: SparkSession) -> None:
    table = days(lakehouse, "cow")
    moved = pa.table({"id": [0], "day": ["2026-01-05"], "n": [7]}, schema=table.schema)
    table.upsert(moved, options={"hoodie.simple.index.update.partition.path": "false"})
    assert opened_for_one_day(table, spark, "2026-01-05") == 8
    found = lakehouse.sql("select n from shop.days where day = '2026-01-05' and id = 0")
    assert [row.n for row in found.collect()] == [7]  # type: ignore[union-attr]


def test_moments_are_read_as_they_are(lakehouse: Lakehouse, spark: SparkSession) -> None:
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
    rows = pa.table({"id": [1, 2], "day": pa.array([moment, moment + dt.timedelta(1)], pa.timestamp("us", "UTC"))})
    table = lakehouse.create_table("shop.days", schema=rows.schema, record_key=["id"], partition_by=["day"])
    table.insert(rows)
    assert opened_for_one_day(table, spark, moment) == 2


def test_paths_without_the_names_of_columns_are_not_for_spark() -> None:
    column = pa.field("day", pa.string())
    named = PathRules((column,), hive_style=True, url_encode=True, fields=("day",))
    assert tells_values(named, ["day=x/a.parquet", "day=y%20/b.parquet"])
    assert not tells_values(replace(named, hive_style=False), ["x/a.parquet"])
    assert not tells_values(replace(named, fields=("Day",)), ["Day=x/a.parquet"])
    assert not tells_values(replace(named, url_encode=False), ["day=x/a.parquet", "day=y%20/b.parquet"])
    assert not tells_values(replace(named, url_encode=False), ["day=x/y/a.parquet"])
    assert not tells_values(None, ["day=x/a.parquet"])
