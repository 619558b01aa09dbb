"""CALL in a Spark session: answers are DataFrames, and the statements around a call see the table before and after it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import BooleanType, LongType, StringType

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import LakehouseError, RestoreError, TableNotFoundError, UnsupportedSqlError

pytestmark = pytest.mark.spark


@pytest.fixture(params=["cow", "mor"])
def orders(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lakehouse:
    lakehouse = Lakehouse(str(tmp_path / "warehouse"), spark=spark)
    lakehouse.create_schema("shop")
    lakehouse.create_table(
        "shop.orders",
        schema=spark.createDataFrame([(1, "new")], "id bigint, status string").schema,
        record_key=["id"],
        table_type=request.param,
    )
    upsert(lakehouse, (1, "new"), (2, "new"))
    return lakehouse


def upsert(lakehouse: Lakehouse, *rows: tuple[int, str]) -> str:
    values = ", ".join(f"({number}L, '{status}')" for number, status in rows)
    frame = lakehouse.sql(f"select * from values {values} as v (id, status)")
    written = lakehouse.table("shop.orders").upsert(frame)
    assert written.instant is not None
    return written.instant


def rows(lakehouse: Lakehouse, text: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in lakehouse.sql(text).collect()]


def statuses(lakehouse: Lakehouse) -> list[tuple[object, ...]]:
    return rows(lakehouse, "select id, status from shop.orders order by id")


def test_a_session_breaks_a_table_and_brings_it_back(orders: Lakehouse) -> None:
    before = statuses(orders)
    orders.sql("call create_savepoint(table => 'shop.orders', comments => 'why', name => 'monday')")
    orders.sql("update shop.orders set status = 'broken' where id = 1")
    orders.sql("delete from shop.orders where id = 2")
    assert statuses(orders) == [(1, "broken")]
    assert rows(orders, "select id, status from shop.orders version as of 'monday' order by id") == before
    assert rows(orders, "select count(*) from shop.orders timestamp as of 'latest'") == [(2,)]
    (restored,) = orders.sql("call rollback_to_savepoint('shop.orders', 'monday')").collect()
    assert (restored["rollback_savepoint_result"], restored["instants_rolled_back"]) == (True, 2)
    assert statuses(orders) == before
    orders.sql("insert into shop.orders values (3, 'new')")
    assert statuses(orders) == [*before, (3, "new")]


def test_moments_are_counted_back_from_the_newest_commit(orders: Lakehouse) -> None:
    upsert(orders, (1, "paid"))
    upsert(orders, (1, "sent"))
    for moment, status in (("'-2'", "new"), ("'-1'", "paid"), ("-1", "paid"), ("'-0'", "sent")):
        assert rows(orders, f"select status from shop.orders version as of {moment} where id = 1") == [(status,)]


def test_a_compaction_keeps_what_the_session_reads(orders: Lakehouse) -> None:
    upsert(orders, (1, "paid"))
    before = statuses(orders)
    if str(orders.table("shop.orders").config.table_type) != "MERGE_ON_READ":
        with pytest.raises(LakehouseError, match="merge-on-read"):
            orders.sql("call run_compaction('run', 'shop.orders')")
        return
    (done,) = orders.sql("call run_compaction(op => 'run', table => 'shop.orders')").collect()
    assert (done["operation_size"], done["state"]) == (1, "COMPLETED")
    assert rows(orders, "call show_compaction('shop.orders')") == [(done["timestamp"], 1, "COMPLETED")]
    assert statuses(orders) == before
    assert rows(orders, "select id, status from hudi_read_optimized('shop.orders') order by id") == before


def test_cleans_and_archived_instants_are_shown(orders: Lakehouse) -> None:
    for status in ("paid", "sent", "back"):
        orders.sql(f"insert overwrite shop.orders values (1, '{status}')")
    (clean,) = orders.sql("call run_clean(table => 'shop.orders', retain_commits => 1)").collect()
    assert clean["total_files_deleted"] > 0
    assert [row["clean_time"] for row in orders.sql("call show_cleans('shop.orders')").collect()] == [clean["start_clean_time"]]
    orders.sql("call archive_commits(table => 'shop.orders', min_commits => 2, max_commits => 2, retain_commits => 1)")
    shown = {row["instant_time"]: row["timeline_type"] for row in orders.sql("call show_timeline('shop.orders', 100, true)").collect()}
    assert {entry.instant for entry in orders.table("shop.orders").history()} == {time for time, kind in shown.items() if kind == "ACTIVE"}
    assert statuses(orders) == [(1, "back")]


def test_a_table_is_brought_to_another_version_and_read_and_written_there(orders: Lakehouse) -> None:
    before = statuses(orders)
    told = orders.sql("call upgrade_table(table => 'shop.orders', to_version => 'NINE', dry_run => true)").collect()
    assert {row["result"] for row in told} == {False}
    orders.sql("call upgrade_table(table => 'shop.orders', to_version => 'NINE')")
    assert int(orders.table("shop.orders").config.version) == 9
    assert statuses(orders) == before
    orders.sql("insert overwrite shop.orders values (1, 'sent')")
    orders.sql("call downgrade_table('shop.orders', 'SIX')")
    assert int(orders.table("shop.orders").config.version) == 6
    assert statuses(orders) == [(1, "sent")]


def test_answers_have_types_also_when_they_are_empty(orders: Lakehouse) -> None:
    empty = orders.sql("call show_cleans('shop.orders')")
    assert empty.collect() == []
    kinds = {field.name: field.dataType for field in empty.schema.fields}
    assert (kinds["clean_time"], kinds["total_files_deleted"]) == (StringType(), LongType())
    made = orders.sql("call create_savepoint('shop.orders')")
    assert made.schema["create_savepoint_result"].dataType == BooleanType()


def test_a_call_is_done_once_whatever_becomes_of_its_answer(orders: Lakehouse) -> None:
    answer = orders.sql("call create_savepoint('shop.orders')")
    assert len(orders.table("shop.orders").savepoints()) == 1
    answer.collect()
    answer.collect()
    assert len(orders.table("shop.orders").savepoints()) == 1


def test_the_current_schema_completes_the_name_of_a_table(orders: Lakehouse) -> None:
    orders.sql("use shop")
    assert rows(orders, "call show_savepoints(table => 'orders')") == []
    assert len(rows(orders, "call show_commits('orders')\n  limit 5")) == 1


def test_a_refused_call_changes_nothing(orders: Lakehouse) -> None:
    before = orders.table("shop.orders").history()
    with pytest.raises(UnsupportedSqlError, match="did you mean create_savepoint"):
        orders.sql("call create_savepiont('shop.orders')")
    with pytest.raises(TableNotFoundError):
        orders.sql("call create_savepoint('shop.nothing')")
    with pytest.raises(UnsupportedSqlError, match=r"cdc|change data capture"):
        orders.sql("select * from hudi_table_changes('shop.orders', 'cdc', 'earliest')")
    assert orders.table("shop.orders").history() == before


def test_statements_of_other_engines_on_a_table_are_done_or_have_nothing_to_do(orders: Lakehouse) -> None:
    before = statuses(orders)
    orders.table("shop.orders").savepoint(name="monday")
    orders.sql("update shop.orders set status = 'broken'")
    for text in ("analyze table {} compute statistics", "msck repair table {}", "alter table {} recover partitions"):
        [(note,)] = rows(orders, text.format("shop.orders"))
        assert "has nothing to do on shop.orders" in str(note)
    assert rows(orders, "show indexes from shop.orders") == []
    assert orders.sql("vacuum shop.orders").count() <= 1
    assert orders.sql("vacuum shop.orders retain 168 hours dry run").count() <= 1
    assert ("run_clean", "table") in [(name, str(arguments).split(",")[0]) for name, arguments in rows(orders, "call help")]
    orders.sql("restore table shop.orders to version as of 'monday'")
    assert statuses(orders) == before
    upsert(orders, (1, "later"))
    orders.sql("restore table shop.orders to version as of '-1'")
    assert statuses(orders) == before
    with pytest.raises(RestoreError, match="no write up to 2020"):
        orders.sql("restore table shop.orders to timestamp as of '2020-01-01'")
    for text in ("vacuum shop.none", "restore table shop.none to version as of '1'", "show indexes from shop.none"):
        with pytest.raises(TableNotFoundError):
            orders.sql(text)
