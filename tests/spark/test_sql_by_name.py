"""Which column, field or partition a statement's value goes to: that of its name and of its value."""

from __future__ import annotations

import pytest
from pyspark.errors import ParseException

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import PartitionValueError, SqlError, UnsupportedSqlError


def rows(lakehouse: Lakehouse, text: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in lakehouse.sql(text).collect()]


def found(lakehouse: Lakehouse, table: str) -> list[dict[str, object]]:
    return sorted(lakehouse.table(table).to_arrow().to_pylist(), key=str)


@pytest.fixture(params=["cow", "mor"])
def people(request: pytest.FixtureRequest, lakehouse: Lakehouse) -> Lakehouse:
    """The table is called as a column with fields that are called as other columns."""
    columns = "id int, name struct<first: string, last: string>, xs array<struct<a: int, b: int>>, last string, first string"
    lakehouse.sql(f"create table shop.name ({columns}) tblproperties (primaryKey = 'id', type = '{request.param}')")
    lakehouse.sql(
        "insert into shop.name values (1, named_struct('first', 'F', 'last', 'L'), array(named_struct('a', 1, 'b', 2)), 'no', 'no')"
    )
    return lakehouse


def test_a_field_is_assigned_where_the_table_is_called_as_its_column(people: Lakehouse) -> None:
    people.sql("update shop.name set name.name.first = 'X'")
    people.sql("update shop.name as name set name.name.last = concat(name.name.last, '!') where name.id = 1")
    assert found(people, "shop.name")[0]["name"] == {"first": "X", "last": "L!"}


def test_assigned_structs_have_their_fields_by_name(people: Lakehouse) -> None:
    other = "named_struct('last', 'NL', 'first', 'NF')"
    people.sql(f"update shop.name as t set t.name = {other}, xs = array(named_struct('b', 20, 'a', 10), null)")
    assert found(people, "shop.name")[0]["name"] == {"first": "NF", "last": "NL"}
    assert found(people, "shop.name")[0]["xs"] == [{"a": 10, "b": 20}, None]
    people.sql(
        f"merge into shop.name t using (select 1 as id, {other} as n union all select 2, null) q on t.id = q.id"
        " when matched then update set t.name = named_struct('last', q.n.first, 'first', 'MF')"
        " when not matched then insert (id, name) values (q.id, named_struct('last', 'l', 'first', 'f'))"
    )
    assert [row["name"] for row in found(people, "shop.name")] == [{"first": "MF", "last": "NF"}, {"first": "f", "last": "l"}]
    people.sql("update shop.name as t set t.name = null, xs = null where id = 1")
    people.sql("update shop.name as t set t.name = struct('a', 'b') where id = 2")
    assert [row["name"] for row in found(people, "shop.name")] == [None, {"first": "a", "last": "b"}]
    for value, field in (("named_struct('last', 'x')", "first"), ("named_struct('last', 'x', 'first', 'y', 'mid', 'z')", "mid")):
        with pytest.raises(SqlError, match=f"has no field '{field}'"):
            people.sql(f"update shop.name as t set t.name = {value}")


def test_values_of_nothing_fit_every_column(people: Lakehouse) -> None:
    people.sql("alter table shop.name add columns (m map<string, struct<a: int, b: int>>)")
    first = "named_struct('b', 2, 'a', 1)"
    for xs, m, stored in (
        ("array()", "map()", ([], [])),
        ("array(null)", "map('k', null)", ([None], [("k", None)])),
        ("array(struct(1, 2))", "map('k', struct(1, 2))", ([{"a": 1, "b": 2}], [("k", {"a": 1, "b": 2})])),
        (f"array({first})", f"map('k', {first})", ([{"a": 1, "b": 2}], [("k", {"a": 1, "b": 2})])),
    ):
        people.sql(f"update shop.name as t set xs = {xs}, m = {m}")
        assert [(row["xs"], row["m"]) for row in found(people, "shop.name")] == [stored]
    source = "(select 1 as id, array() as xs, map() as m)"
    people.sql(f"merge into shop.name t using {source} q on t.id = q.id when matched then update set xs = q.xs, m = q.m")
    people.sql("insert into shop.name by name select 2 as id, array() as xs, map() as m")
    people.sql("insert into shop.name by name select 3 as id, array() as xs, map(7, named_struct('b', 2)) as m")
    assert [row["xs"] for row in found(people, "shop.name")] == [[]] * 3
    assert [row["m"] for row in found(people, "shop.name")] == [[], [], [("7", {"a": None, "b": 2})]]
    for value in ("array(struct(1, 2, 3))", "array(5)"):
        with pytest.raises(SqlError, match="has no field"):
            people.sql(f"update shop.name as t set xs = {value}")


