"""Queries that give little come to the driver; whichever way rows come, a query runs once and the table holds the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import RecordKeyError
from lakehouse_engine.spark import collect_small
from tests.support import connect_server

STAGED, FETCHED = {"lakehouse.stage.driver.max.bytes": "0"}, {"lakehouse.stage.driver.max.bytes": "4194304"}
MIB = 1024 * 1024


@pytest.fixture(params=[STAGED, FETCHED], ids=["staged", "fetched"])
def way(request: pytest.FixtureRequest) -> dict[str, str]:
    return dict(request.param)


@pytest.fixture
def stock(lakehouse: Lakehouse) -> HoodieTable:
    schema = pa.schema([("id", pa.int64()), ("n", pa.string())])
    return lakehouse.create_table("shop.stock", schema=schema, record_key=["id"])


def files(spark: SparkSession, folder: Path, rows: int) -> DataFrame:
    spark.range(0, rows, 1, 2).selectExpr("id", "id % 3 as k").write.parquet(str(folder))
    return spark.read.parquet(str(folder))


def given(spark: SparkSession, text: str) -> pa.Table | DataFrame:
    """What becomes of a query's rows."""
    if connect_server.WANTED:
        pytest.skip("over Spark Connect the rows of every query are staged")
    return collect_small.fetched(spark.sql(text), MIB)


@pytest.mark.parametrize(
    "text",
    [
        "select * from values (1, 'a'), (2, 'b') t(x, y)",
        "select id, rand() from range(10)",
        "select 1 as x union all select 2",
        "select id from numbers where k = 1",
        "select k, count(*) from numbers group by k order by k",
        "select *, row_number() over (partition by k order by id) as r from numbers",
        "select * from numbers where id in (select id + 1 from numbers)",
        "select id from huge limit 7",
        "select count(*) from huge",
    ],
)
def test_a_plan_that_gives_little_is_fetched(spark: SparkSession, tmp_path: Path, text: str) -> None:
    files(spark, tmp_path / "numbers", 30).createOrReplaceTempView("numbers")
    spark.range(10**9).createOrReplaceTempView("huge")
    rows = given(spark, text)
    assert isinstance(rows, pa.Table)
    assert rows.num_rows == spark.sql(text).count()


@pytest.mark.parametrize("text", ["select id from range(1000000)", "select a.id from range(300) a join range(300) b on a.id > b.id + 1"])
def test_a_plan_that_reads_more_or_makes_more_of_it_is_not_proven_small(spark: SparkSession, text: str) -> None:
    assert isinstance(collect_small.fetched(spark.sql(text), 1000), DataFrame)


def is_gone(frame: DataFrame) -> bool:
    """Whether Spark keeps nothing of it any more, or, over Connect, has nothing that it names."""
    try:
        return not frame.is_cached
    except PySparkException as error:
        return connect_server.WANTED and "TABLE_OR_VIEW_NOT_FOUND" in str(error)


NESTED = (
    "named_struct('a', array(id), 'm', map('k', date'2026-01-02')) as s, timestamp'2026-01-02 03:04:05.000006' as at, 1.50 as d, null as n"
)


@pytest.mark.parametrize("rows", [0, 7, 200_000])
def test_rows_that_are_read_twice_are_the_same_and_stay_no_longer_than_they_are_needed(spark: SparkSession, rows: int) -> None:
    query = spark.sql(f"select id, rand() as chance, {NESTED} from range({rows})")
    with collect_small.computed_once(query, 1000) as kept:
        assert [(one.name, one.dataType.simpleString()) for one in kept.schema] == [
            (one.name, one.dataType.simpleString()) for one in query.schema
        ]
        assert kept.isEmpty() == (rows == 0)
        first, second = kept.toArrow(), kept.toArrow()
        assert first.num_rows == rows
        assert first.equals(second)
        assert first.drop_columns(["chance"]).equals(query.drop("chance").toArrow().cast(first.drop_columns(["chance"]).schema))
    assert is_gone(kept)


def test_columns_that_would_come_back_as_others_are_kept_by_spark(spark: SparkSession) -> None:
    query = spark.sql("select 'a' collate utf8_lcase as t, interval '1' day as i from range(2)")
    with collect_small.computed_once(query, MIB) as kept:
        assert kept.where("t = 'A'").count() == 2
        assert kept.schema == query.schema
    assert is_gone(kept)


def test_what_a_join_or_an_exploded_column_makes_is_fetched_in_its_order_when_it_turns_out_small(spark: SparkSession) -> None:
    rows = given(spark, "select explode(sequence(5000, 1)) as x")
    assert isinstance(rows, pa.Table)
    assert rows["x"].to_pylist() == list(range(5000, 0, -1))
    many = given(spark, "select a.id from range(20000) a join range(20000) b on a.id = b.id where a.id < 10")
    assert isinstance(many, pa.Table)
    assert sorted(many["id"].to_pylist()) == list(range(10))
    nothing = given(spark, "select a.id from range(20000) a join range(20000) b on a.id = b.id where a.id < 0")
    assert isinstance(nothing, pa.Table)
    assert nothing.schema.names == ["id"]
    assert nothing.num_rows == 0


@connect_server.classic_only("there is no plan to look at")
def test_rows_given_to_create_data_frame_are_fetched(spark: SparkSession) -> None:
    rows = collect_small.fetched(spark.createDataFrame([(i, "x") for i in range(9)], "a int, b string"), MIB)
    assert isinstance(rows, pa.Table)
    assert rows["a"].to_pylist() == list(range(9))


