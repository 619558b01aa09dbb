"""Columns and fields inside of them: added, placed, typed, renamed, dropped and assigned, with the rows that are there."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import (
    LakehouseError,
    OptionError,
    SchemaIncompatibleError,
    SqlError,
    UnsupportedSqlError,
    UnsupportedTypeError,
)
from lakehouse_engine.model.table_config import TableType


@pytest.fixture(params=["cow", "mor"])
def deep(request: pytest.FixtureRequest, lakehouse: Lakehouse) -> Lakehouse:
    lakehouse.sql(
        "create table shop.t (id int comment 'the key', x int, st struct<f: int, g: string>, xs array<struct<q: int>>,"
        f" m map<string, struct<w: int>>, ts bigint) tblproperties (primaryKey = 'id', preCombineField = 'ts', type = '{request.param}')"
    )
    lakehouse.sql(
        "insert into shop.t values"
        " (1, 10, named_struct('f', 1, 'g', 'x'), array(named_struct('q', 5), null), map('k', named_struct('w', 7)), 1),"
        " (2, 20, null, null, null, 1)"
    )
    return lakehouse


def rows(lakehouse: Lakehouse, columns: str, table: str = "shop.t") -> list[tuple[object, ...]]:
    return [tuple(row) for row in lakehouse.sql(f"select {columns} from {table} order by id").collect()]


def commits(lakehouse: Lakehouse) -> int:
    return len(lakehouse.table("shop.t").history())


def test_fields_are_added_at_every_depth_in_one_commit_without_files(deep: Lakehouse) -> None:
    before = commits(deep)
    deep.sql("alter table shop.t add columns (st.h bigint comment 'new', xs.element.r string, m.value.v int, y int first, z int after id)")
    assert commits(deep) == before + 1
    assert deep.table("shop.t").schema.names == ["y", "id", "z", "x", "st", "xs", "m", "ts"]
    assert rows(deep, "st.h, xs[0].r, xs[0].q, m['k'].v, m['k'].w, y") == [(None, None, 5, None, 7, None), (None,) * 6]
    deep.sql("update shop.t set st.h = 4, y = 3 where id = 1")
    deep.sql("insert into shop.t (id, ts, st) values (3, 1, named_struct('f', 1, 'g', 'b', 'h', 5L))")
    assert rows(deep, "id, st.f, st.h, y") == [(1, 1, 4, 3), (2, None, None, None), (3, 1, 5, None)]


def test_columns_stand_where_they_are_placed_after_more_writes_too(deep: Lakehouse) -> None:
    deep.sql("alter table shop.t alter column ts first")
    deep.sql("alter table shop.t alter column st.g first")
    deep.sql("alter table shop.t change column x x bigint comment 'wide' after m")
    deep.sql("update shop.t set x = 3000000000 where id = 2")
    if deep.table("shop.t").config.table_type is TableType.MERGE_ON_READ:
        deep.sql("call run_compaction('run', 'shop.t')")
    assert deep.sql("select * from shop.t").columns == ["ts", "id", "st", "xs", "m", "x"]
    assert rows(deep, "id, x, st.f, st.g") == [(1, 10, 1, "x"), (2, 3000000000, None, None)]
    assert [row[2] for row in deep.sql("describe shop.t x").collect()] == ["wide"]


def test_fields_are_widened_commented_renamed_and_dropped(deep: Lakehouse) -> None:
    deep.sql("alter table shop.t alter column st.f type bigint")
    deep.sql("alter table shop.t alter column ST.F comment 'inner'")
    deep.sql("alter table shop.t rename column st.f to ff")
    deep.sql("alter table shop.t rename column xs.element.q to qq")
    deep.sql("alter table shop.t rename column m.value.w to ww")
    deep.sql("alter table shop.t add column st.h int")
    deep.sql("alter table shop.t drop columns (st.g, x)")
    kinds = {row[0]: row[1] for row in deep.sql("describe shop.t").collect()}
    assert kinds["st"] == "struct<ff:bigint,h:int>"
    assert kinds["m"] == "map<string,struct<ww:int>>"
    assert "x" not in kinds
    found = rows(deep, "st.ff, size(xs), xs[0].qq, xs[1] is null, m['k'].ww, st is null")
    assert found == [(1, 2, 5, True, 7, False), (None, None, None, True, None, True)]
    columns = json.loads(deep.sql("describe table extended shop.t as json").collect()[0][0])["columns"]
    st = next(one for one in columns if one["name"] == "st")
    assert st["type"]["fields"][0] == {"name": "ff", "type": {"name": "bigint"}, "nullable": True, "comment": "inner"}
    assert columns[0]["comment"] == "the key"


@pytest.mark.parametrize(
    ("statement", "error", "said"),
    [
        ("alter table shop.t alter column st.f type smallint", UnsupportedSqlError, "nothing was changed"),
        ("alter table shop.t alter column ts type int", UnsupportedSqlError, "narrower, and nothing was changed"),
        ("alter table shop.t alter column st.f type string", SchemaIncompatibleError, "cannot become string"),
        ("alter table shop.t alter column st.f type varchar(3)", UnsupportedSqlError, "inside of another column"),
        ("alter table shop.t alter column st.f set not null", UnsupportedSqlError, "inside of another column"),
        ("alter table shop.t alter column st.nope comment 'x'", SchemaIncompatibleError, "st has no field 'nope'"),
        ("alter table shop.t alter column st.f after id", SchemaIncompatibleError, "no column 'id' beside st.f"),
        ("alter table shop.t alter column xs.element first", SchemaIncompatibleError, "alone in xs"),
        ("alter table shop.t add column x.y int", SchemaIncompatibleError, "can be given none"),
        ("alter table shop.t add column ST.F int", SqlError, "st.f' already"),
        ("alter table shop.t add column nope.y int", SchemaIncompatibleError, "no column 'nope'"),
        ("alter table shop.t add column st.`größe` int", SchemaIncompatibleError, "Avro name"),
        ("alter table shop.t add column `größe` varchar(5)", SchemaIncompatibleError, "Avro name"),
        ("alter table shop.t rename column st.f to `größe`", SchemaIncompatibleError, "Avro name"),
        ("alter table shop.t rename column x to `a b`", SchemaIncompatibleError, "Avro name"),
        ("alter table shop.t rename column st.f to g", SchemaIncompatibleError, "one name"),
        ("alter table shop.t rename column x to _hoodie_file_name", LakehouseError, "_hoodie_file_name"),
        ("alter table shop.t drop column st.nope", OptionError, "no field 'nope'"),
        ("alter table shop.t drop columns (st.f, st.g)", UnsupportedSqlError, "without a field"),
        ("alter table shop.t drop column id", UnsupportedSqlError, "cannot be dropped"),
        ("update shop.t set st.nope = 1", SqlError, "has no field 'nope'"),
        ("update shop.t set xs.element.q = 1", UnsupportedSqlError, "inside of a list or map"),
        ("update shop.t set x.f = 1", UnsupportedSqlError, "has no fields, being int"),
        ("merge into shop.t t using (select 9 as id) s on t.id = s.id when not matched then insert (id, ts, st.f) values (9, 1, 1)",
         UnsupportedSqlError, "inside of one"),
        ("merge with schema evolution into shop.t t using (select 1 as id, 1 as `größe`) s on t.id = s.id when matched then update set *",
         SchemaIncompatibleError, "Avro name"),
        ("merge with schema evolution into shop.t t using (select 1 as id, null as v) s on t.id = s.id when matched then update set *",
         UnsupportedTypeError, "null"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_changes(deep: Lakehouse, statement: str, error: type[Exception], said: str) -> None:
    table = deep.table("shop.t")
    before = commits(deep), table.schema, dict(table.config.properties)
    with pytest.raises(error, match=said):
        deep.sql(statement)
    after = deep.table("shop.t")
    assert (commits(deep), after.schema, dict(after.config.properties)) == before


def test_names_that_avro_cannot_hold_make_no_table(lakehouse: Lakehouse) -> None:
    for rest in ("(`größe` int)", "as select 1 as `größe`", "(st struct<`ä`: int>)"):
        with pytest.raises(SchemaIncompatibleError, match="Avro name"):
            lakehouse.sql(f"create table shop.n {rest}")
    assert not lakehouse.exists("shop.n")


def test_merge_with_schema_evolution_adds_columns_and_fields_in_the_commit_of_the_rows(deep: Lakehouse) -> None:
    before = commits(deep)
    deep.sql(
        "merge with schema evolution into shop.t t using ("
        "select 1 as id, 99L as x, named_struct('h', 6, 'f', 2) as st, 2L as ts, 'upd' as extra"
        " union all select 3, 1L, named_struct('h', 5, 'f', 1), 2L, 'new') s on t.id = s.id"
        " when matched then update set * when not matched then insert *"
    )
    assert commits(deep) == before + 1
    found = rows(deep, "id, x, st.f, st.g, st.h, extra, xs[0].q")
    assert found == [(1, 99, 2, "x", 6, "upd", 5), (2, 20, None, None, None, None, None), (3, 1, 1, None, 5, "new", None)]
    assert deep.table("shop.t").schema.field("x").type == pa.int32(), "no type becomes another one"


def test_merge_with_schema_evolution_adds_what_assignments_name(deep: Lakehouse) -> None:
    deep.sql(
        "merge with schema evolution into shop.t t using (select 1 as id, 1.5D as neu, 7 as unused) s on t.id = s.id"
        " when matched then update set neu = s.neu, t.st.g = 'm' when not matched by source then update set x = -1"
    )
    assert deep.table("shop.t").schema.names == ["id", "x", "st", "xs", "m", "ts", "neu"]
    assert rows(deep, "id, x, st.f, st.g, neu") == [(1, 10, 1, "m", 1.5), (2, -1, None, None, None)]


def test_merge_takes_fields_by_their_names(deep: Lakehouse) -> None:
    deep.sql("alter table shop.t add column st.h string")
    deep.sql(
        "merge into shop.t t using (select 1 as id, 1 as x, named_struct('h', 'H', 'g', 'G', 'f', 3) as st,"
        " array(named_struct('q', 1)) as xs, map('k', named_struct('w', 1)) as m, 5L as ts) s"
        " on t.id = s.id when matched then update set *"
    )
    assert rows(deep, "st.f, st.g, st.h")[0] == (3, "G", "H")
