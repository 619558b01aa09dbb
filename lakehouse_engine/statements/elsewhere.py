"""Statements that name relations of attached catalogs: questions are answered there, changes are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lakehouse_engine.sql.binding.scan import scan
from lakehouse_engine.sql.grammar import statements as s
from lakehouse_engine.sql.grammar.references import Parts, ReferenceKind, plain
from lakehouse_engine.statements.context import Execution
from lakehouse_engine.storage.read_only import refusal

_QUESTIONS = (s.Describe, s.DescribeHistory, s.ShowColumns, s.ShowProperties, s.ShowPartitions, s.ShowCreateTable, s.ShowIndexes)


def sent_there(run: Execution, statement: Any) -> tuple[Execution, Any]:
    """Where a statement runs, and its form there.

    Raises `ReadOnlyError` for a statement that would change or make a relation of an attached catalog, before anything is done.
    """
    if not run.attached:
        return run, statement
    name = getattr(statement, "name", None)
    found = _at(run, name) if isinstance(name, tuple) else None
    if found is not None and isinstance(statement, _QUESTIONS):
        there, parts = found
        return there, replace(statement, name=parts)
    targets = (name, getattr(statement, "new_name", None), *(one.name for one in getattr(statement, "inserts", ())))
    text = getattr(statement, "text", None)
    if isinstance(text, str):
        targets += tuple(plain(one.parts) for one in scan(text).references if one.kind is ReferenceKind.TARGET)
    for parts in targets:
        if isinstance(parts, tuple) and (refused := _at(run, parts)) is not None:
            raise refusal(parts[0], refused[0].catalog.storage.root)
    return run, statement


def source_of(run: Execution, parts: Parts) -> tuple[Execution, Parts, str]:
    """Reader of a relation, its name there, and the catalog's name with a dot (empty for the warehouse itself)."""
    found = _at(run, parts)
    return (run, parts, "") if found is None else (*found, f"{parts[0]}.")


def _at(run: Execution, parts: Parts) -> tuple[Execution, Parts] | None:
    found = run.attached.get(parts[0].lower()) if len(parts) == 3 else None
    return None if found is None else (found(), parts[1:])