@pytest.mark.parametrize(
    ("around", "shown"), [("{}", "{}"), ("array({})", "[{}]"), ("map('k', {})", "{{k -> {}}}"), ("struct(1 as y, {} as x)", "{{1, {}}}")]
)
def test_a_clause_with_a_star_meets_fields_by_name(lakehouse: Lakehouse, around: str, shown: str) -> None:
    def value(made: str) -> str:
        return around.format(made)

    lakehouse.sql(f"create table shop.t tblproperties (primaryKey = 'id') as select 1 as id, {value('struct(1 as a, 2 as b)')} as v")
    merge = "merge into shop.t t using (select 1 as id, {} as v) q on t.id = q.id when matched then update set *"
    for made, field in (
        ("struct(20 as b, 30 as c)", "c"),  # of as many fields: by position b would be stored as a, and c as b
        ("struct(10 as a)", "b"),
        ("struct(10 as a, 20 as b, 30 as c)", "c"),
    ):
        with pytest.raises(SqlError, match=f"has no field '{field}'"):
            lakehouse.sql(merge.format(value(made)))
    for made, stored in (("struct(20 as B, 10 as a)", "{10, 20}"), ("null", "null")):
        lakehouse.sql(merge.format(value(made)))
        assert rows(lakehouse, "select coalesce(cast(v as string), 'null') from shop.t") == [(shown.format(stored),)]


def test_an_insert_by_name_keeps_the_types_and_columns_of_the_table(people: Lakehouse) -> None:
    before = people.table("shop.name").schema
    people.sql("insert into shop.name by name select named_struct('last', 'BL') as name, 7L as ID, null as xs")
    assert people.table("shop.name").schema.equals(before)
    assert found(people, "shop.name")[-1] == {"id": 7, "name": {"first": None, "last": "BL"}, "xs": None, "last": None, "first": None}
    for query, name in (("select 8 as id, 'x' as typo", "typo"), ("select 8 as id, named_struct('mid', 'x') as name", "mid")):
        with pytest.raises(SqlError, match=f"has no (column|field) '{name}'"):
            people.sql(f"insert into shop.name by name {query}")


def test_an_insert_by_name_has_the_partition_of_its_clause(lakehouse: Lakehouse) -> None:
    lakehouse.sql("create table shop.b (id int, x int, day string default 'dd') partitioned by (day) tblproperties (primaryKey = 'id')")
    lakehouse.sql("insert into shop.b partition (day = 'd1') by name select 1 as id, 1 as x")
    lakehouse.sql("insert into shop.b by name select 2 as id")
    lakehouse.sql("insert overwrite shop.b partition (DAY = 'd2') by name select 5 as id, 5 as x")
    assert rows(lakehouse, "select id, day from shop.b order by id") == [(1, "d1"), (2, "dd"), (5, "d2")]
    for text, why in (
        ("partition (day = 'd1') by name select 2 as id, 'd2' as day", "the query does, too"),
        ("partition (x = 7) by name select 5 as id", "no partition column"),
        ("partition (x = 7) (id, day) select 5, 'a'", "no partition column"),
        ("partition (day = 'a', Day = 'b') select 1, 2", "twice"),
    ):
        with pytest.raises(SqlError, match=why):
            lakehouse.sql(f"insert into shop.b {text}")