@pytest.mark.parametrize("rows", [3, 400_000], ids=["few", "many"])
def test_a_query_runs_once_whether_it_turns_out_small_or_not(
    stock: HoodieTable, spark: SparkSession, tmp_path: Path, way: dict[str, str], rows: int
) -> None:
    ran = tmp_path / "ran"
    ran.mkdir()

    def note(value: int) -> int:
        with (ran / f"{value}").open("a") as out:
            out.write("x")
        return value

    spark.udf.register("note", note, "int")
    frame = spark.sql(f"select id, string(x) as n from (select x, explode(sequence(1L, {rows}L)) as id from (select note(7) as x))")
    result = stock.upsert(frame, options=way)
    assert (result.inserts, result.updates) == (rows, 0)
    assert [path.name for path in ran.iterdir()] == ["7"]
    assert (ran / "7").read_text() == "x"


def test_the_last_row_of_a_key_counts_either_way(stock: HoodieTable, spark: SparkSession, way: dict[str, str]) -> None:
    values = ", ".join(f"({number % 5}L, 'n{number}')" for number in range(40))
    stock.upsert(spark.sql(f"select * from values {values} t(id, n)"), options=way)
    assert stock.to_arrow(["id", "n"]).sort_by("id")["n"].to_pylist() == ["n35", "n36", "n37", "n38", "n39"]


def test_rows_that_cannot_be_held_are_refused_alike(stock: HoodieTable, spark: SparkSession, way: dict[str, str]) -> None:
    with pytest.raises(RecordKeyError):
        stock.upsert(spark.sql("select cast(null as bigint) as id, 'x' as n"), options=way)
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        stock.upsert(spark.sql("select id div (id - 5) as id, 'x' as n from range(10)"), options=way)
    assert stock.to_arrow().num_rows == 0


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_deletes_and_replaced_rows_are_found_either_way(lakehouse: Lakehouse, spark: SparkSession, way: dict[str, str], kind: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    table = lakehouse.create_table("shop.parts", schema=schema, record_key=["id"], partition_by=["p"], table_type=kind)
    table.bulk_insert(spark.sql("select id, string(id % 3) as p from range(30)"), options=way)
    assert table.delete(spark.sql("select id from values (3L), (4L), (99L) t(id)"), options=way).deletes == 2
    lakehouse.sql("delete from shop.parts where id > 27")
    lakehouse.sql("merge into shop.parts t using (select 1L as id, '2' as p) s on t.id = s.id when matched then delete")
    numbers = table.dataframe(meta_columns=True).where("id in (5, 6)").select("_hoodie_commit_seqno")
    table.replace_rows(spark.sql("select 50L as id, '0' as p"), replaced=numbers, options=way)
    assert sorted(table.to_arrow(["id"])["id"].to_pylist()) == sorted({*range(28), 50} - {1, 3, 4, 5, 6})


@connect_server.classic_only("rows of every query are staged")
def test_python_workers_are_not_needed_for_rows_of_values(
    stock: HoodieTable, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> Iterator[pa.RecordBatch]:
        raise AssertionError("staged")

    monkeypatch.setattr(DataFrame, "mapInArrow", refuse)
    stock.upsert(spark.sql("select id, string(id) as n from range(10)"))
    assert stock.to_arrow().num_rows == 10


@pytest.mark.parametrize("way", [STAGED, {"lakehouse.stage.driver.max.bytes": str(MIB)}], ids=["staged", "measured"])
def test_of_equal_keys_the_last_row_counts_also_where_much_came_of_little(
    stock: HoodieTable, spark: SparkSession, way: dict[str, str]
) -> None:
    stock.upsert(spark.sql("select id % 5 as id, string(id) as n from (select explode(sequence(0L, 399999L)) as id)"), options=way)
    assert stock.to_arrow(["id", "n"]).sort_by("id")["n"].to_pylist() == ["399995", "399996", "399997", "399998", "399999"]


@pytest.mark.parametrize(
    "text",
    [
        "select id, repeat('x', 20000) as n from range(2000)",
        "select id, repeat('x', 20000) as n from range(20000)",
        "select id, collect_list(id) over () as n from range(2000)",
        "select id, array_repeat(id, 2000) as n from kept",
    ],
)
def test_rows_that_an_expression_makes_wide_do_not_come_to_the_driver(spark: SparkSession, text: str) -> None:
    kept = spark.range(20000).cache()
    kept.count()
    kept.createOrReplaceTempView("kept")
    assert isinstance(given(spark, text), DataFrame)
    kept.unpersist()


@pytest.mark.parametrize("name", ["__lakehouse_order", "__Lakehouse_Order"])
def test_a_column_of_any_name_is_kept(spark: SparkSession, name: str) -> None:
    rows = given(spark, f"select explode(sequence(1, 3)) as id, 7 as {name}")
    assert isinstance(rows, pa.Table)
    assert rows.to_pydict() == {"id": [1, 2, 3], name: [7, 7, 7]}


def test_what_a_session_without_hints_makes_of_little_does_not_come_to_the_driver(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.optimizer.disableHints", "true")
    try:
        rows = given(spark, "select k, explode(sequence(1, 100000)) as x from (select distinct k from values (1), (2), (3) t(k))")
        assert isinstance(rows, DataFrame)
        assert rows.count() == 300_000
    finally:
        spark.conf.unset("spark.sql.optimizer.disableHints")


def test_what_was_measured_may_be_more_than_what_is_known_by_its_plan(spark: SparkSession) -> None:
    much = "select id from (select explode(sequence(1L, {rows}L)) as id)"
    rows = given(spark, much.format(rows=2 * MIB // 24))
    assert isinstance(rows, pa.Table)
    assert rows["id"].to_pylist() == list(range(1, 2 * MIB // 24 + 1))
    assert isinstance(given(spark, much.format(rows=collect_small.MEASURED * MIB // 16)), DataFrame)
