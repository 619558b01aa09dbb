"""DEFAULT of columns: what statements fill in, what they keep, and what is refused before anything is changed."""

from __future__ import annotations

import json

import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import LakehouseError, UnsupportedSqlError

CREATE = (
    "create table s.t (id string, n int default 1 comment 'how many', at timestamp default current_timestamp() not null,"
    " note string, word varchar(3) not null default 'a''b') tblproperties (primaryKey = 'id', type = '{}')"
)
KINDS = pytest.mark.parametrize("kind", ["cow", "mor"])


def stored(lakehouse: Lakehouse) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in lakehouse.sql("select id, n, at is not null, note, word from s.t").collect())


@KINDS
def test_inserts_fill_what_they_leave_out_and_a_null_stays_one(lakehouse: Lakehouse, kind: str) -> None:
    lakehouse.sql(CREATE.format(kind))
    lakehouse.sql("insert into s.t (id) values ('a')")
    lakehouse.sql("insert into s.t (n, id) values (DEFAULT, 'b'), (null, 'c'), (7, 'd')")
    lakehouse.sql("insert into s.t values ('e', default, DEFAULT, default, 'x')")
    lakehouse.sql("insert into s.t by name select 'f' as id, 'y' as note")
    lakehouse.sql("insert into s.t (id, n) select 'g', default")
    lakehouse.sql("insert into s.t (id, word) select id || '2', 'q' from s.t where id = 'a'")
    assert stored(lakehouse) == [
        ("a", 1, True, None, "a'b"),
        ("a2", 1, True, None, "q"),
        ("b", 1, True, None, "a'b"),
        ("c", None, True, None, "a'b"),
        ("d", 7, True, None, "a'b"),
        ("e", 1, True, None, "x"),
        ("f", 1, True, "y", "a'b"),
        ("g", 1, True, None, "a'b"),
    ]
    lakehouse.sql("insert overwrite s.t (id) values ('z')")
    assert stored(lakehouse) == [("z", 1, True, None, "a'b")]


@KINDS
def test_updates_and_merges_take_them(lakehouse: Lakehouse, kind: str) -> None:
    lakehouse.sql(CREATE.format(kind))
    lakehouse.sql("insert into s.t (id, n, note) values ('a', 5, 'x'), ('b', 6, 'x'), ('c', 7, 'x')")
    lakehouse.sql("update s.t set n = DEFAULT, note = default where id = 'a'")
    lakehouse.sql(
        "merge into s.t t using (select explode(array('b', 'd', 'e')) as id) s on t.id = s.id"
        " when matched then update set t.n = default when not matched and s.id = 'd' then insert (id) values (s.id)"
        " when not matched then insert (id, n, note) values (s.id, DEFAULT, null) when not matched by source and t.id = 'c' then"
        " update set n = default"
    )
    expected = [(key, 1, True, note, "a'b") for key, note in (("a", None), ("b", "x"), ("c", "x"), ("d", None), ("e", None))]
    assert stored(lakehouse) == expected
    lakehouse.sql(
        "merge with schema evolution into s.t t using (select 'f' as id, 'new' as note) s on t.id = s.id"
        " when matched then update set * when not matched then insert *"
    )
    assert stored(lakehouse) == [*expected, ("f", 1, True, "new", "a'b")]


def test_two_targets_and_partitions_take_them(lakehouse: Lakehouse) -> None:
    columns = "id int, n int default 3, day string default 'd'"
    lakehouse.sql(f"create table s.p ({columns}) partitioned by (day) tblproperties (primaryKey = 'id')")
    lakehouse.sql("create table s.q (id int, n int default 4) tblproperties (primaryKey = 'id')")
    lakehouse.sql("from (select 1 as id) insert into s.p (id) select id insert into s.q (id) select id")
    lakehouse.sql("insert into s.p partition (day = 'e') (id) values (2)")
    lakehouse.sql("insert into s.p (id, n, day) replace where day = 'e' values (3, default, 'e')")
    assert sorted(map(tuple, lakehouse.sql("select id, n, day from s.p").collect())) == [(1, 3, "d"), (3, 3, "e")]
    assert [tuple(row) for row in lakehouse.sql("select id, n from s.q").collect()] == [(1, 4)]


