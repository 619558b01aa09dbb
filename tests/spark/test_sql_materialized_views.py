"""Materialized views: rows of a query as of the last refresh, and no commit where a refresh could bring nothing else."""

from __future__ import annotations

import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import SqlError, TableError, TableExistsError, TableNotFoundError, UnsupportedSqlError
from tests.support.connect_server import classic_only

TOTALS = "select day, sum(amount) as total from shop.sales group by day"


@pytest.fixture
def shop(lakehouse: Lakehouse) -> Lakehouse:
    lakehouse.sql("create table shop.sales (id int, day date, amount int) tblproperties (primaryKey = 'id')")
    lakehouse.sql("insert into shop.sales values (1, date'2026-01-01', 10), (2, date'2026-01-01', 5), (3, date'2026-01-02', 7)")
    return lakehouse


def rows(lakehouse: Lakehouse, text: str = "select cast(day as string), total from shop.totals") -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in lakehouse.sql(text).collect())


FIRST = [("2026-01-01", 15), ("2026-01-02", 7)]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_rows_are_those_of_the_last_refresh(shop: Lakehouse, kind: str) -> None:
    shop.sql(f"create materialized view shop.totals tblproperties (primaryKey = 'day', type = '{kind}') as {TOTALS}")
    assert rows(shop) == FIRST
    shop.sql("insert into shop.sales values (4, date'2026-01-02', 100)")
    assert rows(shop) == FIRST
    result = shop.sql("refresh materialized view shop.totals")
    assert result.instant is not None
    assert rows(shop) == [("2026-01-01", 15), ("2026-01-02", 107)]
    assert rows(shop, "select cast(day as string), total from shop.totals version as of -1") == FIRST


@classic_only("a client does not see whether a query is deterministic, so each refresh computes it")
def test_a_refresh_without_news_is_no_commit(shop: Lakehouse) -> None:
    shop.sql("create view shop.big as select * from shop.sales where amount > 6")
    shop.sql("create materialized view shop.totals as select day, sum(amount) as total from shop.big group by day")
    before = shop.table("shop.totals").timeline
    assert shop.sql("refresh materialized view shop.totals").instant is None
    assert shop.table("shop.totals").timeline == before
    assert shop.sql("refresh materialized view shop.totals full").instant is not None
    assert shop.sql("refresh materialized view shop.totals").instant is None
    shop.sql("delete from shop.sales where id = 3")
    assert shop.sql("refresh materialized view shop.totals").instant is not None
    assert rows(shop) == [("2026-01-01", 10)]
    shop.sql("create or replace view shop.big as select * from shop.sales")
    assert shop.sql("refresh materialized view shop.totals full").instant is not None
    assert rows(shop) == [("2026-01-01", 15)]


def test_a_restore_of_what_is_read_is_news(shop: Lakehouse) -> None:
    instant = shop.table("shop.sales").savepoint().instant
    shop.sql("insert into shop.sales values (4, date'2026-01-02', 100)")
    shop.sql(f"create materialized view shop.totals as {TOTALS}")
    shop.table("shop.sales").restore(instant)
    shop.sql("refresh materialized view shop.totals")
    assert rows(shop) == FIRST


@pytest.mark.parametrize(
    "column",
    ["rand()", "current_timestamp()", "now()", "uuid()", "current_user()", "count(*) over (order by current_date)", "shop.twice(id)"],
)
def test_a_query_of_the_moment_is_computed_each_time(shop: Lakehouse, column: str) -> None:
    if "twice" in column:
        from lakehouse_engine.catalog.functions import Language, Parameter, StoredFunction

        shop.create_function("shop.twice", StoredFunction(Language.SQL, (Parameter("x", "int"),), "int", "x * 2"))
    shop.sql(f"create materialized view shop.totals as select id, {column} as x from shop.sales")
    assert shop.sql("refresh materialized view shop.totals").instant is not None


def test_a_view_whose_query_was_changed_is_computed_anew(shop: Lakehouse) -> None:
    shop.sql("create view shop.big as select * from shop.sales where amount > 6")
    shop.sql("create materialized view shop.totals as select day, sum(amount) as total from shop.big group by day")
    shop.sql("create or replace view shop.big as select * from shop.sales")
    shop.sql("refresh materialized view shop.totals")
    assert rows(shop) == FIRST


def test_another_query_may_have_other_columns(shop: Lakehouse) -> None:
    shop.sql(f"create materialized view shop.totals as {TOTALS}")
    shop.sql("alter materialized view shop.totals as select day, count(*) as many from shop.sales group by day")
    assert rows(shop, "select many from shop.totals") == [(1,), (2,)]
    shop.sql("insert into shop.sales values (4, date'2026-01-02', 100)")
    shop.sql("refresh materialized view shop.totals")
    assert rows(shop, "select many from shop.totals") == [(2,), (2,)]


