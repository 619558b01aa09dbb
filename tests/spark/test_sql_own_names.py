"""Statements that change rows add columns of their own: columns of tables and sources may be called the same."""

from __future__ import annotations

import pytest

from lakehouse_engine import Lakehouse

_NAMES = ["__lakehouse_present", "__lakehouse_clause", "__Lakehouse_Clause_", "__lakehouse_holds", "__lakehouse_order", "__c0"]


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_changes_of_tables_that_have_a_column_of_such_a_name(lakehouse: Lakehouse, kind: str, name: str) -> None:
    made = f"create table shop.t (id bigint, {name} string, v string) using hudi tblproperties (primaryKey = 'id', type = '{kind}')"
    lakehouse.sql(made)
    lakehouse.sql("insert into shop.t values (1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'x')")
    lakehouse.sql(
        f"merge into shop.t using (select 2L as id, 'B' as {name}, 'y' as v union all select 4L, 'd', 'y') s on t.id = s.id"
        f" when matched and t.{name} = 'b' then update set *"
        f" when not matched and s.{name} = 'd' then insert *"
        f" when not matched by source and t.{name} = 'c' then delete"
    )
    assert _rows(lakehouse) == [(1, "a", "x"), (2, "B", "y"), (4, "d", "y")]
    lakehouse.sql(f"update shop.t set {name} = concat({name}, '!') where {name} = 'a'")
    lakehouse.sql(f"delete from shop.t where {name} = 'd'")
    lakehouse.sql(f"insert into shop.t replace where {name} = 'B' select 5L, 'B', 'z'")
    assert _rows(lakehouse) == [(1, "a!", "x"), (5, "B", "z")]


@pytest.mark.parametrize("name", _NAMES)
def test_a_source_may_have_such_a_column_that_the_table_has_not(lakehouse: Lakehouse, name: str) -> None:
    lakehouse.sql("create table shop.t (id bigint, v string, w string) using hudi tblproperties (primaryKey = 'id')")
    lakehouse.sql("insert into shop.t values (1, 'x', 'p'), (2, 'x', 'p')")
    lakehouse.sql(
        f"merge into shop.t using (select 2L as id, 'y' as {name} union all select 3L, 'z') s on t.id = s.id"
        f" when matched then update set v = s.{name} when not matched then insert (id, v, w) values (s.id, s.{name}, s.{name})"
    )
    assert _rows(lakehouse) == [(1, "x", "p"), (2, "y", "p"), (3, "z", "z")]


def _rows(lakehouse: Lakehouse) -> list[tuple[object, ...]]:
    return [tuple(row) for row in lakehouse.sql("select * from shop.t order by id").collect()]
