"""What a statement needs of the relations that it reads: never less than it can need."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine.sql.binding.bind import Pin, bind
from lakehouse_engine.sql.binding.needs import Needs, rows_where
from lakehouse_engine.sql.binding.predicate import expression_of

SCHEMA = pa.schema(
    [
        *[("id", pa.int64()), ("day", pa.string()), ("n", pa.int32()), ("d", pa.date32()), ("at", pa.timestamp("us", "UTC"))],
        *[
            ("ms", pa.timestamp("ms", "UTC")),
            ("wall", pa.timestamp("us")),
            ("amount", pa.decimal128(5, 2)),
            ("b", pa.bool_()),
            ("x", pa.float64()),
        ],
    ]
)
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


def rows_of(text: str, name: str = "t") -> str | None:
    rows = needs(text, name).rows
    return None if rows is None else str(rows)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select id from s.t where day = 'a' and id > 1 group by id", "`day` = 'a' and `id` > 1"),
        ("select id from s.t as x where x.day = 'a' order by 1", "`day` = 'a'"),
        ("select id from s.t X where `x`.`DAY` in ('a', 'b')", "`day` in ( 'a' , 'b' )"),
        ("select 1 from s.u join s.t on u.id = t.id where t.day = 'a'", "`day` = 'a'"),
        ("select 1 from s.t left join y on y.id = t.id where t.day = 'a' and day = 'b' limit 3", "`day` = 'a'"),
        ("select 1 from s.t lateral view explode(x) e as day where day = 'a'", None),
        ("select 1 from y where id in (select id from s.t where day = 'a') and n = 2", "`day` = 'a'"),
        ("select 1 from s.t where day = 'a' union all select 2", "`day` = 'a'"),
        ("select 1 from s.t where (day = 'a' or day = 'b') and (n = 1)", "(`day` = 'a' or `day` = 'b') and `n` = 1"),
        ("select 1 from s.t where day between 'a' and 'b' and n = 2", "`day` between 'a' and 'b' and `n` = 2"),
        ("explain select id from s.t where day = 'a'", "`day` = 'a'"),
        ("select * from s.t where false limit 0", "false"),
        ("select id from (select id as n from s.t) where false", "false"),
        ("select id from s.t where false or day = 'a'", "false or `day` = 'a'"),
        ("select id from s.t where day = 'a' union all select n from s.t where day = 'b'", "`day` = 'a' or `day` = 'b'"),
    ],
)
def test_the_condition_of_a_relation_is_that_of_its_own_query(text: str, expected: str | None) -> None:
    assert rows_of(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "select id from s.t",
        "select id from s.t union all select id from y where day = 'a'",
        "select id from (s.t join y using (id)) where t.day = 'a'",
        "select 1 from y left anti join s.t on y.id = t.id where t.day = 'a'",
        "select id from s.t tablesample (10 rows) where day = 'a'",
        "select id from s.t as x(day, id) where day = 'a'",
        "select id from s.t group by id having day = 'a'",
        "select id from s.t where day = 'a' union all select id from s.t",
        "from s.t |> aggregate max(day) as day |> where day = 'a'",
        "select id from s.t limit 3 |> where day = 'a'",
        "select id from s.t where day = 'a' or upper(day) = 'B'",
        "select id from s.t where (select true from y where n = 1 and day = 'a')",
        "select 1 from s.u left join s.t on u.id = t.id where t.day is null",
        "select 1 from s.u left join s.t on u.id = t.id where t.day = 'a' or t.day is null",
    ],
)
def test_other_conditions_are_not_its_own(text: str) -> None:
    assert rows_of(text) is None


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
    found = expression_of(rows_where(text, "t"), SCHEMA, FIELDS)
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
        "at = timestamp '2026-01-01'  'x'",
        "at in (timestamp '2026-01-01 00:00:00', other)",
        "at > 1767225600",
        "u.day = 'a'",
        "s.t.day = 'a'",
        "upper(day) = 'A'",
        "day in (select x from y)",
        "n = 99999999999",
    ],
)
def test_what_is_not_plain_rules_out_nothing(text: str) -> None:
    assert expression_of(rows_where(text, "t"), SCHEMA, FIELDS, moment_of) is None


def moment_of(text: str) -> int:
    """As a session in UTC takes a TIMESTAMP literal."""
    return int(datetime.fromisoformat(f"{text[1:-1]}+00:00").timestamp()) * 1_000_000


def moment(text: str, kind: str = "at") -> pa.Scalar:
    return pa.scalar(datetime.fromisoformat(f"{text}+00:00")).cast(SCHEMA.field(kind).type)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at >= timestamp '2026-01-02 00:00:00'", pc.field("at") >= moment("2026-01-02 00:00:00")),
        ("at <> timestamp '2026-01-02 00:00:00'", pc.field("at") != moment("2026-01-02 00:00:00")),
        ("at in (timestamp '2026-01-02 00:00:00')", pc.field("at").isin(pa.array([moment("2026-01-02 00:00:00")]))),
        ("ms < timestamp '2026-01-02 00:00:00'", pc.field("ms") < moment("2026-01-02 00:00:00", "ms")),
        ("at is not null", pc.field("at").is_valid()),
        ("wall is null", pc.field("wall").is_null()),
        ("d in (date '2026-01-02')", pc.field("d").isin(pa.array(["2026-01-02"]).cast(pa.date32()))),
        ("amount > 1.5", pc.field("amount") > pa.scalar(Decimal("1.50"), pa.decimal128(5, 2))),
        ("amount = -.25", pc.field("amount") == pa.scalar(Decimal("-0.25"), pa.decimal128(5, 2))),
        ("n <> -3", pc.field("n") != pa.scalar(-3, pa.int32())),
        ("b = true", pc.field("b") == pa.scalar(True)),
    ],
)
def test_a_literal_of_the_columns_own_type_is_compared(text: str, expected: pc.Expression) -> None:
    found = expression_of(rows_where(text, "t"), SCHEMA, moment=moment_of)
    assert found is not None
    assert found.equals(expected)


@pytest.mark.parametrize(
    "text",
    [
        "at < '2026-01-02'",
        "at < date '2026-01-02'",
        "at in (timestamp '2026-01-02 00:00:00', '2026-01-03')",
        "at between '2026-01-02' and timestamp '2026-01-03 00:00:00'",
        "wall < timestamp '2026-01-02 00:00:00'",
        "d < '2026-01-02'",
        "d in ('2026-01-02')",
        "d < timestamp '2026-01-02 00:00:00'",
        "d = date '2026-02-30'",
        "d = date '2026-1-2'",
        "d = cast('2026-01-02' as date)",
        "d = current_date",
        "amount > 1",
        "amount > 1.555",
        "amount > 1e1",
        "amount > '1.5'",
        "n > 1.0",
        "n > 1L",
        "n > - '1'",
        "day > date '2026-01-02'",
        "b = 'true'",
        "x = 1.5",
    ],
)
def test_what_needs_a_coercion_rules_out_nothing(text: str) -> None:
    assert expression_of(rows_where(text, "t"), SCHEMA, moment=moment_of) is None


def test_a_moment_that_is_not_known_or_that_the_columns_unit_does_not_hold_rules_out_nothing() -> None:
    at = rows_where("at < timestamp '2026-01-02 00:00:00'", "t")
    assert expression_of(at, SCHEMA) is None
    assert expression_of(at, SCHEMA, moment=lambda _: None) is None
    for unit in ("at", "ms"):
        rows = rows_where(f"{unit} < timestamp '2026-01-02 00:00:00'", "t")
        assert (expression_of(rows, SCHEMA, moment=lambda _: 1_767_225_600_000_001) is None) == (unit == "ms")


def test_no_row_is_needed_where_none_is_asked_for() -> None:
    found = expression_of(rows_where("false", "t"), SCHEMA)
    assert found is not None
    rows = pa.table({"id": [1]})
    assert rows.filter(found).num_rows == 0
    for text in ("day = 'a' and false", "false or n = 3", "(false)"):
        assert expression_of(rows_where(text, "t"), SCHEMA) is not None
    assert expression_of(rows_where("false or f(n)", "t"), SCHEMA) is None
    assert expression_of(rows_where("false = true", "t"), SCHEMA) is None
    assert expression_of(rows_where("not false", "t"), SCHEMA) is None


def test_rows_that_a_join_must_not_find_are_needed() -> None:
    assert rows_where("t.day is null", "t", qualified=True) is None
    assert expression_of(rows_where("day is null", "t"), SCHEMA) is not None
    assert str(rows_where("t.day is not null and t.n <> 3", "t", qualified=True)) == "`day` is not null and `n` <> 3"


def test_between_is_two_comparisons_of_the_columns_type() -> None:
    found = expression_of(rows_where("d between date '2026-01-02' and date '2026-01-05' and n between 1 and 3", "t"), SCHEMA, ["d"])
    first, last = (pa.scalar(f"2026-01-0{day}").cast(pa.date32()) for day in (2, 5))
    assert found is not None
    assert found.equals((pc.field("d") >= first) & (pc.field("d") <= last))
    for text in ("day not between 'a' and 'b'", "day between 'a' and upper('b')", "n between 1 and day", "day between 'a' and 'b' = true"):
        assert expression_of(rows_where(text, "t"), SCHEMA) is None


def test_alternatives_count_where_each_is_understood() -> None:
    found = expression_of(rows_where("day = 'a' or (day = 'b' and f(id)) or n in (1)", "t"), SCHEMA, ["day", "n"])
    assert found is not None
    assert found.equals(((pc.field("day") == "a") | (pc.field("day") == "b")) | pc.field("n").isin(pa.array([1], pa.int32())))
    assert expression_of(rows_where("day = 'a' or n in (1)", "t"), SCHEMA, ["day"]) is None
