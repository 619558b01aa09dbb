"""What the queries around a relation say of its rows: only what is right whatever the data is."""

from __future__ import annotations

import pytest

from lakehouse_engine.sql.binding.bind import Pin
from lakehouse_engine.sql.binding.binder import Names, ViewText, bind_statement

VIEWS = {
    ("s", "v"): ViewText("select id, day as d, upper(n) as n from s.t"),
    ("s", "renamed"): ViewText("select id, day from s.t where id > 0", ("day", "d")),
    ("s", "star"): ViewText("select * from s.t"),
    ("s", "twice"): ViewText("select d, id from s.v where id = 1"),
    ("s", "grouped"): ViewText("select day, count(*) as n from s.t group by 1"),
    ("s", "newest"): ViewText("select * from (select *, row_number() over (partition by id order by n) as r from s.t) where r = 1"),
    ("s", "some"): ViewText("select * from s.t limit 10"),
    ("s", "both"): ViewText("select day from s.t union all select day from s.u"),
}


def rows_of(text: str, name: str = "t") -> list[str | None]:
    """What the statement needs of `s.<name>`, for each time it is pinned."""
    found: list[str | None] = []

    def pin_table(pin: Pin) -> str:
        if pin.parts[-1] == name:
            found.append(None if pin.needs.rows is None else str(pin.needs.rows))
        return f"pinned_{pin.parts[-1]}"

    known = {("s", "t"), ("s", "u"), *VIEWS}
    bind_statement(text, Names(lambda parts: parts in known, VIEWS.get, pin_table, lambda sql, columns: "queried"))
    return found


@pytest.mark.parametrize(
    "text",
    [
        "select t.id from s.u join s.t exact nearest 1 by distance abs(u.id - t.id) where t.day = 'a'",
        "select t.id from s.u left join s.t approx nearest 2 by similarity t.n where t.day = 'a'",
        "select id from (select t.id, t.day from s.u join s.t exact nearest 1 by distance t.n) where day = 'a'",
        "select t.id from s.u asof join s.t match_condition (u.id >= t.id) where t.day = 'a'",
        "select t.id from s.u left asof join s.t match_condition (u.id >= t.id) where t.day = 'a'",
        "select id from (select t.id, t.day from s.u asof join s.t match_condition (u.id >= t.id)) where day = 'a'",
    ],
)
def test_rows_that_are_joined_by_which_others_there_are_are_all_needed(text: str) -> None:
    assert rows_of(text) == [None]


@pytest.mark.parametrize(
    "text",
    [
        "select id from (select id, day from s.t) where day = 'a'",
        "select id from (select id, t.day from s.t) x where x.day = 'a' and f(x.id) = 1",
        "select id from (select * from s.t) x join s.u on u.id = x.id where x.day = 'a'",
        "select id from (select id, n as day, day as n from s.t) where n = 'a'",
        "select id from (select id, s.day d from s.t s join s.u on u.id = s.id) where d = 'a'",
        "select id from (select u.*, t.day as d from s.u left join s.t on u.id = t.id) where d = 'a'",
        "select id from (select id, day from (select * from s.t order by id) y) x where day = 'a'",
        "select n from (select day, count(*) as n from s.t group by day having count(*) > 1) where day = 'a'",
        "select n from (select distinct day, n from s.t) where day = 'a'",
        "select /*+ coalesce(1) */ n from (select /*+ coalesce(1) */ day, n from s.t) where day = 'a'",
        "with x as (select id, day from s.t) select id from x where day = 'a'",
        "with x as (select id, day from s.t), y as (select id, day as d from x) select id from y z where z.d = 'a'",
        "with x as (select * from s.t) select 1 from s.u where exists (select 1 from x where x.id = u.id and x.day = 'a')",
        "with x as (select * from s.t) select x.id from x, s.u where x.day = 'a' and u.id = x.id",
        "select id from s.star where day = 'a'",
        "select id from s.v where D = 'a'",
        "select `id` from s.`v` as `w x` where `w x`.`D` = 'a'",
        "select d from s.grouped join s.u on u.id = grouped.n where grouped.day = 'a'",
        "select * from (select * from s.star) where day = 'a'",
        "explain select id from s.v where d = 'a'",
        "create table w.copy using parquet as select id from (select * from s.t) where day = 'a'",
    ],
)
def test_conditions_on_columns_that_are_handed_on_count_below(text: str) -> None:
    assert rows_of(text) == ["`day` = 'a'"]


