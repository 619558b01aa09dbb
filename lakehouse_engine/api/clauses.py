"""Clauses of MERGE as text."""

from __future__ import annotations

from lakehouse_engine.errors import SqlError
from lakehouse_engine.sql.grammar.parsers.dml import parse_merge
from lakehouse_engine.sql.grammar.reader import StatementReader
from lakehouse_engine.sql.grammar.statements import Merge

__all__ = ["assignments_of"]


def assignments_of(action: str, target: str) -> tuple[tuple[str, str], ...]:
    """Columns and values of `update set ...`, parsed like in MERGE for a target called `target`, whose name is removed.

    Raises `SqlError` for any other text.
    """
    text = f"merge into {target} using __source on true when not matched by source then {action}"
    try:
        merge = parse_merge(StatementReader.over(text))
        assert isinstance(merge, Merge)
        [clause] = merge.clauses
    except (SqlError, ValueError) as error:
        raise SqlError(f"'{action}' is no list of assignments: {error}") from error
    if clause.action != "update" or not clause.assignments:
        raise SqlError(f"'{action}' is no list of assignments")
    return tuple(clause.assignments)
