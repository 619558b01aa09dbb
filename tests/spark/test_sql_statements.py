"""Statements of users, through the router, against real tables."""

from __future__ import annotations

import datetime as dt
from typing import Any, get_args

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from lakehouse_engine import Lakehouse, WriteResult
from lakehouse_engine.errors import (
    DuplicateKeyError,
    MissingOptionError,
    OptionError,
    RelationNotFoundError,
    SchemaIncompatibleError,
    SqlError,
    TableExistsError,
    UnsupportedSqlError,
)
from lakehouse_engine.sql.grammar import statements
from lakehouse_engine.statements.dispatch import HANDLERS

ORDERS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "name": ["ann", "bob", None, "dee"],
        "ts": pa.array([1, 1, 1, 1], pa.int64()),
        "day": [dt.date(2026, 1, 1), dt.date(2026, 1, 1), dt.date(2026, 1, 2), dt.date(2026, 1, 3)],
    }
)


@pytest.fixture
def orders(lakehouse: Lakehouse) -> Lakehouse:
    table = lakehouse.create_table("shop.orders", schema=ORDERS.schema, record_key=["id"], ordering_fields=["ts"], partition_by=["day"])
    table.bulk_insert(ORDERS)
    return lakehouse


def rows(lakehouse: Lakehouse, text: str, **arguments: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in lakehouse.sql(text, **arguments).collect()]


def names(lakehouse: Lakehouse) -> dict[object, object]:
    return dict(rows(lakehouse, "select id, name from shop.orders"))  # type: ignore[arg-type]


def test_select_reads_the_newest_commit_of_any_writer(orders: Lakehouse) -> None:
    frame = orders.sql("select count(*) from shop.orders")
    Lakehouse(orders.warehouse).table("shop.orders").insert(ORDERS.slice(0, 1).set_column(0, "id", pa.array([9], pa.int64())))
    assert frame.collect()[0][0] == 4, "a statement is pinned to what was committed when it was issued"
    assert rows(orders, "select count(*) from shop.orders") == [(5,)]


def test_cte_subquery_join_and_alias_are_bound(orders: Lakehouse) -> None:
    text = """
        with shop as (select id, name from shop.orders o where o.day < date'2026-01-02')
        select s.id, shop.orders.name from shop s join shop.orders on s.id = shop.orders.id
        where exists (select 1 from shop.orders x where x.id = s.id + 1) order by 1
    """
    assert rows(orders, text) == [(1, "ann"), (2, "bob")]