@pytest.mark.parametrize(
    ("kind", "stored", "named", "not_one"),
    [
        ("decimal(5,2)", "1.10", "1.1", "'nope'"),
        ("date", "date'2026-01-02'", "'2026-1-2'", "'2026-13-02'"),
        ("boolean", "true", "'TRUE'", "'yes and no'"),
        ("int", "7", "'07'", "7.5"),
        ("timestamp", "timestamp'2026-01-02 00:00:00'", "'2026-01-02 00:00:00'", "'x'"),
        ("string", "'1.10'", "'1.10'", None),
    ],
)
def test_a_named_partition_is_the_one_of_that_value(lakehouse: Lakehouse, kind: str, stored: str, named: str, not_one: str | None) -> None:
    lakehouse.sql(f"create table shop.p (id int, p {kind}) partitioned by (p) tblproperties (primaryKey = 'id')")
    for text in ("truncate table shop.p partition (P = {0})", "alter table shop.p drop partition (p = {0})",
                 "insert overwrite shop.p partition (p = {0}) select 1 where false"):  # fmt: skip
        lakehouse.sql(f"insert into shop.p values (1, {stored}), (2, null)")
        if not_one is not None:
            with pytest.raises(PartitionValueError, match="is no value of the partition column 'p'"):
                lakehouse.sql(text.format(not_one))
        lakehouse.sql(text.format(named))
        assert rows(lakehouse, "select id from shop.p") == [(2,)], text
        lakehouse.sql("delete from shop.p")


def test_a_decimal_in_a_clause_has_all_of_its_digits(lakehouse: Lakehouse) -> None:
    long = "12345678901234567.89"
    lakehouse.sql("create table shop.p (id int, p decimal(20,2)) partitioned by (p) tblproperties (primaryKey = 'id')")
    lakehouse.sql(f"insert into shop.p partition (p = {long}) select 1")
    lakehouse.sql(f"insert overwrite shop.p partition (p = {long}BD) select 2")
    assert rows(lakehouse, "select id, cast(p as string) from shop.p") == [(2, long)]
    with pytest.raises(PartitionValueError, match=f"{long}5 is no value of the partition column 'p'"):
        lakehouse.sql(f"truncate table shop.p partition (p = {long}5)")
    lakehouse.sql("create table shop.s (id int, p string) partitioned by (p) tblproperties (primaryKey = 'id')")
    lakehouse.sql("insert overwrite shop.s partition (p = 1.10) select 1")
    assert rows(lakehouse, "select p from shop.s") == [("1.10",)]


def test_a_setting_in_a_literal_is_what_spark_reads(lakehouse: Lakehouse) -> None:
    lakehouse.sql("create table shop.v (id int, day string) partitioned by (day) tblproperties (primaryKey = 'id')")
    lakehouse.sql("insert into shop.v values (1, 'd1'), (2, 'd2')")
    lakehouse.sql("set shop.rundate=d1")
    assert rows(lakehouse, "select id from shop.v where day = '${shop.rundate}'") == [(1,)]
    for literal in ("'${shop.rundate}'", "date '${shop.rundate}'"):
        with pytest.raises(UnsupportedSqlError, match="without"):
            lakehouse.sql(f"insert into shop.v partition (day = {literal}) select 3")
    lakehouse.sql("delete from shop.v where day = '${shop.rundate}'")
    assert rows(lakehouse, "select id from shop.v") == [(2,)]


def test_a_condition_ends_where_the_statement_does(people: Lakehouse) -> None:
    before = people.table("shop.name").timeline
    for text in ("delete from shop.name where true order by 1 limit 1", "update shop.name set last = 'x' where true limit 1"):
        with pytest.raises(UnsupportedSqlError, match="is not supported"):
            people.sql(text)
    for text in ("delete from shop.name where true limit all", "update shop.name set last = 'x' where true offset 1"):
        with pytest.raises(ParseException):
            people.sql(text)
    assert people.table("shop.name").timeline == before
