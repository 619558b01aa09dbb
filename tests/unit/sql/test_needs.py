"""What a statement needs of the relations that it reads: never less than it can need."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine.sql.bind import Pin, bind
from lakehouse_engine.sql.needs import Condition, Needs, partition_filter

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("n", pa.int32()), ("d", pa.date32()), ("at", pa.timestamp("us", "UTC"))])
FIELDS = ["day", "n", "d", "at"]


def needs(text: str, name: str = "t") -> Needs:
    """Of `s.<name>`; `s.t` and `s.u` are known."""
    found: dict[str, Needs] = {}

    def view_for(pin: Pin) -> str:
        found[pin.parts[-1]] = pin.needs
        return f"v_{pin.parts[-1]}"

    bind(text, lambda parts: parts in (("s", "t"), ("s", "u")), view_for)
    return found[name]


@pytest.mark.parametrize(
    "text",
    [
        "select Id, `n` from s.t",
        "select t.id * t.n from s.t",
        "select count(*), max(id), sum(n * 2) from s.t",
        "select id from s.t where exists (select 1 from s.u where u.n = t.n)",
        "with x as (select id, n from s.t) select id from x",
        'select id, "n" from s.t',
    ],
)
def test_columns_that_are_named_are_needed(text: str) -> None:
    names = needs(text).names
    assert names is not None
    assert {"id", "n"} <= names
    assert "day" not in names


@pytest.mark.parametrize(
    "text",
    [
        "select * from s.t",
        "select t.* from s.t",
        "select /*+ broadcast(t) */ * from s.t",
        "select distinct * from s.t",
        "select id, * from s.t",
        "select count(distinct *) from s.t",
        "select struct(*) from s.t",
        "select id from s.t natural join s.u",
        "select id from s.t pivot (sum(n) for day in ('a'))",
        "select `(id)?+.+` from s.t",
        "select id from s.t as x(id, b)",
        "select identifier('id') from s.t",
        "select id from f(table(s.t))",
        "from s.t |> where id > 1",
        "table s.t",
    ],
)
def test_what_means_columns_without_naming_them_needs_all(text: str) -> None:
    assert needs(text).names is None


def condition_of(text: str, name: str = "t") -> list[Condition] | None:
    conditions = needs(text, name).conditions
    return None if conditions is None else list(conditions)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select id from s.t where day = 'a' and id > 1 group by id", Condition("day = 'a' and id > 1", "t", False)),
        ("select id from s.t as x where x.day = 'a' order by 1", Condition("x.day = 'a'", "x", False)),
        ("select 1 from s.u join s.t on u.id = t.id where t.day = 'a'", Condition("t.day = 'a'", "t", True)),
        ("select 1 from s.t left join y on y.id = t.id where t.day = 'a' limit 3", Condition("t.day = 'a'", "t", True)),
        ("select 1 from s.t lateral view explode(x) e as day where day = 'a'", Condition("day = 'a'", "t", True)),
        ("select 1 from y where id in (select id from s.t where day = 'a') and n = 2", Condition("day = 'a'", "t", False)),
        ("select 1 from s.t where day = 'a' union all select 2", Condition("day = 'a'", "t", False)),
    ],
)
def test_the_condition_of_a_relation_is_that_of_its_own_query(text: str, expected: Condition) -> None:
    assert condition_of(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "select id from s.t",
        "select id from s.t union all select id from y where day = 'a'",
        "select id from (select id, day from s.t) where day = 'a'",
        "select id from (s.t join y using (id)) where t.day = 'a'",
        "select 1 from y left anti join s.t on y.id = t.id where t.day = 'a'",
        "select id from s.t tablesample (10 rows) where day = 'a'",
        "select id from s.t as x(day, id) where day = 'a'",
        "select id from s.t group by id having day = 'a'",
        "select id from s.t where day = 'a' union all select id from s.t",
        "from s.t |> aggregate max(day) as day |> where day = 'a'",
        "select id from s.t limit 3 |> where day = 'a'",
    ],
)
def test_other_conditions_are_not_its_own(text: str) -> None:
    assert condition_of(text) is None


def test_what_two_readings_need_is_needed() -> None:
    found = condition_of("select id from s.t where day = 'a' union all select n from s.t where day = 'b'")
    assert found is not None
    assert [one.text for one in found] == ["day = 'a'", "day = 'b'"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("day = 'a'", pc.field("day") == "a"),
        ("t.day = 'a' and id = 7", pc.field("day") == "a"),
        ("DAY in ('a', 'b') and f(id) or_else", pc.field("day").isin(["a", "b"])),
        ("n >= 3 and not day = 'a'", pc.field("n") >= pa.scalar(3, pa.int32())),
        ("d < date '2026-01-02'", pc.field("d") < pa.scalar("2026-01-02").cast(pa.date32())),
        ("(id = 1 or id = 2) and day is null", pc.field("day").is_null()),
    ],
)
def test_a_condition_on_partition_columns_is_an_expression(text: str, expected: pc.Expression) -> None:
    found = partition_filter([Condition(text, "t", False)], SCHEMA, FIELDS)
    assert found is not None
    assert found.equals(expected)


@pytest.mark.parametrize(
    "text",
    [
        "id = 1",
        "day = 'a' or id = 1",
        "id between 1 and day = 'a'",
        "case when id = 1 and day = 'a' and n = 2 then true end",
        "not day = 'a'",
        "! day = 'a'",
        "day = id",
        "day = 1",
        "n = '1'",
        'day = "a"',
        r"day = 'a\\b'",
        "day = r'a'",
        "day = 'it''s'",
        "day = 'a' 'b'",
        "day = upper('a')",
        "day = 'a' collate unicode_ci",
        "day = 'a' = true",
        "day <=> 'a'",
        "day like 'a'",
        "d = '20260102'",
        "at = timestamp '2026-01-01 00:00:00'",
        "u.day = 'a'",
        "s.t.day = 'a'",
        "upper(day) = 'A'",
        "day in (select x from y)",
        "n = 99999999999",
    ],
)
def test_what_is_not_plain_rules_out_nothing(text: str) -> None:
    assert partition_filter([Condition(text, "t", False)], SCHEMA, FIELDS) is None


def test_one_reading_without_a_plain_condition_needs_all_partitions() -> None:
    plain, other = Condition("day = 'a'", "t", False), Condition("id = 1", "t", False)
    assert partition_filter([plain, other], SCHEMA, FIELDS) is None
    assert partition_filter([Condition("day = 'a'", "t", True)], SCHEMA, FIELDS) is None
    both = partition_filter([plain, Condition("x.day = 'b'", "X", True)], SCHEMA, FIELDS)
    assert both is not None
    assert both.equals((pc.field("day") == "a") | (pc.field("day") == "b"))


def test_rows_that_a_join_must_not_find_are_needed() -> None:
    outer = needs("select 1 from s.u left join s.t on u.id = t.id where t.day is null").conditions
    assert outer == (Condition("t.day is null", "t", True),)
    assert partition_filter(outer, SCHEMA, FIELDS) is None
    assert partition_filter([Condition("day is null", "t", False)], SCHEMA, FIELDS) is not None
    inner = [Condition("t.day is not null and t.n <> 3", "t", True)]
    assert partition_filter(inner, SCHEMA, FIELDS) is not None
