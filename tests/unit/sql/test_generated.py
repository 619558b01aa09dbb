"""GENERATED in the text of statements, and as properties of a table."""

from __future__ import annotations

import pytest

from lakehouse_engine.errors import PropertiesError, UnsupportedSqlError
from lakehouse_engine.model.constraints import GENERATED_KEY, Constraints, Generated
from lakehouse_engine.sql.grammar.defaults import defaulted
from lakehouse_engine.sql.grammar.generated import names_of
from lakehouse_engine.sql.grammar.statements import CreateTable
from lakehouse_engine.sql.grammar.types import constraints_of
from lakehouse_engine.sql.router import route


def columns(text: str) -> CreateTable:
    statement = route(f"create table s.t ({text})", lambda _: True)
    assert isinstance(statement, CreateTable)
    return statement


@pytest.mark.parametrize(
    ("clause", "expression"),
    [
        ("generated always as (a + 1)", "a + 1"),
        ("GENERATED ALWAYS AS ( cast(ts as date) -- of ts\n)", "cast(ts as date)"),
        ("not null generated always as ((a)) comment 'c'", "(a)"),
        ("comment 'c' generated always as (concat(a, ')', `b)`)) not null", "concat(a, ')', `b)`)"),
        ("generated always as (case when a then 'x' end)", "case when a then 'x' end"),
    ],
)
def test_the_expression_is_kept_as_written_beside_other_clauses(clause: str, expression: str) -> None:
    first, second, third = columns(f"a int, g string {clause}, c int default 1").columns
    assert (first.generated, second.generated, third.generated) == (None, expression, None)
    assert (second.type, third.default) == ("string", "1")
    assert second.nullable is ("not null" not in clause)
    assert second.comment == ("c" if "comment" in clause else None)


def test_a_partition_column_with_its_type_may_be_generated() -> None:
    statement = route("create table s.t (ts timestamp) partitioned by (day date generated always as (date(ts)))", lambda _: True)
    assert isinstance(statement, CreateTable)
    assert constraints_of(statement.columns).generated == (Generated("day", "date(ts)"),)


@pytest.mark.parametrize("clause", ["default 1 generated always as (a)", "generated always as (a) default 1"])
def test_a_column_is_not_generated_and_defaulted(clause: str) -> None:
    with pytest.raises(UnsupportedSqlError, match="g is GENERATED and has a DEFAULT") as raised:
        columns(f"a int, g int {clause}")
    assert raised.value.context["column"] == "g"


def test_names_are_those_behind_no_dot_and_calls_are_told_apart() -> None:
    assert names_of("Cast(a.b AS date) + `C d`(x) || 'e' -- f\n + A") == [
        ("cast", True), ("a", False), ("as", False), ("date", False), ("c d", True), ("x", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "everywhere", "somewhere"),
    [
        ("values (1, default), (default, DEFAULT)", {1}, {0}),
        ("values 1, default", set(), {0}),
        ("select 1, default, default as x, default + 1 from t", {1, 2}, set()),
        ("select default union all select 1", set(), set()),
        ("with q as (select 1) select * from q", set(), set()),
    ],
)
def test_the_places_of_default_are_found(query: str, everywhere: set[int], somewhere: set[int]) -> None:
    assert defaulted(query) == (everywhere, somewhere)


def test_properties_keep_what_columns_are_computed_of() -> None:
    kept = Constraints(("a",), (("b", 3),), (("c", "1"),), (Generated("d", "a || '\"ö\\n'", ("a", "b c"), "UTC"), Generated("e", "1")))
    assert Constraints.of({key: value for key, value in kept.properties().items() if value is not None}) == kept
    assert kept.without("D").generated == (Generated("e", "1"),)
    assert kept.generated_among(["E", "x"]) == (Generated("e", "1"),)
    assert kept.with_generated("f", kept.generated_as("d")).generated_as("F") == Generated("f", "a || '\"ö\\n'", ("a", "b c"), "UTC")
    assert Constraints().properties()[GENERATED_KEY] is None


NOT_GENERATED = ["x", "{}", "[1]", '[{"column": "a"}]', '[{"column": "a", "expression": 1}]', '[{"column": "a", "expression": "", "x": 1}]']


@pytest.mark.parametrize("text", NOT_GENERATED)
def test_a_property_that_says_something_else_is_refused(text: str) -> None:
    with pytest.raises(PropertiesError, match="not a JSON list of generated columns"):
        Constraints.of({GENERATED_KEY: text})