@pytest.mark.parametrize(
    "text",
    [
        # other rows decide
        "select id from (select id, day from s.t limit 5) where day = 'a'",
        "select id from (select id, day from s.t order by id limit 5 offset 2) where day = 'a'",
        "select id from (select id, day, row_number() over (order by id) as r from s.t) where day = 'a'",
        "select id from (select id, day, (select sum(n) over () from s.u limit 1) as r from s.t) where day = 'a'",
        "select id from (select day, max(id) as id from s.t group by day with rollup) where day = 'a'",
        "select id from (select day, max(id) as id from s.t group by cube (day)) where day = 'a'",
        "select id from (select id, day from s.t qualify rank() over (order by id) = 1) where day = 'a'",
        "select id from (select id, day from s.t tablesample (10 percent)) where day = 'a'",
        "select id from (select id, day from s.t) tablesample (5 rows) where day = 'a'",
        "select id from s.newest where day = 'a'",
        "select id from s.some where day = 'a'",
        "select day from s.both where day = 'a'",
        "select day from (select day from s.t union select day from s.u) where day = 'a'",
        "select day from (select day from s.t except select day from s.u) where day = 'a'",
        "select * from (select day, s, n from s.t) pivot (sum(n) for s in ('x')) where day = 'a'",
        # another column
        "select id from (select id, upper(day) as day from s.t) where day = 'a'",
        "select id from (select id, upper(day) day from s.t) where day = 'a'",
        "select id from (select id, 'x' as day, * from s.t) where day = 'a'",
        "select id from (select id, day as d, n as day, n as day from s.t) where day = 'a'",
        "select id from (select id, arr[0].day, day as d from s.t) where day = 'a'",
        "select id from (select id, struct_column.day from s.t) where day = 'a'",
        "select id from (select id, current_date as day from s.t) where current_date = 'a'",
        "select id from (select id, u.day from s.t join s.u on t.id = u.id) where day = 'a'",
        "select id from (select id, day from s.t join s.u using (day)) where day = 'a'",
        "select id from (select * from s.t join s.u on t.id = u.id) where day = 'a'",
        "select id from (select t.*, u.* from s.t join s.u on t.id = u.id) where day = 'a'",
        "select id from (select `(id)?+.+` from s.t) where day = 'a'",
        "select id from (select * except (id) from s.t) where day = 'a'",
        "select id from (select stack(1, id, day) as (id, day) from s.t) where day = 'a'",
        "select id from (select id, day from s.t) as x(day, id) where day = 'a'",
        "select id from s.v where n = 'a'",
        # another relation, or another query
        "select id from (select id, day from s.t) x, s.u where day = 'a'",
        "select id from (select id, day from s.t) x join s.u on u.id = x.id where u.day = 'a'",
        "select 1 from s.u left anti join (select id, day from s.t) x on u.id = x.id where u.day = 'a'",
        "select (select max(day) from s.t) as day from s.u where day = 'a'",
        "select 1 from s.u where id in (select id from s.t) and day = 'a'",
        "select 1 from s.u where exists (select 1 from s.t where t.id = u.id) and day = 'a'",
        "select 1 from s.u join y on u.a is distinct from (select day from s.t) where day = 'a'",
        "select 1 from s.u, lateral (select * from s.t where t.id = u.id) x where x.day = 'a'",
        "select id from (select id, day from s.t) where day = 'a' or id = f(1)",
        "select id from (select id, day from s.t) where not (day = 'a')",
        "select id from (select u.id, t.day from s.u left join s.t on u.id = t.id) where day is null",
        "select id from s.u left join (select id, day from s.t) x on x.id = u.id where x.day is null",
        # a condition that goes on behind a word that could end it
        "select id from s.t where day = 'a' and n is distinct from 5 or id = 1",
        "select id from s.t where day = 'a' and n is not distinct from 5 or id = 1",
        "select id from s.t where day = 'a' and offset > 5 or id = 1",
        "select id from s.t x join s.u on x.id = u.id where x.day = 'a' and x.limit > 5 and u.id = 1 or x.id = 1",
        "select id from (select * from s.t) x where x.day = 'a' and x.group = 5 or x.id = 1",
        "with x as (select * from s.t) select id from x where day = 'a' and n is distinct from 5 or id = 1",
        # a name of the star's where names differ by case
        "select id from (select *, s as DAY from s.t) where day = 'a'",
        # readings that are not all plain
        "with x as (select id, day from s.t) select id from x where day = 'a' union all select id from x",
        "with x as (select id, day from s.t) select id from x where day = 'a' and id in (select id from X)",
        "with x as (select id, day from s.t) select id from x where day = 'a' and id in (table x)",
        "with x as (select id, day from s.t) select id from x join \"X\" as y where x.day = 'a'",
        "with recursive x as (select id, day from s.t union all select id, day from x) select id from x where day = 'a'",
        "with x(day, id) as (select id, day from s.t) select id from x where day = 'a'",
        "with x as (select id, day from s.t limit 3) select id from x where day = 'a'",
        "with x as (select id, day from s.t) select id from x as y(day, id) where day = 'a'",
        "from (select id, day from s.t) |> where day = 'a'",
    ],
)
def test_what_may_be_otherwise_leaves_every_row(text: str) -> None:
    assert set(rows_of(text)) == {None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("with x as (select id, day from s.t) select 1 from x a join x b on a.id = b.id where a.day = 'a' and b.day = 'b'",
         ["`day` = 'a' or `day` = 'b'"]),
        ("select id from (select id, day from s.t where n > 1) where day = 'a'", ["`n` > 1 and `day` = 'a'"]),
        ("select id from s.renamed where d = 'a' and day = 5", ["`id` > 0 and `day` = 'a' and `id` = 5"]),
        ("select d from s.twice where d = 'a'", ["`id` = 1 and `day` = 'a'"]),
        ("select 1 from s.star a join s.star b on a.id = b.id where a.day = 'a' and b.day = 'b'", ["`day` = 'a' or `day` = 'b'"]),
        ("select 1 from s.t join s.star on t.id = star.id where t.day = 'a' and star.day = 'b'", ["`day` = 'a'", "`day` = 'b'"]),
        ("select id from (select id, day from s.t) where day is null", ["`day` is null"]),
        ("select max(id) from s.t where day = 'a' group by n, f(n = 1 or n = 2) order by n = 1 or n = 2", ["`day` = 'a'"]),
        ("select id from s.t where day = 'a' and n is distinct from 5 and id = 1", ["`day` = 'a'"]),
        ("select id from s.t where day = 'a' union all select id from s.u where id = 1 or id = 2", ["`day` = 'a'"]),
        ("select id from (select id, day from s.t version as of '-1') where day = 'a'", ["`day` = 'a'"]),
        ("select id from (select * from hudi_table_changes('s.t', 'latest_state', 'earliest') c) where day = 'a'", ["`day` = 'a'"]),
        ("select id from (select id, day from s.t) x where day = 'a' and exists (select 1 from s.u where u.day = 'b')", ["`day` = 'a'"]),
    ],
)  # fmt: skip
def test_each_reading_has_its_own_conditions(text: str, expected: list[str]) -> None:
    assert sorted(map(str, rows_of(text))) == sorted(expected)
