"""FROM ... INSERT ... INSERT, names by IDENTIFIER, and tables of other formats."""

from __future__ import annotations

import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import SqlError, UnsupportedSqlError


@pytest.fixture
def two(lakehouse: Lakehouse) -> Lakehouse:
    for name in ("a", "b"):
        lakehouse.sql(f"create table shop.{name} (id int, x int) tblproperties (primaryKey = 'id')")
    lakehouse.sql("insert into shop.a values (1, 10), (2, 20), (3, 30)")
    return lakehouse


def rows(lakehouse: Lakehouse, text: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in lakehouse.sql(text).collect())


def test_each_target_gets_its_rows_of_one_state_of_the_source(two: Lakehouse) -> None:
    results = two.sql(
        "with q as (select * from shop.a where id < 3) from q"
        " insert into shop.a select id + 10, x where x > 10 insert overwrite shop.b (id) select id + 100"
    )
    assert [result.inserts for result in results] == [1, 2]
    assert rows(two, "select * from shop.a") == [(1, 10), (2, 20), (3, 30), (12, 20)]
    assert rows(two, "select * from shop.b") == [(101, None), (102, None)]
    assert len(two.table("shop.b").history()) == 1


def test_a_query_that_does_not_fit_its_target_keeps_all_of_them(two: Lakehouse) -> None:
    with pytest.raises(SqlError, match="3 columns where 2"):
        two.sql("from shop.a insert into shop.b select id, x insert into shop.a select id, x, 1")
    assert rows(two, "select * from shop.b") == []


def test_a_failure_behind_the_first_target_names_the_commits_that_stay(two: Lakehouse) -> None:
    two.sql("alter table shop.b alter column x set not null")
    with pytest.raises(SqlError, match=r"nothing was written to shop\.b, and the commits before it stay: shop\.a \(\d+\)"):
        two.sql("from (select 7 as id) s insert into shop.a (id) select id insert into shop.b select id, null")
    assert (7, None) in rows(two, "select * from shop.a")
    assert rows(two, "select * from shop.b") == []


def test_a_target_of_someone_else_is_refused(two: Lakehouse) -> None:
    with pytest.raises(UnsupportedSqlError, match="none of the engine's"):
        two.sql("from shop.a insert into shop.b select id, x insert into elsewhere select id")
    assert rows(two, "select * from shop.b") == []


def test_identifier_names_what_is_read_and_what_is_changed(two: Lakehouse) -> None:
    two.sql("create table identifier('shop.c') (id int, x int) tblproperties (primaryKey = 'id')")
    two.sql("insert into identifier('shop.' 'c') (identifier('id'), x) select t.id, x from identifier('`shop`.a') t")
    two.sql("update identifier('shop.c') set identifier('x') = 0 where id = 1")
    two.sql("delete from identifier('shop.c') where id = 2")
    assert rows(two, "select identifier('id'), identifier('x') + identifier('abs')(-1) from identifier('shop.c')") == [(1, 1), (3, 31)]
    two.sql("create view shop.v as select * from identifier('shop.c')")
    assert rows(two, "select count(*) from shop.v") == [(2,)]
    with pytest.raises(UnsupportedSqlError, match="IDENTIFIER"):
        two.sql("select * from identifier('shop.' || 'c')")


@pytest.mark.parametrize(
    "text",
    [
        "create table shop.d (id int) using delta",
        "create table if not exists shop.d using iceberg as select 1 as id",
        "create or replace table shop.a using parquet as select 1 as id",
        "create table shop.d (id int) stored as parquet",
    ],
)
def test_tables_of_other_formats_are_refused_by_name(two: Lakehouse, text: str) -> None:
    with pytest.raises(UnsupportedSqlError, match="USING hudi"):
        two.sql(text)
    assert not two.exists("shop.d")
    assert len(two.table("shop.a").history()) == 1


def test_a_schema_of_sparks_own_has_tables_of_any_format(two: Lakehouse) -> None:
    two.create_schema("default")
    two.sql("create table default.of_spark (id int) using parquet")
    two.sql("drop table default.of_spark")