def test_view_is_stored_and_read_from_another_session(orders: Lakehouse) -> None:
    orders.sql("create view shop.early as select id, name from shop.orders where day = date'2026-01-01'")
    orders.sql("create view shop.early_ids (key comment 'the id') as select id from shop.early")
    other = Lakehouse(orders.warehouse, spark=orders._spark.newSession())
    assert sorted(rows(other, "select key from shop.early_ids")) == [(1,), (2,)]
    with pytest.raises(TableExistsError):
        other.sql("create view shop.orders as select 1 as one")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("v as select 1 as a, 2 as A", SchemaIncompatibleError),
        ("v (a, A) as select 1 as x, 2 as y", SchemaIncompatibleError),
        ("v (a, b) as select 1 as x", SqlError),
        ("v (a) as select 1 as x, 2 as y", SqlError),
        ("`..` as select 1 as a", SqlError),
        (f"{'v' * 240} as select 1 as a", SqlError),
    ],
)
def test_view_that_could_not_be_used_is_not_made(lakehouse: Lakehouse, text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        lakehouse.sql(f"create view shop.{text}")
    assert lakehouse.views() == []
    lakehouse.sql("create view shop.v (a, b) as select 1 as x, 2 as x")
    assert lakehouse.sql("select a, b from shop.v").collect() == [(1, 2)]


def test_view_that_cannot_be_read_is_not_made(orders: Lakehouse) -> None:
    with pytest.raises(AnalysisException):
        orders.sql("create view shop.broken as select nothing from shop.orders")
    assert not orders.exists("shop.broken")


def test_create_table_as_select_keeps_types_and_keys(orders: Lakehouse) -> None:
    result = orders.sql(
        "create table shop.copy using hudi tblproperties (primaryKey = 'id', preCombineField = 'ts') partitioned by (day)"
        " as select *, cast(id as decimal(10,2)) as amount, array(id, null) as ids from shop.orders"
    )
    assert isinstance(result, WriteResult)
    assert result.inserts == 4
    table = orders.table("shop.copy")
    assert table.config.record_key_fields == ("id",)
    assert table.schema.field("amount").type == pa.decimal128(10, 2)
    assert rows(orders, "select id, amount, ids[0] from shop.copy where id = 3") == [(3, 3, 3)]


def test_failed_create_table_as_select_leaves_nothing(orders: Lakehouse) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        orders.sql("create table shop.bad as select id, id / 0 as x from shop.orders")
    assert not orders.exists("shop.bad")


def test_insert_casts_by_position_and_fills_columns_that_are_left_out(orders: Lakehouse) -> None:
    orders.sql("insert into shop.orders values (10, 'x', 5, date'2026-01-09')")
    orders.sql("insert into shop.orders (day, id, ts) select date'2026-01-09', 11, 5")
    assert names(orders)[10] == "x"
    assert names(orders)[11] is None
    with pytest.raises(SqlError, match="4 are expected"):
        orders.sql("insert into shop.orders values (1, 2)")


def test_insert_overwrite_replaces_the_table_or_one_partition(orders: Lakehouse) -> None:
    orders.sql("insert overwrite shop.orders partition (day = '2026-01-01') select 50, 'fifty', 1")
    assert set(names(orders)) == {3, 4, 50}
    orders.sql("insert overwrite table shop.orders select 60, 'sixty', 1, date'2026-05-05'")
    assert set(names(orders)) == {60}


def test_update_and_delete_change_rows_in_one_commit_each(orders: Lakehouse) -> None:
    updated = orders.sql("update shop.orders set name = concat(coalesce(name, '?'), '!') where id >= 3")
    assert (updated.updates, updated.inserts, updated.deletes) == (2, 0, 0)
    assert names(orders) == {1: "ann", 2: "bob", 3: "?!", 4: "dee!"}
    deleted = orders.sql("delete from shop.orders as o where o.id in (select id from shop.orders where name like '%!')")
    assert deleted.deletes == 2
    assert set(names(orders)) == {1, 2}


def test_update_moves_a_row_to_another_partition(orders: Lakehouse) -> None:
    result = orders.sql("update shop.orders set day = date'2026-01-03' where id = 1")
    assert (result.updates, result.inserts, result.deletes) == (1, 0, 0)
    assert rows(orders, "select day from shop.orders where id = 1") == [(dt.date(2026, 1, 3),)]
    with pytest.raises(UnsupportedSqlError, match="key column"):
        orders.sql("update shop.orders set id = 7 where id = 1")


def test_update_and_delete_of_a_table_with_generated_keys(lakehouse: Lakehouse) -> None:
    lakehouse.create_table("shop.log", schema=pa.schema([("line", pa.string())])).insert(pa.table({"line": ["a", "b", "b", "c"]}))
    lakehouse.sql("update shop.log set line = 'B' where line = 'b'")
    lakehouse.sql("delete from shop.log where line = 'c'")
    assert sorted(rows(lakehouse, "select line from shop.log")) == [("B",), ("B",), ("a",)]


MERGE = """
    merge into shop.orders as t using (
      select * from values (1, 'new ann', 2), (2, null, 2), (8, 'hal', 2), (9, null, 2) as v(id, name, ts)
    ) as s on t.id = s.id
    when matched and s.name is null then delete
    when matched then update set name = concat(t.name, ' -> ', s.name), ts = s.ts
    when not matched and s.name is not null then insert (id, name, ts, day) values (s.id, s.name, s.ts, date'2026-02-02')
    when not matched by source and t.name is null then update set name = 'nobody'
"""


def test_merge_updates_deletes_and_inserts_in_one_commit(orders: Lakehouse) -> None:
    result = orders.sql(MERGE)
    assert (result.updates, result.inserts, result.deletes) == (2, 1, 1)
    assert len(orders.table("shop.orders").history()) == 2
    assert names(orders) == {1: "ann -> new ann", 3: "nobody", 4: "dee", 8: "hal"}
    orders.sql(
        "merge into shop.orders using (select 4 as id, 'star' as name, 9 as ts, date'2026-01-03' as day) src on orders.id = src.id"
        " when matched then update set * when not matched then insert *"
    )
    assert names(orders)[4] == "star"


def test_merge_refuses_two_source_rows_for_one_key_and_changed_keys(orders: Lakehouse) -> None:
    with pytest.raises(DuplicateKeyError):
        orders.sql(
            "merge into shop.orders t using (select explode(array('a', 'b')) as n) s on t.id = 1 when matched then update set name = s.n"
        )
    with pytest.raises(UnsupportedSqlError, match="key column"):
        orders.sql("merge into shop.orders t using shop.orders s on t.id = s.id when matched then update set id = 7")
    assert len(orders.table("shop.orders").history()) == 1


def test_every_routed_statement_can_be_carried_out() -> None:
    assert set(HANDLERS) == set(get_args(statements.Statement))


def test_time_travel_and_changes(orders: Lakehouse) -> None:
    first = orders.table("shop.orders").history()[-1].instant
    orders.sql("update shop.orders set name = 'new' where id = 1")
    assert rows(orders, f"select name from shop.orders timestamp as of '{first}' where id = 1") == [("ann",)]
    assert rows(orders, f"select name from shop.orders version as of '{first}' o where o.id = 1") == [("ann",)]
    changed = f"select id, name from hudi_table_changes('shop.orders', 'latest_state', '{first}')"
    assert rows(orders, changed) == [(1, "new")]
    with pytest.raises(OptionError, match="no point in time"):
        orders.sql("select * from shop.orders timestamp as of 'yesterday'")


def test_alter_table_adds_widens_drops_and_renames_columns(orders: Lakehouse) -> None:
    orders.sql("alter table shop.orders add columns (note string comment 'free text', small int)")
    orders.sql("alter table shop.orders alter column small type bigint")
    orders.sql("insert into shop.orders values (5, 'e', 1, date'2026-01-01', 'hello', 12345678901)")
    assert rows(orders, "select note, small from shop.orders where id in (1, 5) order by id") == [(None, None), ("hello", 12345678901)]
    orders.sql("alter table shop.orders drop column small")
    orders.sql("alter table shop.orders rename column note to remark")
    assert orders.table("shop.orders").schema.names == ["id", "name", "ts", "day", "remark"]
    assert rows(orders, "select remark from shop.orders where id = 5") == [("hello",)]
    with pytest.raises(SchemaIncompatibleError):
        orders.sql("alter table shop.orders alter column name type int")


def test_rename_truncate_and_drop(orders: Lakehouse) -> None:
    orders.sql("alter table shop.orders rename to sales")
    assert orders.table("shop.sales").config.name == "sales"
    orders.sql("truncate table shop.sales")
    assert rows(orders, "select count(*) from shop.sales") == [(0,)]
    orders.sql("drop table shop.sales")
    assert orders.tables("shop") == []
    orders.sql("drop table if exists shop.sales")


def test_show_and_describe(orders: Lakehouse) -> None:
    orders.sql("comment on table shop.orders is 'what was bought'")
    assert rows(orders, "show tables in shop") == [("shop", "orders", "false")]
    assert rows(orders, "show columns in shop.orders")[0] == ("id",)
    assert rows(orders, "show partitions shop.orders")[0] == ("day=2026-01-01",)
    assert ("name", "string", None) in rows(orders, "describe table shop.orders")
    assert orders.catalog.comments(orders.catalog.tables("shop")[0]).comment == "what was bought"
    assert "PARTITIONED BY (day)" in str(rows(orders, "show create table shop.orders")[0][0])
    assert rows(orders, "show tblproperties shop.orders ('primaryKey')") == [("primaryKey", "id")]
    assert rows(orders, "show tblproperties shop.orders ('hoodie.table.name')") == [("hoodie.table.name", "orders")]
    assert "primaryKey" not in dict(rows(orders, "show tblproperties shop.orders"))


def test_the_statement_that_show_create_table_gives_makes_the_same_relation(lakehouse: Lakehouse) -> None:
    lakehouse.sql("create schema s")
    options = "type = 'mor', 'hoodie.index.type' = 'BUCKET', 'hoodie.payload.delete.field' = 'v', 'hoodie.payload.delete.marker' = 'it''s'"
    columns = "id int comment 'the \"key\" it''s', v string, day string"
    lakehouse.sql(
        f"create table s.t ({columns}) partitioned by (day) comment 'two\\nlines'"
        f" tblproperties (primaryKey = 'id', preCombineField = 'v', {options})"
    )
    lakehouse.sql("create view s.w (number comment 'of a row', v) comment 'seen' as select id, v from s.t")
    lakehouse.sql("create materialized view s.m partitioned by (day) tblproperties (primaryKey = 'id') as select id, day from s.t")
    for name in "twm":
        head, _, rest = str(rows(lakehouse, f"show create table s.{name}")[0][0]).partition(f" s.{name}")
        lakehouse.sql(f"{head} s.{name}2{rest}")
    told, again = (lakehouse.table(name).config.properties for name in ("s.t", "s.t2"))
    changed = {key for key, value in told.items() if again.get(key) != value}
    assert changed == {"hoodie.table.name", "hoodie.table.create.schema", "hoodie.table.checksum"}
    assert lakehouse.table("s.m2").config.materialized_query == "select id, day from s.t"
    listed = "select column_name, full_data_type, comment from information_schema.columns where table_name = '{}' order by ordinal_position"
    noted = "select comment from information_schema.tables where table_name = '{}'"
    for text in (listed, noted):
        for name in "tw":
            assert rows(lakehouse, text.format(f"{name}2")) == rows(lakehouse, text.format(name))


def test_partitions_may_be_directories_without_the_columns_name(lakehouse: Lakehouse) -> None:
    key = "hoodie.datasource.write.hive_style_partitioning"
    lakehouse.sql("create schema s")
    made = f"table s.t (id int, day string) partitioned by (day) tblproperties (primaryKey = 'id', '{key}' = 'false')"
    lakehouse.sql(f"create {made}")
    lakehouse.sql(f"create or replace {made}")
    lakehouse.sql("insert into s.t values (1, '2026-01-01')")
    assert rows(lakehouse, "show partitions s.t") == [("2026-01-01",)]
    lakehouse.sql("create table s.u like s.t")
    lakehouse.sql(str(rows(lakehouse, "show create table s.t")[0][0]).replace(" s.t ", " s.v "))
    assert not any(lakehouse.table(f"s.{name}").config.hive_style_partitioning for name in "uv")
    with pytest.raises(OptionError, match=f"{key}='maybe'"):
        lakehouse.sql(f"create table s.w (id int) tblproperties (primaryKey = 'id', '{key}' = 'maybe')")
    assert not lakehouse.exists("s.w")


def test_a_comment_on_a_column_is_found_by_the_columns_own_name(orders: Lakehouse) -> None:
    orders.sql("create view shop.seen (number comment 'of an order', word) as select id, name from shop.orders")
    orders.sql("comment on column shop.orders.NAME is 'of the buyer'")
    orders.sql("comment on column shop.seen.Word is 'of the buyer'")
    assert ("name", "string", "of the buyer") in rows(orders, "describe shop.orders")
    assert rows(orders, "describe shop.seen") == [("number", "bigint", "of an order"), ("word", "string", "of the buyer")]
    for relation in ("orders", "seen"):
        with pytest.raises(SqlError, match=f"shop.{relation} has no column 'nope'"):
            orders.sql(f"comment on column shop.{relation}.nope is 'x'")
        with pytest.raises(SqlError, match=f"shop.{relation} has no column 'nope'"):
            orders.sql(f"describe shop.{relation} nope")
    orders.sql("comment on schema shop is 'what is sold'")
    assert ("Comment", "what is sold") in rows(orders, "describe schema shop")
    with pytest.raises(RelationNotFoundError, match="nope"):
        orders.sql("comment on schema nope is 'x'")
    orders.sql("comment on column shop.orders.nAmE is null")
    assert rows(orders, "describe shop.orders name") == [("name", "string", None)]


def test_partitions_that_were_dropped_are_not_shown(orders: Lakehouse) -> None:
    days = [path for (path,) in rows(orders, "show partitions shop.orders")]
    assert len(days) > 1
    for left, day in enumerate(days, 1):
        orders.sql(f"alter table shop.orders drop partition (day = '{day.partition('=')[2]}')")
        assert [path for (path,) in rows(orders, "show partitions shop.orders")] == days[left:]


def test_call_shows_commits(orders: Lakehouse) -> None:
    commits = orders.sql("call show_commits(table => 'shop.orders', limit => 5)").collect()
    assert [commit["operation"] for commit in commits] == ["BULK_INSERT"]
    assert [commit["commit_time"] for commit in commits] == [orders.table("shop.orders").history()[0].instant]
    with pytest.raises(UnsupportedSqlError, match="no procedure"):
        orders.sql("call run_magic(table => 'shop.orders')")


def test_parameters_are_bound_and_never_formatted(orders: Lakehouse) -> None:
    evil = "x' or '1'='1"
    assert rows(orders, "select count(*) from shop.orders where name = :name", args={"name": evil}) == [(0,)]
    orders.sql("insert into shop.orders values (?, ?, ?, ?)", args=[70, evil, 1, dt.date(2026, 1, 1)])
    assert names(orders)[70] == evil


def test_use_lets_names_of_one_part_be_found(orders: Lakehouse) -> None:
    orders.sql("use shop")
    assert rows(orders, "with orders as (select * from orders where id = 1) select count(*) from orders") == [(1,)]
    assert rows(orders, "select count(*) from orders") == [(4,)]


def test_what_is_not_the_engines_goes_to_spark(orders: Lakehouse) -> None:
    orders.sql("create temporary view numbers as select explode(sequence(1, 3)) as id")
    assert rows(orders, "select count(*) from numbers join shop.orders using (id)") == [(3,)]


def test_names_that_are_not_there_and_constructs_that_are_refused(orders: Lakehouse) -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        orders.sql("select * from shop.nothing").collect()
    with pytest.raises(UnsupportedSqlError, match="IDENTIFIER"):
        orders.sql("select * from identifier('shop.' || 'orders')")
    with pytest.raises(RelationNotFoundError):
        orders.sql("select * from hudi_table_changes('shop.nothing', 'latest_state', 'earliest')")
    with pytest.raises(MissingOptionError):
        Lakehouse(orders.warehouse).sql("select 1")


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_nulls_that_statements_compute_are_stored_under_a_payload_that_fills_them(lakehouse: Lakehouse, kind: str) -> None:
    lakehouse.sql(
        "create table shop.parts (id bigint, name string, n struct<t: bigint>) using hudi tblproperties ("
        f"type = '{kind}', primaryKey = 'id', preCombineField = 'n.t',"
        " 'hoodie.datasource.write.payload.class' = 'PartialUpdateAvroPayload')"
    )
    lakehouse.sql("insert into shop.parts values (1, 'ann', struct(5)), (2, 'bob', struct(5)), (3, 'cec', struct(5))")
    lakehouse.sql("update shop.parts set name = null where id = 1")
    lakehouse.sql(
        "merge into shop.parts t using (select 2L id union all select 4L) s on t.id = s.id"
        " when matched then update set name = null when not matched then insert (id, name, n) values (s.id, null, struct(1L))"
    )
    assert sorted(rows(lakehouse, "select id, name, n.t from shop.parts")) == [(1, None, 5), (2, None, 5), (3, "cec", 5), (4, None, 1)]


@pytest.mark.parametrize(
    ("clauses", "what"),
    [
        ("tblproperties (primaryKey = 'id', preCombineField = 'ts', type = 'mor')", "type"),
        ("tblproperties (primaryKey = 'id')", "ordering field"),
        ("tblproperties (primaryKey = 'id', preCombineField = 'id')", "ordering field"),
        ("tblproperties (primaryKey = 'ts', preCombineField = 'ts')", "key"),
    ],
)
def test_create_or_replace_does_not_pass_over_another_layout(orders: Lakehouse, clauses: str, what: str) -> None:
    before = orders.table("shop.orders").timeline
    with pytest.raises(UnsupportedSqlError, match=f"cannot change the {what} of shop.orders"):
        orders.sql(f"create or replace table shop.orders (id bigint, ts bigint, day date) partitioned by (day) {clauses}")
    assert orders.table("shop.orders").timeline == before


def test_create_or_replace_does_not_pass_over_options(orders: Lakehouse) -> None:
    text = "create or replace table shop.orders (id bigint, ts bigint, day date) partitioned by (day) tblproperties (primaryKey = 'id',"
    before = orders.table("shop.orders").timeline
    with pytest.raises(OptionError, match=r"hoodie.parquet.max.file.size; set it with ALTER TABLE"):
        orders.sql(f"{text} preCombineField = 'ts', hoodie.parquet.max.file.size = '1000000')")
    assert orders.table("shop.orders").timeline == before


def test_properties_name_columns_in_any_case(lakehouse: Lakehouse) -> None:
    columns = "table shop.t (Id bigint, Ts bigint, Day string) partitioned by (DAY)"
    properties = "primaryKey = 'ID', preCombineField = 'TS'"
    lakehouse.sql(f"create {columns} tblproperties ({properties}, type = 'MOR')")
    config = lakehouse.table("shop.t").config
    assert (config.record_key_fields, config.ordering_fields, config.partition_fields) == (("Id",), ("Ts",), ("Day",))
    assert config.table_type.value == "MERGE_ON_READ"
    lakehouse.sql(f"create or replace {columns} tblproperties ({properties})")
    assert lakehouse.table("shop.t").config.table_type.value == "MERGE_ON_READ"


@pytest.mark.parametrize("head", ["create table shop.t", "create or replace table shop.orders"])
def test_a_type_that_is_none_is_refused_by_name(orders: Lakehouse, head: str) -> None:
    with pytest.raises(OptionError, match=r"'row' of shop.* is neither 'cow' nor 'mor'"):
        orders.sql(f"{head} (id bigint) tblproperties (primaryKey = 'id', type = 'row')")
