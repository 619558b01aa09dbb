"""Parameter markers without names (`?`): each has its value, wherever the engine puts the expression that it stands in."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import ConstraintError, SqlError, UnsupportedSqlError


@pytest.fixture
def two(lakehouse: Lakehouse) -> Lakehouse:
    for name in ("a", "b"):
        lakehouse.sql(f"create table shop.{name} (id int, x int, y int) tblproperties (primaryKey = 'id')")
    lakehouse.sql("insert into shop.a values (1, 10, 100), (2, 20, 200), (3, 30, 300)")
    return lakehouse


def rows(lakehouse: Lakehouse, text: str, args: list[Any] | None = None) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in lakehouse.sql(text, args).collect())


def test_each_insert_behind_from_has_its_own_values_and_those_of_the_source(two: Lakehouse) -> None:
    source, first, second = "from (select * from shop.a where id > ?) s", "insert into shop.a select id + ?, x, y", "shop.b select id, ?, y"
    two.sql(f"{source} {first} insert into {second}", [1, 10, 7])
    assert rows(two, "select id, x from shop.a where id > 3") == [(12, 20), (13, 30)]
    assert rows(two, "select id, x from shop.b") == [(2, 7), (3, 7)]


def test_assignments_have_their_values_in_whatever_order_the_columns_are(two: Lakehouse) -> None:
    two.sql("update shop.a set y = ?, x = ? + ? where id = ? /* ? */ and '?' <> ?", [1, 2, 3, 2, "!"])
    assert rows(two, "select * from shop.a") == [(1, 10, 100), (2, 5, 1), (3, 30, 300)]


def test_clauses_and_source_of_a_merge_have_their_values(two: Lakehouse) -> None:
    two.sql(
        "merge into shop.a as t using (select explode(array(?, ?)) as id) as s on t.id = s.id"
        " when matched and t.x > ? then update set y = ?, x = ? when not matched then insert (id, y) values (s.id, ?)",
        [3, 4, 25, 1, 2, 9],
    )
    assert rows(two, "select * from shop.a") == [(1, 10, 100), (2, 20, 200), (3, 2, 1), (4, None, 9)]


def test_condition_and_query_of_replace_where_have_their_values(two: Lakehouse) -> None:
    two.sql("insert into shop.a replace where x > ? and y < ? select ?, 25, 1", [10, 300, 8])
    assert rows(two, "select * from shop.a") == [(1, 10, 100), (3, 30, 300), (8, 25, 1)]
    with pytest.raises(ConstraintError, match="a row to be written is none for which that is true"):
        two.sql("insert into shop.a replace where x > ? select 9, ?, 1", [10, 10])
    assert rows(two, "select id from shop.a") == [(1,), (3,), (8,)]


def test_moment_may_be_a_value(two: Lakehouse) -> None:
    two.sql("delete from shop.a where id = ?", [1])
    first = two.table("shop.a").history()[-1].instant
    assert rows(two, "select id from shop.a timestamp as of ? where id < ?", [first, 3]) == [(1,), (2,)]


@pytest.mark.parametrize("given", [[], [1], [1, 2, 3]])
def test_another_number_of_values_than_markers_is_refused_before_anything_is_written(two: Lakehouse, given: list[int]) -> None:
    with pytest.raises(SqlError, match=rf"2 parameter markers \(\?\) and {len(given)} value"):
        two.sql("insert into shop.a values (9, ?, ?)", given)
    assert rows(two, "select id from shop.a") == [(1,), (2,), (3,)]


def test_what_is_kept_as_text_takes_no_values(two: Lakehouse) -> None:
    with pytest.raises(UnsupportedSqlError, match="in the place of its parameters"):
        two.sql("create view shop.v as select * from shop.a where id = ?", [1])
    with pytest.raises(UnsupportedSqlError, match="in the place of its parameters"):
        two.sql("create view shop.v as select * from shop.a where id = :id", {"id": 1})  # type: ignore[arg-type]
    assert two.table("shop.a").history()  # it is there, and the view is not
    assert [row[1] for row in two.sql("show views in shop").collect()] == []