@pytest.mark.parametrize(
    "statement",
    [
        "insert into shop.totals values (date'2026-01-01', 1)",
        "insert overwrite shop.totals values (date'2026-01-01', 1)",
        "delete from shop.totals",
        "update shop.totals set total = 0",
        "merge into shop.totals t using shop.sales s on t.day = s.day when matched then delete",
        "truncate table shop.totals",
        "alter table shop.totals add columns (x int)",
        "alter table shop.totals drop column total",
        "from shop.sales insert into shop.sales select id + 10, day, amount insert into shop.totals select day, amount",
    ],
)
def test_only_a_refresh_changes_its_rows(shop: Lakehouse, statement: str) -> None:
    shop.sql(f"create materialized view shop.totals as {TOTALS}")
    with pytest.raises(UnsupportedSqlError, match=r"shop\.totals is a materialized view"):
        shop.sql(statement)
    assert rows(shop) == FIRST
    assert len(rows(shop, "select * from shop.sales")) == 3


def test_it_takes_the_place_of_a_table_and_a_view_and_they_its_own(shop: Lakehouse) -> None:
    shop.sql("create view shop.totals as select 1 as day, 2 as total")
    with pytest.raises(TableExistsError, match="as a view"):
        shop.sql(f"create materialized view shop.totals as {TOTALS}")
    shop.sql(f"create or replace materialized view shop.totals as {TOTALS}")
    assert rows(shop) == FIRST
    assert shop.catalog.views("shop") == []
    shop.sql("create or replace table shop.totals as select date'2026-05-05' as day, 3 as total")
    assert rows(shop) == [("2026-05-05", 3)]
    with pytest.raises(TableNotFoundError, match="is a table"):
        shop.sql("refresh materialized view shop.totals")
    shop.sql(f"create or replace materialized view shop.totals partitioned by (day) as {TOTALS}")
    assert rows(shop) == FIRST
    assert shop.table("shop.totals").config.partition_fields == ("day",)
    assert [str(name) for name in shop.catalog.tables("shop")] == ["shop.sales", "shop.totals"]
    shop.table("shop.totals").savepoint(name="kept")
    with pytest.raises(TableError, match="kept"):
        shop.sql(f"create or replace materialized view shop.totals as {TOTALS}")
    assert rows(shop) == FIRST


def test_a_query_that_reads_itself_or_has_parameters_is_refused(shop: Lakehouse) -> None:
    shop.sql(f"create materialized view shop.totals as {TOTALS}")
    with pytest.raises(SqlError, match="reads itself"):
        shop.sql("alter materialized view shop.totals as select * from shop.totals")
    with pytest.raises(UnsupportedSqlError, match="parameters"):
        shop.sql("create materialized view shop.other as select * from shop.sales where id = ?", [1])
    assert not shop.exists("shop.other")
    with pytest.raises(UnsupportedSqlError, match="columns"):
        shop.sql("create materialized view shop.other partitioned by (day date) as select * from shop.sales")


def test_what_a_query_cannot_be_computed_for_leaves_nothing(shop: Lakehouse) -> None:
    with pytest.raises(Exception, match=r"by zero|DIVIDE_BY_ZERO"):
        shop.sql("create materialized view shop.totals as select day, amount div (id - id) as total from shop.sales")
    assert not shop.exists("shop.totals")


def test_it_is_told_from_tables(shop: Lakehouse) -> None:
    shop.sql(f"create materialized view shop.totals comment 'by day' as {TOTALS}")
    kinds = dict(rows(shop, "select table_name, table_type from information_schema.tables where table_schema = 'shop'"))
    assert kinds == {"sales": "BASE TABLE", "totals": "MATERIALIZED VIEW"}
    told = {row[0]: row[1] for row in shop.sql("describe extended shop.totals").collect()}
    assert told["Type"] == "materialized view"
    assert told["View Text"] == TOTALS
    shop.sql("create table shop.copied clone shop.totals")
    shop.sql("delete from shop.copied")
    assert rows(shop, "select * from shop.copied") == []
    shop.sql("alter table shop.totals rename to shop.renamed")
    shop.sql("insert into shop.sales values (4, date'2026-01-02', 100)")
    assert shop.sql("refresh materialized view shop.renamed").instant is not None
    with pytest.raises(TableNotFoundError, match="is a table"):
        shop.sql("drop materialized view shop.sales")
    shop.sql("drop materialized view shop.renamed")
    shop.sql("drop materialized view if exists shop.renamed")
    assert not shop.exists("shop.renamed")


def test_a_view_that_is_built_anew_leaves_tables_with_names_like_its_own(shop: Lakehouse) -> None:
    shop.sql("create table shop.totals__new as select 1 as id")
    shop.sql("create table shop.totals as select 1 as id")
    shop.sql(f"create or replace materialized view shop.totals tblproperties (primaryKey = 'day') as {TOTALS}")
    assert rows(shop) == FIRST
    assert rows(shop, "select * from shop.totals__new") == [(1,)]
    assert sorted(shop.tables("shop")) == ["shop.sales", "shop.totals", "shop.totals__new"]