@KINDS
def test_alter_column_changes_what_later_inserts_get(lakehouse: Lakehouse, kind: str) -> None:
    lakehouse.sql(CREATE.format(kind))
    lakehouse.sql("insert into s.t (id) values ('a')")
    before = lakehouse.table("s.t").timeline.instants
    lakehouse.sql("alter table s.t alter column N set default 1 + 1")
    lakehouse.sql("alter table s.t alter column note set default 'new'")
    assert lakehouse.table("s.t").timeline.instants == before
    lakehouse.sql("insert into s.t (id) values ('b')")
    lakehouse.sql("alter table s.t alter column n drop default")
    lakehouse.sql("alter table s.t change column note drop default")
    lakehouse.sql("insert into s.t (id) values ('c')")
    assert [row[1::2] for row in stored(lakehouse)] == [(1, None), (2, "new"), (None, None)]


def test_it_goes_and_is_renamed_with_its_column(lakehouse: Lakehouse) -> None:
    lakehouse.sql("create table s.t (id int, a int default 1, b int default 2) tblproperties (primaryKey = 'id')")
    lakehouse.sql("alter table s.t rename column a to c")
    lakehouse.sql("alter table s.t drop column b")
    lakehouse.sql("alter table s.t add column b int")
    lakehouse.sql("insert into s.t (id) values (1)")
    assert lakehouse.table("s.t").config.constraints.defaults == (("c", "1"),)
    assert [tuple(row) for row in lakehouse.sql("select id, b, c from s.t").collect()] == [(1, None, 1)]
    lakehouse.sql("create or replace table s.t (id int, c int) tblproperties (primaryKey = 'id')")
    assert not lakehouse.table("s.t").config.constraints.defaults


def test_what_shows_the_table_tells_it_and_copies_keep_it(lakehouse: Lakehouse) -> None:
    lakehouse.sql(CREATE.format("cow"))
    extended = [tuple(row) for row in lakehouse.sql("describe extended s.t").collect()]
    at = extended.index(("# Column Default Values", "", ""))
    assert extended[at + 1 :] == [("n", "int", "1"), ("at", "timestamp", "current_timestamp()"), ("word", "string", "'a''b'")]
    columns = json.loads(lakehouse.sql("describe extended s.t as json").collect()[0][0])["columns"]
    assert [one.get("default") for one in columns] == [None, "1", "current_timestamp()", None, "'a''b'"]
    listed = lakehouse.sql("select column_default from information_schema.columns where table_name = 't' order by ordinal_position")
    assert [row[0] for row in listed.collect()] == [None, "1", "current_timestamp()", None, "'a''b'"]
    shown = lakehouse.sql("show create table s.t").collect()[0][0]
    lakehouse.sql(shown.replace("s.t", "s.u"))
    lakehouse.sql("create table s.l like s.t")
    lakehouse.sql("create table s.c clone s.t")
    for name in ("s.u", "s.l", "s.c"):
        assert lakehouse.table(name).config.constraints == lakehouse.table("s.t").config.constraints


NO_DEFAULTS = {
    "n int default (select 1)": "no sub-query",
    "n int default id": "no sub-query, column",
    "n int default s.t.id": "no sub-query, column",
    "n bigint default sum(1)": "aggregate",
    "n int default row_number() over (order by 1)": "window",
    "n string default uuid()": "random value",
    "n int default ?": "parameter",
    "n int default 'a'": "cannot be cast to int",
    "n int default true": "type boolean does not fit int",
    "n boolean default 1": "type int does not fit boolean",
    "n int default array(1)": "does not fit int",
    "n int default 3000000000": "cannot be cast to int",
    "n int default 1.5": "another number as int",
    "n decimal(4,2) default 1.005": "another number",
    "n varchar(2) default 'abc'": r"more characters than VARCHAR\(2\)",
}


