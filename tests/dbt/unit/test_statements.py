"""Splitting texts into statements."""

from __future__ import annotations

import pytest

from dbt.adapters.lakehouse.statements import split_statements, strip_comments


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("select 1", ["select 1"]),
        ("select 1;", ["select 1"]),
        ("set a=1; select ';' as x", ["set a=1", "select ';' as x"]),
        ("select '\\';' as x; -- done;\n", ["select '\\';' as x"]),
        ('/* {"a;": 1} */ select `a;b`, "x;"', ['/* {"a;": 1} */ select `a;b`, "x;"']),
        ("-- only a comment;", []),
        ("begin select 1; select 2; end;", ["begin select 1; select 2; end"]),
        ("", []),
    ],
)
def test_split(text: str, statements: list[str]) -> None:
    assert split_statements(text) == statements


def test_leading_comments_are_stripped() -> None:
    assert strip_comments("/* a */ -- b\n  select 1") == "select 1"
