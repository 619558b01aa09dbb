"""GENERATED ALWAYS AS (expression): computed by statements and frames, compared where a value is given, refused before anything changes."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from itertools import chain, repeat
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import ChangedSinceReadError, ConstraintError, UnsupportedSqlError
from lakehouse_engine.model.constraints import Generated
from lakehouse_engine.spark.completing import completed
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.alter import set_constraints
from lakehouse_engine.write.operation import execute_write
from lakehouse_engine.write.request import WriteRequest

CREATE = (
    "create table s.t (id string, ts timestamp, n int, day date generated always as (cast(ts as date)) comment 'of ts',"
    " twice bigint not null generated always as (coalesce(n, 0) * 2L)) {} tblproperties (primaryKey = 'id', type = '{}')"
)
PARTITIONED = "partitioned by (day)"
KINDS = pytest.mark.parametrize(("kind", "partitions"), [("cow", ""), ("mor", ""), ("cow", PARTITIONED), ("mor", PARTITIONED)])
FIRST, SECOND, THIRD = (f"2024-01-0{number}" for number in (1, 2, 3))


def made(lakehouse: Lakehouse, kind: str = "cow", partitions: str = "") -> HoodieTable:
    lakehouse.sql(CREATE.format(partitions, kind))
    return lakehouse.table("s.t")


def at(day: str) -> str:
    return f"timestamp '{day} 10:00:00'"


def stored(lakehouse: Lakehouse, table: str = "s.t") -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in lakehouse.sql(f"select id, string(ts), n, string(day), twice from {table}").collect())


def row(key: str, day: str | None, n: int | None) -> tuple[object, ...]:
    return key, None if day is None else f"{day} 10:00:00", n, day, (n or 0) * 2


@KINDS
def test_inserts_compute_what_they_leave_out(lakehouse: Lakehouse, kind: str, partitions: str) -> None:
    made(lakehouse, kind, partitions)
    lakehouse.sql(f"insert into s.t (id, ts, n) values ('a', {at(FIRST)}, 1)")
    lakehouse.sql(f"insert into s.t (n, id, twice, ts) values (2, 'b', DEFAULT, {at(SECOND)}), (3, 'c', default, {at(FIRST)})")
    lakehouse.sql(f"insert into s.t values ('d', {at(FIRST)}, 4, date '{FIRST}', 8), ('e', {at(SECOND)}, 5, date '{SECOND}', 10)")
    lakehouse.sql(f"insert into s.t by name select 'f' as id, {at(SECOND)} as ts")
    lakehouse.sql(f"insert into s.t select 'g', {at(THIRD)}, 7, default, default")
    lakehouse.sql("insert into s.t (id, ts, twice, day) select id || '2', ts, twice - 2, day from s.t where id = 'a'")
    everything = [("a", FIRST, 1), ("a2", FIRST, None), ("b", SECOND, 2), ("c", FIRST, 3), ("d", FIRST, 4), ("e", SECOND, 5)]
    everything += [("f", SECOND, None), ("g", THIRD, 7)]
    assert stored(lakehouse) == [row(*one) for one in everything]
    lakehouse.sql(f"insert overwrite s.t (id, ts) values ('z', {at(THIRD)})")
    assert stored(lakehouse) == [row("z", THIRD, None)]
    lakehouse.sql(f"insert into s.t (id, n, ts) replace where day = date '{THIRD}' values ('y', 1, {at(THIRD)})")
    assert stored(lakehouse) == [row("y", THIRD, 1)]
    lakehouse.sql("create table s.u like s.t")
    lakehouse.sql(f"from (select 'x' as id, {at(FIRST)} as ts) insert into s.t (id, ts) select * insert into s.u (id) select id || '2'")
    assert (stored(lakehouse), stored(lakehouse, "s.u")) == ([row("x", FIRST, None), row("y", THIRD, 1)], [row("x2", None, None)])


@KINDS
def test_updates_compute_it_of_what_they_change(lakehouse: Lakehouse, kind: str, partitions: str) -> None:
    table = made(lakehouse, kind, partitions)
    lakehouse.sql(f"insert into s.t (id, ts, n) values ('a', {at(FIRST)}, 1), ('b', {at(FIRST)}, 2), ('c', {at(SECOND)}, 3)")
    lakehouse.sql(f"update s.t set ts = {at(THIRD)} where id = 'a'")
    lakehouse.sql("update s.t set n = n + 1, twice = default, day = DEFAULT where id in ('a', 'b')")
    lakehouse.sql(f"update s.t set ts = {at(FIRST)}, day = date '{FIRST}' where id = 'c'")
    assert stored(lakehouse) == [row("a", THIRD, 2), row("b", FIRST, 3), row("c", FIRST, 3)]
    if partitions:
        assert {path for path in table.state.view.partitions() if table.state.view.latest_slices(path)} >= {f"day={FIRST}", f"day={THIRD}"}
        read = lakehouse.sql(f"select id from s.t where day = date '{THIRD}'").collect()
        assert [one[0] for one in read] == ["a"]


@KINDS
def test_merges_compute_it_in_each_clause(lakehouse: Lakehouse, kind: str, partitions: str) -> None:
    made(lakehouse, kind, partitions)
    lakehouse.sql(f"insert into s.t (id, ts, n) values ('a', {at(FIRST)}, 1), ('b', {at(FIRST)}, 2), ('c', {at(SECOND)}, 3)")
    lakehouse.sql(
        f"merge into s.t t using (select explode(array('a', 'b', 'd', 'e')) as id, {at(THIRD)} as ts, 9 as n) s on t.id = s.id"
        " when matched and s.id = 'a' then update set ts = s.ts, twice = default when matched then update set n = s.n, twice = 18"
        " when not matched and s.id = 'd' then insert (id, ts, day) values (s.id, s.ts, default) when not matched then insert *"
        " when not matched by source then update set n = 30"
    )
    expected = [row("a", THIRD, 1), row("b", FIRST, 9), row("c", SECOND, 30), row("d", THIRD, None), row("e", THIRD, 9)]
    assert stored(lakehouse) == expected
    lakehouse.sql(
        f"merge into s.t t using (select 'a' as id, {at(SECOND)} as ts, 5 as n, date '{SECOND}' as day, 10L as twice) s on t.id = s.id"
        " when matched then update set * when not matched by source and t.id = 'e' then delete"
    )
    assert stored(lakehouse) == [row("a", SECOND, 5), *expected[1:4]]
    lakehouse.sql(
        f"merge with schema evolution into s.t t using (select id, {at(SECOND)} as ts, 'new' as note from values 'b', 'f' as v(id)) s"
        " on t.id = s.id when matched then update set * when not matched then insert *"
    )
    assert stored(lakehouse) == [row("a", SECOND, 5), row("b", SECOND, 9), *expected[2:4], row("f", SECOND, None)]


WRONG = {
    f"insert into s.t values ('z', {at(FIRST)}, 1, date '{SECOND}', 2)": ("day", SECOND),
    f"insert into s.t (id, ts, n, twice) values ('y', {at(FIRST)}, 1, 2), ('z', {at(FIRST)}, 1, 3)": ("twice", '"z"'),
    "insert into s.t (id, ts, twice) select 'z', ts, null from s.t": ("twice", "null"),
    f"insert overwrite s.t (id, ts, day) values ('z', {at(FIRST)}, date '{SECOND}')": ("day", '"z"'),
    f"insert into s.t (id, ts, day) replace where day = date '{SECOND}' values ('z', {at(FIRST)}, date '{SECOND}')": ("day", '"z"'),
    f"insert into s.t by name select 'z' as id, {at(FIRST)} as ts, null as day": ("day", "null"),
    f"update s.t set day = date '{THIRD}' where id = 'a'": ("day", '"a"'),
    "update s.t set n = 5, twice = 11": ("twice", "11"),
    f"merge into s.t t using (select 'a' as id) s on t.id = s.id when matched then update set day = date '{THIRD}'": ("day", THIRD),
    f"merge into s.t t using (select 'q' as id) s on t.id = s.id when not matched then insert (id, day) values (s.id, date '{THIRD}')": (
        "day",
        '"q"',
    ),
    f"merge into s.t t using (select 'q' as id, {at(FIRST)} as ts, 1 as n, 7L as twice) s on t.id = s.id when not matched then insert *": (
        "twice",
        "7",
    ),
}


@pytest.mark.parametrize("text", WRONG)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_another_value_is_refused_with_the_row_and_changes_nothing(lakehouse: Lakehouse, kind: str, text: str) -> None:
    table = made(lakehouse, kind)
    lakehouse.sql(f"insert into s.t (id, ts, n) values ('a', {at(FIRST)}, 1), ('b', {at(FIRST)}, 2)")
    before, instants = stored(lakehouse), table.timeline.completed().instants
    column, shown = WRONG[text]
    with pytest.raises(ConstraintError, match=rf"column '{column}' is GENERATED ALWAYS AS .*{shown}") as raised:
        lakehouse.sql(text)
    assert raised.value.context["column"] == column
    assert (stored(lakehouse), lakehouse.table("s.t").timeline.completed().instants) == (before, instants)


def arrow(key: str, day: str | None, n: int | None) -> pa.Table:
    moment = None if day is None else datetime.datetime.fromisoformat(f"{day} 10:00:00+00:00")
    columns = {"id": pa.array([key]), "ts": pa.array([moment], pa.timestamp("us", "UTC")), "n": pa.array([n], pa.int32())}
    return pa.table(columns)


WRITES: dict[str, Callable[[HoodieTable, Any], object]] = {
    "insert": lambda table, rows: table.insert(rows, options=EVOLVE),
    "bulk_insert": lambda table, rows: table.bulk_insert(rows, options=EVOLVE),
    "upsert": lambda table, rows: table.upsert(rows, options=EVOLVE),
    "insert_overwrite": lambda table, rows: table.insert_overwrite(rows, options=EVOLVE),
    "insert_overwrite_table": lambda table, rows: table.insert_overwrite_table(rows),
}
EVOLVE = {"hoodie.datasource.write.reconcile.schema": "true"}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_frames_and_arrow_data_are_computed_and_compared_in_every_write(lakehouse: Lakehouse, kind: str, write: str) -> None:
    table = made(lakehouse, kind)
    put = WRITES[write]
    put(table, arrow("a", FIRST, 1))
    put(table, lakehouse.sql(f"select 'a' as id, {at(SECOND)} as ts, 3 as n, 6L as TWICE"))
    assert stored(lakehouse)[-1] == row("a", SECOND, 3)
    before = stored(lakehouse)
    wrong = arrow("q", FIRST, 1).append_column("day", pa.array([datetime.date(2024, 1, 2)]))
    for rows in (wrong, wrong.to_reader(), wrong.to_pandas(), lakehouse.sql(f"select 'q' as id, {at(FIRST)} as ts, 1 as n, 3L as twice")):
        with pytest.raises(ConstraintError, match=r'is GENERATED ALWAYS AS .*"id":"q"'):
            put(table, rows)
    with pytest.raises(ConstraintError, match=r"'day' is GENERATED .* only Spark computes: open the table with a SparkSession"):
        put(HoodieTable.open(table.storage.root), arrow("q", FIRST, 1))
    assert stored(lakehouse) == before


def test_inserts_leave_it_to_the_write_to_compute_it_once(lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(state: TableState, request: WriteRequest, spark: SparkSession | None) -> WriteRequest:
        given.append(request.data.schema.names if request.data is not None else [])
        return completed(state, request, spark)

    made(lakehouse)
    given: list[list[str]] = []
    monkeypatch.setattr("lakehouse_engine.spark.completing.completed", seen)
    lakehouse.sql(f"insert into s.t (id, ts, n) values ('a', {at(FIRST)}, 1)")
    lakehouse.sql(f"insert overwrite s.t (id, ts, twice, day) values ('a', {at(FIRST)}, default, date '{FIRST}')")
    assert given == [["id", "ts", "n"], ["id", "ts", "day"]]
    assert stored(lakehouse) == [row("a", FIRST, None)]


def test_rows_are_computed_again_where_others_change_how_before_the_lock(lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    def overtaken(*arguments: Any) -> Any:
        expression = f"coalesce(n, 0) * {next(factors)}L"
        thrice = Generated("twice", expression, ("n",))
        set_constraints(table.storage, lambda kept: kept.with_generated("twice", thrice), lock_timeout_ms=1000)
        return execute_write(*arguments)

    table, factors = made(lakehouse), chain([3], repeat(4))
    monkeypatch.setattr("lakehouse_engine.table.execute_write", overtaken)
    lakehouse.sql(f"insert into s.t (id, ts, n) values ('a', {at(FIRST)}, 1)")
    assert [one[-1] for one in stored(lakehouse)] == [4]
    factors = repeat(5)
    with pytest.raises(ChangedSinceReadError, match="differ in twice"):
        table.insert(lakehouse.sql("select 'b' as id, ts, n from s.t"))
    assert [one[-1] for one in stored(lakehouse)] == [4]


def test_rows_without_values_to_compute_need_no_spark(lakehouse: Lakehouse) -> None:
    table = made(lakehouse)
    lakehouse.sql(f"insert into s.t (id, ts) values ('a', {at(FIRST)}), ('b', {at(FIRST)})")
    alone = HoodieTable.open(table.storage.root)
    alone.delete(pa.table({"id": ["a"]}))
    assert stored(lakehouse) == [row("b", FIRST, None)]
    alone.insert_overwrite_table(pa.table({"id": pa.array([], pa.string()), "ts": pa.array([], pa.timestamp("us", "UTC"))}), options=EVOLVE)
    assert (stored(lakehouse), alone.schema.names) == ([], ["id", "ts", "n", "day", "twice"])


def test_rows_that_leave_out_what_it_is_computed_of_are_null_in_it_only_where_columns_may_be_left_out(lakehouse: Lakehouse) -> None:
    table, rows = made(lakehouse), lakehouse.sql("select 'a' as id, 1 as n")
    for write in (table.insert, table.bulk_insert, table.insert_overwrite_table):
        with pytest.raises(ConstraintError, match=r"'day' is GENERATED .* do not have 'ts', which it is computed of"):
            write(rows)
        write(rows, options=EVOLVE)
        assert stored(lakehouse)[0] == row("a", None, 1)
    with pytest.raises(ConstraintError, match="do not have 'ts'"):
        table.insert_overwrite_table(rows, replace_schema=True)
    table.insert_overwrite_table(lakehouse.sql(f"select 2 as n, 'b' as id, {at(FIRST)} as ts, 'x' as more"), replace_schema=True)
    assert table.schema.names == ["n", "id", "ts", "more", "day", "twice"]
    assert stored(lakehouse) == [row("b", FIRST, 2)]


def test_upserts_of_some_columns_never_mix_what_it_is_computed_of(lakehouse: Lakehouse) -> None:
    lakehouse.sql("create table s.t (id int, a int, b int, c int generated always as (a + b), d int) tblproperties (primaryKey = 'id')")
    lakehouse.sql("insert into s.t (id, a, b, d) values (1, 1, 1, 1)")
    table, rows = lakehouse.table("s.t"), lakehouse.sql("select 1 as id, 5 as a, 6 as b, 7 as d union all select 2, 5, 6, 7")

    def now() -> list[tuple[object, ...]]:
        return sorted(tuple(one) for one in lakehouse.sql("select id, a, b, c, d from s.t").collect())

    with pytest.raises(ConstraintError, match=r"'c' is GENERATED .* do not have 'b'"):
        table.upsert(rows.drop("b"), options=EVOLVE)
    with pytest.raises(ConstraintError, match="'a' is among the columns to update and 'b' is not"):
        table.upsert(rows, merge_update_columns=["a"])
    assert now() == [(1, 1, 1, 2, 1)]
    table.upsert(rows, merge_update_columns=["d"])
    assert now() == [(1, 1, 1, 2, 7), (2, 5, 6, 11, 7)]
    table.upsert(rows.withColumn("c", rows.a + rows.b), merge_update_columns=["c", "d"])
    assert now() == [(1, 1, 1, 2, 7), (2, 5, 6, 11, 7)]
    table.upsert(rows, merge_update_columns=["a", "b"])
    assert now() == [(1, 5, 6, 11, 7), (2, 5, 6, 11, 7)]


def test_an_upsert_of_some_columns_moves_the_ordering_field_and_what_it_is_computed_of(lakehouse: Lakehouse) -> None:
    generated = "ts int generated always as (at * 10), of_both int generated always as (id + at)"
    lakehouse.sql(f"create table s.t (id int, v string, at int, {generated}) tblproperties (primaryKey = 'id', preCombineField = 'ts')")
    table = lakehouse.table("s.t")
    for v, at in (("first", 1), ("newest", 10), ("late", 5)):
        table.upsert(lakehouse.sql(f"select 1 as id, '{v}' as v, {at} as at, {at} * 10 as ts"), merge_update_columns=["v"])
    assert [tuple(one) for one in lakehouse.sql("select v, at, ts, of_both from s.t").collect()] == [("newest", 10, 100, 11)]


def test_payloads_that_mix_rows_are_refused_and_statements_still_write(lakehouse: Lakehouse) -> None:
    payload = "'hoodie.datasource.write.payload.class' = 'org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload'"
    lakehouse.sql(f"create table s.t (id int, a int, b int generated always as (a + 1)) tblproperties (primaryKey = 'id', {payload})")
    lakehouse.sql("insert into s.t (id, a) values (1, 1)")
    with pytest.raises(ConstraintError, match="'b' is generated, and the payload class"):
        lakehouse.table("s.t").upsert(lakehouse.sql("select 1 as id, cast(null as int) as a"))
    lakehouse.sql("update s.t set a = null")
    assert [tuple(one) for one in lakehouse.sql("select id, a, b from s.t").collect()] == [(1, None, None)]


def test_rows_that_say_that_they_are_deletions_need_no_right_value(lakehouse: Lakehouse) -> None:
    lakehouse.sql(
        "create table s.t (id int, a int, b int generated always as (a + 1), _hoodie_is_deleted boolean) tblproperties (primaryKey = 'id')"
    )
    lakehouse.sql("insert into s.t (id, a) values (1, 1), (2, 2)")
    lakehouse.table("s.t").upsert(lakehouse.sql("select 1 as id, cast(null as int) as a, 9 as b, true as _hoodie_is_deleted"))
    assert [tuple(one) for one in lakehouse.sql("select id, a, b from s.t").collect()] == [(2, 2, 3)]


def test_it_is_computed_of_values_as_they_are_stored(lakehouse: Lakehouse) -> None:
    lakehouse.sql(
        "create table s.t (id int, word varchar(3), n double, size int generated always as (length(word)),"
        " text varchar(4) generated always as (n || ' ')) tblproperties (primaryKey = 'id')"
    )
    lakehouse.sql("insert into s.t (id, word, n) values (1, 'ab   ', 1)")
    lakehouse.table("s.t").upsert(lakehouse.sql("select 2 as id, 'ab    ' as word, 1 as n"), options=EVOLVE)
    lakehouse.sql("merge into s.t t using (select * from s.t) s on t.id = s.id when matched then update set *")
    assert sorted(map(tuple, lakehouse.sql("select id, word, n, size, text from s.t").collect())) == [
        (1, "ab ", 1.0, 3, "1.0 "),
        (2, "ab ", 1.0, 3, "1.0 "),
    ]


def test_another_time_zone_is_refused_where_it_matters(lakehouse: Lakehouse, spark: SparkSession) -> None:
    table = made(lakehouse)
    assert [(one.column, one.inputs, one.zone) for one in table.config.constraints.generated] == [
        ("day", ("ts",), "UTC"),
        ("twice", ("n",), ""),
    ]
    lakehouse.sql("create table s.u (id int, b int generated always as (id + 1))")
    spark.conf.set("spark.sql.session.timeZone", "Etc/UTC")
    lakehouse.sql(f"insert into s.t (id, ts) values ('o', {at(FIRST)})")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    for text in (f"insert into s.t (id, ts) values ('a', {at(FIRST)})", "update s.t set n = 1"):
        with pytest.raises(ConstraintError, match=r"'day' .* in the time zone UTC, and this session's is Asia/Tokyo"):
            lakehouse.sql(text)
    lakehouse.sql("insert into s.u (id) values (1)")
    assert [tuple(one) for one in lakehouse.sql("select * from s.u").collect()] == [(1, 2)]


def test_what_shows_the_table_tells_it_and_copies_keep_it(lakehouse: Lakehouse) -> None:
    made(lakehouse, "mor", PARTITIONED)
    extended = [tuple(one) for one in lakehouse.sql("describe extended s.t").collect()]
    where = extended.index(("# Generated Columns", "", ""))
    assert extended[where + 1 :] == [("day", "date", "cast(ts as date)"), ("twice", "bigint", "coalesce(n, 0) * 2L")]
    columns = json.loads(lakehouse.sql("describe extended s.t as json").collect()[0][0])["columns"]
    assert [one.get("generation_expression") for one in columns] == [None, None, None, "cast(ts as date)", "coalesce(n, 0) * 2L"]
    listed = lakehouse.sql("select is_generated, generation_expression from information_schema.columns where table_name = 't'"
                           " order by ordinal_position")
    assert [tuple(one) for one in listed.collect()][2:] == [
        ("NEVER", None),
        ("ALWAYS", "cast(ts as date)"),
        ("ALWAYS", "coalesce(n, 0) * 2L"),
    ]
    shown = lakehouse.sql("show create table s.t").collect()[0][0]
    lakehouse.sql(shown.replace("s.t", "s.u"))
    lakehouse.sql("create table s.l like s.t")
    lakehouse.sql("create table s.c clone s.t")
    for name in ("s.u", "s.l", "s.c"):
        assert lakehouse.table(name).config.constraints == lakehouse.table("s.t").config.constraints
        lakehouse.sql(f"insert into {name} (id, ts, n) values ('a', {at(FIRST)}, 1)")
        assert stored(lakehouse, name) == [row("a", FIRST, 1)]


def test_columns_that_it_is_computed_of_stay_as_they_are(lakehouse: Lakehouse) -> None:
    lakehouse.sql(
        "create table s.t (id int, date int, s struct<a: int, b: int>, g int generated always as (cast(date + s.a as int)),"
        " o int) tblproperties (primaryKey = 'id')"
    )
    lakehouse.sql("insert into s.t (id, date, s, o) values (1, 1, named_struct('a', 2, 'b', 3), 4)")
    before = lakehouse.table("s.t").timeline.instants, lakehouse.table("s.t").config.properties
    for text, said in {
        "alter table s.t rename column date to d": "'date' keeps its name: the column 'g' is GENERATED ALWAYS AS",
        "alter table s.t rename column s.b to c": "'s.b' keeps its name: the column 'g'",
        "alter table s.t drop column s": "'s' cannot be dropped: the column 'g'",
        "alter table s.t drop columns (o, date)": "'date' cannot be dropped: the column 'g'",
        "alter table s.t alter column date type bigint": "'date' keeps its type: the column 'g'",
        "alter table s.t alter column g type bigint": "'g' keeps its type",
        "alter table s.t add column s.c int": "'s.c' cannot be added",
        "alter table s.t alter column g set default 1": "DEFAULT of g: it is GENERATED",
        "alter table s.t add column h int generated always as (o)": "ADD COLUMN h .* stored rows would need it",
        "update s.t set g.x = 1": "inside of a generated column",
        "insert into s.t (id, g) values (2, default), (3, 4)": "DEFAULT in some rows",
        "insert into s.t by name select 2 as id, default as g": "leave the column out",
    }.items():
        with pytest.raises(UnsupportedSqlError, match=said):
            lakehouse.sql(text)
    assert (lakehouse.table("s.t").timeline.instants, lakehouse.table("s.t").config.properties) == before


def test_it_goes_and_is_renamed_and_replaced_with_its_column(lakehouse: Lakehouse) -> None:
    lakehouse.sql(
        "create table s.t (id int, a int, g int generated always as (a + 1), h int generated always as (a + 2), o int)"
        " tblproperties (primaryKey = 'id', 'hoodie.clean.automatic' = 'false')"
    )
    lakehouse.sql("insert into s.t (id, a) values (1, 1)")
    first = lakehouse.table("s.t").timeline.completed().instants[-1].requested_time
    lakehouse.sql("alter table s.t rename column g to k")
    lakehouse.sql("alter table s.t rename column o to p")
    lakehouse.sql("alter table s.t alter column k first")
    lakehouse.sql("alter table s.t drop column h")
    assert lakehouse.table("s.t").config.constraints.generated == (Generated("k", "a + 1", ("a",)),)
    lakehouse.sql("insert into s.t (id, a) values (2, 2)")
    assert sorted(map(tuple, lakehouse.sql("select * from s.t").collect())) == [(2, 1, 1, None), (3, 2, 2, None)]
    lakehouse.sql("alter table s.t drop columns (k, a)")
    lakehouse.sql("alter table s.t add column k int")
    lakehouse.sql("insert into s.t values (3, null, 9)")
    assert sorted(map(tuple, lakehouse.sql("select id, k from s.t").collect())) == [(1, None), (2, None), (3, 9)]
    lakehouse.sql("create or replace table s.t (id int, k int generated always as (id * 2)) tblproperties (primaryKey = 'id')")
    lakehouse.sql("insert into s.t (id) values (4)")
    assert [tuple(one) for one in lakehouse.sql("select id, k from s.t").collect()] == [(4, 8)]
    lakehouse.sql("create or replace table s.t tblproperties (primaryKey = 'id') as select 5 as id, 0 as k")
    assert not lakehouse.table("s.t").config.constraints.generated
    # As of then, rows have the columns of then; a restore takes rows back, and not what is said of columns.
    assert sorted(map(tuple, lakehouse.sql(f"select id, g, h from s.t version as of '{first}'").collect())) == [(1, 2, 3)]


NOT_TAKEN = {
    "g int generated always as (missing + 1)": "computed of other columns of its row",
    "g int generated always as (s.t.a)": "computed of other columns",
    "g int generated always as ((select 1))": "no sub-query",
    "g bigint generated always as (sum(a))": "aggregate",
    "g bigint generated always as (count(*))": "aggregate",
    "g int generated always as (row_number() over (order by a))": "window",
    "g int generated always as (explode(array(a)))": "function that gives rows",
    "g string generated always as (uuid())": "random value",
    "g double generated always as (a + rand())": "random value",
    "g timestamp generated always as (current_timestamp())": r"of the moment.*current_timestamp",
    "g date generated always as (current_date)": r"of the moment.*current_date",
    "g string generated always as (current_user())": "of the moment",
    "g bigint generated always as (unix_timestamp())": r"unix_timestamp\(\)",
    "g int generated always as (own(a))": r"function of the session.*\(own\)",
    "g int generated always as (a + var)": r"variable.*\(var\)",
    "g string generated always as (to_json(struct(*)))": "computed of other columns",
    "g int generated always as (g + 1)": "computed of itself",
    "h int generated always as (a + 1), g int generated always as (h + 1)": "computed of h, which is generated, too",
    "g int generated always as (array(a))": r"type array<int> does not fit int; cast it",
    "g boolean generated always as (a)": "type int does not fit boolean",
    "g map<string, int> generated always as (map('a', a))": "Spark does not compare maps",
}


@pytest.mark.parametrize("columns", NOT_TAKEN)
def test_what_is_no_expression_of_the_row_is_refused_by_name_and_nothing_is_made(
    lakehouse: Lakehouse, spark: SparkSession, columns: str
) -> None:
    spark.sql("create temporary function own(x int) returns int return x * x")
    spark.sql("declare or replace variable var int default 3")
    try:
        with pytest.raises(UnsupportedSqlError, match=NOT_TAKEN[columns]) as raised:
            lakehouse.sql(f"create table s.t (id int, a int, {columns})")
    finally:
        spark.sql("drop temporary variable var")
        spark.sql("drop temporary function own")
    assert (raised.value.context["relation"], raised.value.context["column"]) == ("s.t", "g")
    assert not lakehouse.exists("s.t")


def test_a_key_cannot_be_generated(lakehouse: Lakehouse) -> None:
    with pytest.raises(UnsupportedSqlError, match="record key cannot be generated"):
        lakehouse.sql("create table s.t (a int, id int generated always as (a + 1)) tblproperties (primaryKey = 'id')")


@pytest.mark.parametrize(
    ("column", "value", "inputs"),
    [
        ("date date generated always as (cast(ts as date))", datetime.date(2024, 1, 1), ("ts",)),
        ("g array<int> generated always as (transform(array(a), id -> id + a))", [2], ("a",)),
        ("g string generated always as (case when a is not null then 'x), ' || st.b end)", "x), y", ("a", "st")),
        ("g int generated always as (`A` -- one\n + 1 /* two */)", 2, ("a",)),
        ("g int generated always as (1 + 1)", 2, ()),
        ("g string generated always as (a)", "1", ("a",)),
        ("g struct<p: int, q: int> generated always as (named_struct('p', a, 'q', a + 1))", {"p": 1, "q": 2}, ("a",)),
        ("current_date int generated always as (a * 3)", 3, ("a",)),
        ("g int generated always as (user + 1)", 6, ("user",)),
    ],
)
def test_what_is_of_the_row_is_computed(lakehouse: Lakehouse, column: str, value: object, inputs: tuple[str, ...]) -> None:
    lakehouse.sql(f"create table s.t (id int, a int, ts timestamp, st struct<b: string>, user int, {column})")
    lakehouse.sql(f"insert into s.t (id, a, ts, st, user) values (1, 1, {at(FIRST)}, named_struct('b', 'y'), 5)")
    [one] = lakehouse.table("s.t").config.constraints.generated
    [found] = lakehouse.sql(f"select {one.column} from s.t").toArrow().column(0).to_pylist()
    assert (found, one.inputs) == (value, inputs)