@pytest.mark.parametrize("column", NO_DEFAULTS)
def test_what_is_no_default_is_refused_by_name_and_nothing_is_made_or_changed(lakehouse: Lakehouse, column: str) -> None:
    with pytest.raises(LakehouseError, match=NO_DEFAULTS[column]) as raised:
        lakehouse.sql(f"create table s.t (id int, {column})")
    assert not lakehouse.exists("s.t")
    if isinstance(raised.value, UnsupportedSqlError):
        assert (raised.value.context["relation"], raised.value.context["column"]) == ("s.t", "n")
        declared, _, text = column.partition(" default ")
        lakehouse.sql(f"create table s.t (id int, {declared})")
        with pytest.raises(UnsupportedSqlError, match=NO_DEFAULTS[column]):
            lakehouse.sql(f"alter table s.t alter column n set default {text}")
        assert not lakehouse.table("s.t").config.constraints.defaults


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("int default '5'", 5),
        ("int default 5L", 5),
        ("double default 1", 1.0),
        ("string default 5", "5"),
        ("boolean default not true", False),
        ("boolean default 1 is not null not null", True),
        ("string default case when not false then 'x, y' else null end", "x, y"),
        ("int default -- one\n 1", 1),
        ("array<int> default array(1, 2)", [1, 2]),
        ("int default null", None),
    ],
)
def test_what_fits_the_column_is_given(lakehouse: Lakehouse, column: str, value: object) -> None:
    lakehouse.sql(f"create table s.t (id int, n {column}, last int)")
    lakehouse.sql("insert into s.t (id) values (1)")
    assert lakehouse.sql("select n from s.t").collect()[0][0] == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("alter table s.t add column m int default 5", r"of s\.t: stored rows would need it.*ALTER COLUMN m SET DEFAULT 5"),
        ("alter table s.t add columns (k int, m int default 5 after id)", "ALTER COLUMN m SET DEFAULT 5"),
        ("alter table s.t alter column st.a set default 1", "inside of another column"),
        ("update s.t set st.a = default", "inside of another column"),
        ("insert into s.t values (1, default + 1, null)", "stands alone"),
        ("insert into s.t by name select 2 as id, default as n", "leave the column out"),
        ("create table s.g (id bigint generated by default as identity)", "IDENTITY of the column id"),
        ("create table s.g (id int, n int default 1 generated always as (id))", "GENERATED and has a DEFAULT"),
    ],
)
def test_what_is_not_supported_is_refused_with_a_remedy(lakehouse: Lakehouse, text: str, said: str) -> None:
    lakehouse.sql("create table s.t (id int, n int default 1, st struct<a: int>) tblproperties (primaryKey = 'id')")
    before = lakehouse.table("s.t").timeline.instants, lakehouse.table("s.t").config.properties
    with pytest.raises(UnsupportedSqlError, match=said):
        lakehouse.sql(text)
    assert (lakehouse.table("s.t").timeline.instants, lakehouse.table("s.t").config.properties) == before
    assert not lakehouse.exists("s.g")


def test_a_column_called_default_is_read(lakehouse: Lakehouse) -> None:
    lakehouse.sql("create table s.t (id int, n int default 1)")
    lakehouse.sql("create table s.d (id int, `default` int)")
    lakehouse.sql("insert into s.d values (1, 9)")
    lakehouse.sql("insert into s.t select id, d.default from s.d d")
    lakehouse.sql("insert into s.t select id + 2, default from s.d")
    lakehouse.sql("insert into s.t select id + 3, default from (select id from s.d) order by id")
    lakehouse.sql("insert into s.t select 2, (select max(default) from s.d)")
    assert sorted(map(tuple, lakehouse.sql("select id, n from s.t").collect())) == [(1, 9), (2, 9), (3, 9), (4, 1)]
