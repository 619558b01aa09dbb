"""What operations of a catalog mean: tables and views by name, and the rows of tables.

A schema that is dropped is dropped name by name, as nobody promises that all of it goes at one moment.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.linear import NEVER, Op

VIEW = "view"
Relations = frozenset[tuple[str, Any]]
"""(name, rows) of tables, with the rows as (key, value) pairs, and (name, VIEW)."""

NOT_FOUND, TAKEN, NO_VIEW = "TableNotFoundError", "TableExistsError", "RelationNotFoundError"


def spread(op: Op, names: tuple[str, ...]) -> list[Op]:
    """The parts of an operation that take effect each for itself: what gets a name again while a schema is dropped is dropped again."""
    if op.what != "drop_schema":
        return [op]
    return [replace(op, what="drop_any", given=(name,), repeats=True) for name in names]


def step(state: Relations, op: Op) -> Relations | None:
    """See `linear.Step`. An operation without an answer does what it can."""
    known = dict(state)
    answers = _do(known, op.what, *op.given)
    if op.end < NEVER and op.answer not in answers:
        return None
    return frozenset(known.items())


def _do(known: dict[str, Any], what: str, name: str, *more: Any) -> tuple[Any, ...]:
    """Change `known`; what may be told: errors, None, or the rows that are read."""
    there = known.get(name)
    is_table = there not in (None, VIEW)
    if what == "drop_any":
        known.pop(name, None)
        return (None,)
    if what in ("create", "fill", "view"):
        if there is not None:
            return (TAKEN,)
        known[name] = VIEW if what == "view" else frozenset(more[0] if more else ())
        return (None,)
    if what == "replace":
        known[name] = frozenset(more[0])
        return (None,)
    if what == "drop_view":
        if there != VIEW:
            return (NO_VIEW,)
        del known[name]
        return (None,)
    if what == "rename" and more[0] in known:
        return (TAKEN,) if is_table else (TAKEN, NOT_FOUND)
    if not is_table:
        return (NOT_FOUND,)
    return (_changed(known, what, name, *more),)


def _changed(known: dict[str, Any], what: str, name: str, *more: Any) -> Any:
    if what == "drop":
        del known[name]
    elif what == "rename":
        known[more[0]] = known.pop(name)
    elif what == "upsert":
        known[name] = frozenset({**dict(known[name]), **dict(more[0])}.items())
    elif what == "read":
        return known[name]
    return None
