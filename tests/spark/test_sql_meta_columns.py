"""Hudi's meta columns in queries: named, they are there; a star never shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.model.keys import META_COLUMNS


@pytest.fixture
def orders(lakehouse: Lakehouse, request: pytest.FixtureRequest) -> Lakehouse:
    """`shop.t` of two rows, of which the second was changed by the second commit, and `shop.d`, which belongs to it."""
    table = "create table shop.t (id int, v string, day string) partitioned by (day) tblproperties (primaryKey = 'id', type = '{}')"
    lakehouse.sql(table.format(getattr(request, "param", "cow")))
    lakehouse.sql("insert into shop.t values (1, 'a', 'x'), (2, 'b', 'y')")
    lakehouse.sql("update shop.t set v = 'c' where id = 2")
    lakehouse.sql("create table shop.d (id int, w string) tblproperties (primaryKey = 'id')")
    lakehouse.sql("insert into shop.d values (1, 'one'), (2, 'two')")
    lakehouse.sql("create view shop.all_of_t as select * from shop.t where id > 0")
    lakehouse.sql("create view shop.of_view as select * from shop.all_of_t")
    lakehouse.sql("create view shop.counted as select count(*) as n, max(_hoodie_commit_time) as newest from shop.t")
    return lakehouse


def commits(lake: Lakehouse) -> tuple[str, str]:
    newest, oldest = (entry.instant for entry in lake.table("shop.t").history())
    return oldest, newest


def asked(lake: Lakehouse, text: str) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
    frame = lake.sql(text)
    return frame.columns, sorted(tuple(row) for row in frame.collect())


@pytest.mark.parametrize("orders", ["cow", "mor"], indirect=True)
def test_named_columns_are_there_and_a_star_is_the_users_columns(orders: Lakehouse) -> None:
    first, second = commits(orders)
    user = ["id", "v", "day"]
    assert orders.sql("select * from shop.t").columns == user
    columns, rows = asked(orders, f"select {', '.join(META_COLUMNS)} from shop.t")
    assert columns == list(META_COLUMNS)
    assert [(row[0], row[2], row[3]) for row in rows] == [(first, "1", "day=x"), (second, "2", "day=y")]
    assert all(row[1] and row[4] for row in rows)

    one = [(2, "c", "y")]
    for text in (
        f"select * from shop.t where _hoodie_commit_time > '{first}'",
        f"select t.* from shop.t where shop.t._hoodie_commit_time > '{first}'",
        f"select * from shop.t x where X._HOODIE_COMMIT_TIME = '{second}' order by `_hoodie_record_key`",
        "select * from shop.t where _hoodie_commit_time = (select max(_hoodie_commit_time) from shop.t)",
        "select * from shop.t where exists (select 1 from shop.d where d.id = t.id and t._hoodie_record_key = '2')",
        f"select * from shop.t version as of '{second}' where _hoodie_record_key = '2'",
        f"with src as (select * from shop.t) select * from src where _hoodie_commit_time > '{first}'",
        f"with src as (select * from shop.t), more as (select * from src) select m.* from more m where _hoodie_commit_time > '{first}'",
        f"select * from (select * from shop.t limit 10) where _hoodie_commit_time > '{first}'",
        f"select * from shop.all_of_t where _hoodie_commit_time > '{first}'",
        f"select * from shop.of_view where _hoodie_commit_time > '{first}'",
        f"select * from shop.t where _hoodie_commit_time > '{first}' union all select * from shop.t where id > 2",
        f"select distinct * from shop.t where _hoodie_commit_time > '{first}'",
        "select * from shop.t qualify row_number() over (order by _hoodie_commit_time desc) = 1",
        "select * from shop.of_view natural join (select id from shop.t where _hoodie_record_key = '2')",
    ):
        assert asked(orders, text) == (user, one), text
    assert asked(orders, "select * except (v, _hoodie_file_name) from shop.t where _hoodie_record_key = '2'") == (["id", "day"], [(2, "y")])
    assert asked(orders, "select * except (v) from shop.t where _hoodie_record_key = '2'") == (["id", "day"], [(2, "y")])
    assert asked(orders, "select *, _hoodie_record_key from shop.t where id = 2") == ([*user, "_hoodie_record_key"], [(*one[0], "2")])
    assert asked(orders, "select newest from shop.counted")[1] == [(second,)]
    assert asked(orders, "select count(*), count(distinct struct(*)) from shop.t where _hoodie_record_key = '2'")[1] == [(1, 1)]


def test_joins_show_the_columns_of_both_and_say_which_are_meant(orders: Lakehouse) -> None:
    first, second = commits(orders)
    both = ["id", "v", "day", "w"]
    for text in (
        f"select * from shop.t join shop.d using (id) where t._hoodie_commit_time > '{first}'",
        f"select * from shop.d join shop.t using (id) where shop.t._hoodie_commit_time > '{first}' and d._hoodie_record_key > ''",
        f"select * from shop.of_view v join (select id as i, w from shop.d) on i = v.id where v._hoodie_commit_time > '{first}'",
    ):
        columns, rows = asked(orders, text)
        assert sorted(set(columns) - {"i"}) == sorted(both), text
        assert [dict(zip(columns, row, strict=True))["v"] for row in rows] == ["c"], text
    with pytest.raises(Exception, match="AMBIGUOUS"):
        orders.sql("select _hoodie_commit_time from shop.t join shop.d using (id)").collect()
    changes = f"hudi_table_changes('shop.t', 'latest_state', '{first}') c"
    assert asked(orders, f"select _hoodie_commit_time, w from {changes} join shop.d on c.id = d.id")[1] == [(second, "two")]
    assert asked(orders, f"select d.*, d._hoodie_record_key from {changes} join shop.d on c.id = d.id")[1] == [(2, "two", "2")]


def test_statements_that_write_read_them_too(orders: Lakehouse) -> None:
    first, second = commits(orders)
    orders.sql(f"create table shop.news as select *, _hoodie_commit_time as at from shop.t where _hoodie_commit_time > '{first}'")
    assert asked(orders, "select * from shop.news") == (["id", "v", "day", "at"], [(2, "c", "y", second)])
    orders.sql(f"insert into shop.news select *, _hoodie_record_key from shop.t where _hoodie_commit_time = '{first}'")
    assert asked(orders, "select id, at from shop.news")[1] == [(1, "1"), (2, second)]
    orders.sql(f"delete from shop.d where id in (select id from shop.t where _hoodie_commit_time > '{first}')")
    assert asked(orders, "select * from shop.d") == (["id", "w"], [(1, "one")])
    orders.sql(
        f"merge into shop.d using (select *, _hoodie_record_key as k from shop.t where _hoodie_commit_time > '{first}') as s on d.id = s.id"
        " when not matched then insert (id, w) values (s.id, s.k)"
    )
    assert asked(orders, "select * from shop.d")[1] == [(1, "one"), (2, "2")]
