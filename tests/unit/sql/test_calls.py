"""Calls of functions by qualified names, found in text and written anew."""

from __future__ import annotations

import pytest

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.binding.calls import Write, expanded, rewritten


def find(parts: tuple[str, ...]) -> Write | None:
    """Functions of the schema `s`."""
    return (lambda arguments: f"<{parts[-1]}:{'|'.join(arguments)}>") if parts[-2].lower() == "s" else None


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("select s.f(1)", "select <f:1>"),
        ("select s.f()", "select <f:>"),
        ("select `s` . `f` (a, g(b, c), d[e, 1]) + 1", "select <f:a|g(b, c)|d[e, 1]> + 1"),
        ("select s.f(s.g(x), t.h(s.f(y)))", "select <f:<g:x>|t.h(<f:y>)>"),
        ("select t.h(s.f(y), s.f(z))", "select t.h(<f:y>, <f:z>)"),
        ("select spark_catalog.s.f(1)", "select <f:1>"),
        ("select 's.f(1)', s.f('a,)'/* , */) -- s.f(2)", "select 's.f(1)', <f:'a,)'> -- s.f(2)"),
        ("select case when s.f(a) then s.f(b) end", "select case when <f:a> then <f:b> end"),
        ("select s.f(x -> x + 1, (select max(a) from t))", "select <f:x -> x + 1|(select max(a) from t)>"),
    ],
)
def test_calls_are_written_anew_and_all_else_stays(text: str, result: str) -> None:
    assert rewritten(text, find) == result


@pytest.mark.parametrize(
    "text",
    [
        "insert into s.f (a, b) values (1, 2)",
        "insert overwrite s.f (a) select 1",
        "create table if not exists s.f (a int)",
        "create table s.f (a int)",
        "select f(1), t.f(1), s.f, s.f.g from s.f where s.f in (1)",
    ],
)
def test_what_is_no_call_of_a_function_stays(text: str) -> None:
    assert rewritten(text, find) == text


@pytest.mark.parametrize("text", ["select s.f(1,)", "select s.f(,1)", "select s.f(1,,2)", "select s.f((1)"])
def test_arguments_that_cannot_be_told_apart_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=r"s\.f"):
        rewritten(text, find)


def test_parameters_are_replaced_where_they_are_names_of_their_own() -> None:
    body = "power(sum(Value), 2) + `value` + value(1) + t.value + 'value'"
    assert expanded(body, {"value": "(x)"}) == "power(sum((x)), 2) + (x) + value(1) + t.value + 'value'"
