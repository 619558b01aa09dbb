"""DataFrames in and out: the same rows as through Arrow, whichever runner does the work."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import RecordKeyError, UnsupportedTypeError
from lakehouse_engine.spark.schema import with_nullable_members
from tests.support.connect_server import classic_only
from tests.support.readers import assert_same_rows, read_with_hudi_rs, user_columns

ROWS = """
    select id, concat('name ', id) as name, cast(id % 2 = 0 as boolean) as even, cast(id as int) as small, cast(id as float) as f,
      id / 3 as d, cast(id as decimal(10, 2)) as money, cast(id as decimal(38, 10)) as wide, cast(concat('b', id) as binary) as bytes,
      date_sub(date'1970-01-02', cast(id as int)) as day,
      timestamp'1969-12-31 23:59:59.123456' + make_dt_interval(0, cast(id as int)) as at,
      array(id, null) as ids, array(named_struct('x', id, 'y', array(id))) as nested, map('k', id, 'n', null) as m,
      named_struct('a', id, 'b', named_struct('c', cast(id as string))) as s, cast(id % 3 as string) as part, id as ts
    from range(0, {count})
"""


def frame(spark: SparkSession, count: int) -> object:
    return spark.sql(ROWS.format(count=count))


@pytest.fixture(params=[("SPARK", "0"), ("LOCAL", "0"), ("LOCAL", "4194304")], ids=["executors", "threads", "fetched"])
def runner(request: pytest.FixtureRequest) -> dict[str, str]:
    return {"lakehouse.task.runner": request.param[0], "lakehouse.stage.driver.max.bytes": request.param[1]}


def make(lakehouse: Lakehouse, spark: SparkSession, **arguments: object) -> HoodieTable:
    schema = frame(spark, 1).schema  # type: ignore[attr-defined]
    return lakehouse.create_table("shop.t", schema=schema, record_key=["id"], ordering_fields=["ts"], partition_by=["part"], **arguments)  # type: ignore[arg-type]


def test_every_type_comes_back_as_it_went_in(lakehouse: Lakehouse, spark: SparkSession, runner: dict[str, str]) -> None:
    table = make(lakehouse, spark)
    table.bulk_insert(frame(spark, 10), options=runner)
    expected = frame(spark, 10).toArrow()  # type: ignore[attr-defined]
    assert_same_rows(table.dataframe().toArrow(), expected)
    assert_same_rows(table.to_arrow(), expected)
    assert_same_rows(user_columns(read_with_hudi_rs(table.path)), expected)


def test_null_structs_among_structs_of_literals(lakehouse: Lakehouse, spark: SparkSession, runner: dict[str, str]) -> None:
    rows = spark.sql(
        "select id, array(named_struct('a', 1, 'b', map('k', named_struct('c', 2))), null) as xs,"
        " map('k', named_struct('d', 1), 'l', null) as m from range(3)"
    )
    table = lakehouse.create_table("shop.n", schema=rows.schema, record_key=["id"])
    table.bulk_insert(rows, options=runner)
    table.upsert(rows.where("id = 1"), options=runner)
    found = table.to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": id, "xs": [{"a": 1, "b": [("k", {"c": 2})]}, None], "m": [("k", {"d": 1}), ("l", None)]} for id in range(3)]


@pytest.mark.parametrize("other", ["x", "X", "a.b"])
def test_null_structs_beside_a_column_of_any_name(spark: SparkSession, other: str) -> None:
    rows = with_nullable_members(spark.sql(f"select array(named_struct('a', 1), null) as x, 2 as `{other}`")).toArrow()
    assert rows.column_names == ["x", other]
    assert [column.to_pylist() for column in rows.columns] == [[[{"a": 1}, None]], [2]]


def test_lists_maps_and_members_of_no_type_come_into_the_stored_columns(
    lakehouse: Lakehouse, spark: SparkSession, runner: dict[str, str]
) -> None:
    nested = "array('a') as tags, map('k', 1) as counts, named_struct('a', 1, 'b', array(date'2020-01-01')) as s"
    stored = spark.sql(f"select 1 as id, {nested}")
    table = lakehouse.create_table("shop.t", schema=stored.schema, record_key=["id"])
    untyped = "array() as tags, map() as counts, named_struct('a', null, 'b', array(null)) as s"
    for number, write in enumerate((table.insert, table.upsert, table.bulk_insert)):
        write(spark.sql(f"select {number} as id, {untyped}"), options=runner)
    found = table.to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": number, "tags": [], "counts": [], "s": {"a": None, "b": [None]}} for number in range(3)]


def test_changes_by_either_runner_give_the_same_table(lakehouse: Lakehouse, spark: SparkSession, runner: dict[str, str]) -> None:
    table = make(lakehouse, spark)
    table.insert(frame(spark, 20), options=runner)
    changed = spark.sql(f"select * from ({ROWS.format(count=30)}) where id >= 15").selectExpr(
        *["upper(name) as name" if name == "name" else name for name in table.schema.names]
    )
    result = table.upsert(changed, options=runner)
    assert (result.inserts, result.updates) == (10, 5)
    result = table.delete(spark.sql("select explode(array(0L, 29L, 77L)) as id"), options=runner)
    assert result.deletes == 2
    rows = {row["id"]: row["name"] for row in table.dataframe().collect()}
    assert set(rows) == set(range(1, 29))
    assert rows[14] == "name 14"
    assert rows[15] == "NAME 15"
    assert_same_rows(table.dataframe(meta_columns=True).toArrow(), table.to_arrow(meta_columns=True))


def test_record_moves_between_partitions(lakehouse: Lakehouse, spark: SparkSession, runner: dict[str, str]) -> None:
    table = make(lakehouse, spark)
    table.insert(frame(spark, 6), options=runner)
    moved = frame(spark, 1).selectExpr(*["'9' as part" if name == "part" else name for name in table.schema.names])  # type: ignore[attr-defined]
    result = table.upsert(moved, options=runner)
    assert (result.inserts, result.updates, result.deletes) == (0, 1, 0)
    assert [row["part"] for row in table.dataframe().where("id = 0").collect()] == ["9"]


def test_bulk_insert_of_unsorted_rows_writes_one_file_a_partition(lakehouse: Lakehouse, spark: SparkSession) -> None:
    schema = pa.schema([("id", pa.int64()), ("day", pa.string())])
    table = lakehouse.create_table("shop.days", schema=schema, record_key=["id"], partition_by=["day"])
    result = table.bulk_insert(spark.range(0, 4000, 1, 4).selectExpr("id", "concat('d', id % 200) as day"))
    assert (result.inserts, result.files_created) == (4000, 200)
    assert len(table.state.view.partitions()) == 200


def test_a_dataframe_is_evaluated_once(lakehouse: Lakehouse, spark: SparkSession) -> None:
    """Keys made by rand() would differ between tagging and writing if the frame were computed twice."""
    table = lakehouse.create_table("shop.r", schema=pa.schema([("id", pa.string()), ("v", pa.int64())]), record_key=["id"])
    table.upsert(spark.sql("select uuid() as id, id as v from range(50)"))
    keys = table.to_arrow(meta_columns=True)
    assert keys.column("_hoodie_record_key").to_pylist() == keys.column("id").to_pylist()


def test_error_of_a_row_on_an_executor_is_the_typed_one_and_nothing_is_left(
    lakehouse: Lakehouse, spark: SparkSession, runner: dict[str, str]
) -> None:
    table = make(lakehouse, spark)
    before = sorted(path.name for path in Path(table.path).rglob("*") if path.is_file() and ".locks" not in path.parts)
    bad = frame(spark, 4).selectExpr(*["cast(null as bigint) as id" if name == "id" else name for name in table.schema.names])  # type: ignore[attr-defined]
    for write in (table.upsert, table.bulk_insert, table.insert_overwrite_table):
        with pytest.raises(RecordKeyError):
            write(bad, options=runner)
    assert len(table.timeline) == 0
    assert sorted(path.name for path in Path(table.path).rglob("*") if path.is_file() and ".locks" not in path.parts) == before


def test_failure_of_the_query_leaves_the_table_as_it_was(lakehouse: Lakehouse, spark: SparkSession) -> None:
    table = lakehouse.create_table("shop.q", schema=pa.schema([("id", pa.int64())]), record_key=["id"])
    table.insert(pa.table({"id": pa.array([1], pa.int64())}))
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        table.upsert(spark.sql("select cast(id / (id - 3) as bigint) as id from range(10)"))
    assert [instant.action.value for instant in table.timeline] == ["commit"]
    assert table.to_arrow().column("id").to_pylist() == [1]


def test_types_that_no_table_can_hold_are_refused_by_column(lakehouse: Lakehouse, spark: SparkSession) -> None:
    with pytest.raises(UnsupportedTypeError, match="gap"):
        lakehouse.create_table("shop.i", schema=spark.sql("select 1 as id, interval '1' day as gap").schema)


def test_rows_come_as_pandas_and_as_record_batches_too(lakehouse: Lakehouse) -> None:
    schema = pa.schema([("id", pa.int64()), ("price", pa.decimal128(10, 2)), ("day", pa.date32())])
    table = lakehouse.create_table("shop.p", schema=schema, record_key=["id"])
    data = pa.table({"id": [1, 2], "price": [decimal.Decimal("1.50"), None], "day": [dt.date(2026, 1, 1), None]}, schema=schema)
    table.upsert(data.to_reader())
    table.upsert(data.to_pandas())
    assert_same_rows(table.to_arrow(), data)


def test_incremental_and_time_travel_agree_with_arrow(lakehouse: Lakehouse, spark: SparkSession) -> None:
    table = make(lakehouse, spark)
    first = table.insert(frame(spark, 6)).instant
    second = table.upsert(frame(spark, 2)).instant
    assert first is not None
    assert second is not None
    for arguments in ({"as_of": first}, {"query": "incremental", "begin": first}, {"query": "incremental", "begin": None, "end": first}):
        assert_same_rows(table.dataframe(**arguments).toArrow(), table.to_arrow(**arguments))  # type: ignore[arg-type]
    assert table.dataframe(query="incremental", begin=first).count() == 2


@classic_only("jobs are counted by a SparkContext")
def test_small_upsert_takes_three_spark_jobs_at_most(lakehouse: Lakehouse, spark: SparkSession, runner: dict[str, str]) -> None:
    table = make(lakehouse, spark)
    table.insert(frame(spark, 20), options=runner)
    context = spark.sparkContext
    group = uuid.uuid4().hex
    context.setJobGroup(group, "jobs of one upsert")
    table.upsert(frame(spark, 5), options={**runner, "lakehouse.write.broadcast.max.bytes": 1 << 20})
    assert 1 <= len(context.statusTracker().getJobIdsForGroup(group)) <= 3
