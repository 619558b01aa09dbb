"""IDENTIFIER with a literal is the name that it spells, and nothing else changes."""

from __future__ import annotations

import pytest

from lakehouse_engine.errors import SqlError
from lakehouse_engine.sql.grammar.identifiers import with_names

WRITTEN = {
    "select * from identifier('a.b')": "select * from `a`.`b`",
    "select IDENTIFIER ( 'a b' ) from x": "select `a b` from x",
    "select * from identifier('a' '.b') t": "select * from `a`.`b` t",
    "select * from identifier(\"`x.y`.b\")": "select * from `x.y`.`b`",
    "select identifier('upper')('x')": "select `upper`('x')",
    "insert into identifier('a.b') (identifier('id')) values (1)": "insert into `a`.`b` (`id`) values (1)",
}
KEPT = [
    "select * from identifier(:name)",
    "select * from identifier('a.' || 'b')",
    "select identifier, t.identifier('x') from t",
    "select 'identifier(''a'')' -- identifier('b')",
    "set x = identifier('a')",
    "select * from identifier()",
    "select * from identifier('a'",
]


@pytest.mark.parametrize("text", WRITTEN)
def test_literals_are_names(text: str) -> None:
    assert with_names(text) == WRITTEN[text]


@pytest.mark.parametrize("text", KEPT)
def test_everything_else_stays(text: str) -> None:
    assert with_names(text) == text


def test_a_name_cannot_bring_more_than_a_name() -> None:
    assert with_names("drop table identifier('a.b; drop table c')") == "drop table `a`.`b; drop table c`"
    with pytest.raises(SqlError, match="no relation name"):
        with_names("select * from identifier('a..b')")
