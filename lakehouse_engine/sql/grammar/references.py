"""Result of scanning a statement: relation names with their surroundings, and dotted chains that may be columns."""

from __future__ import annotations

from dataclasses import dataclass, field

from lakehouse_engine.compat import StrEnum

Parts = tuple[str, ...]
"""A dotted name as written, without backquotes, with its case."""

CATALOG_PREFIX = "spark_catalog"


def plain(parts: Parts) -> Parts:
    """`parts` without a leading `spark_catalog`: the warehouse's names are in the session's own catalog."""
    return parts[1:] if len(parts) > 1 and parts[0].lower() == CATALOG_PREFIX else parts


def folded(parts: Parts) -> Parts:
    """`parts` for comparison: without the catalog, in lower case."""
    return tuple(part.lower() for part in plain(parts))


class ReferenceKind(StrEnum):
    """How a statement uses a relation that it names."""

    READ = "read"
    TARGET = "target"
    FUNCTION = "function"


@dataclass(frozen=True, slots=True)
class Travel:
    """A time-travel clause. `start`:`end` is the clause, `expression` its text after `AS OF`.

    `value` is the literal as text; None for any other expression.
    """

    kind: str
    start: int
    end: int
    expression: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call, as written. `value` is a literal's value; None for an expression, which Spark computes.

    `TIMESTAMP '...'` is an expression, because it depends on the session's time zone. `name`: of an argument given by name (`format =>
    'csv'`).
    """

    text: str
    value: str | None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """A name in relation position, `start`:`end` in the text (for FUNCTION the whole call).

    `alias` is None if there is none; then `alias_at` is the offset where one could stand (after TABLESAMPLE), or None if the grammar allows
    none (`TABLE a.b`). `scope` numbers the query in which the name is visible. `obstacle` is a surrounding construct that cannot be bound.
    `arguments` belong to a FUNCTION call, whose name is in `parts`.
    """

    kind: ReferenceKind
    parts: Parts
    start: int
    end: int
    scope: int
    alias: str | None = None
    alias_at: int | None = None
    travel: Travel | None = None
    obstacle: str | None = None
    arguments: tuple[Argument, ...] | None = None


@dataclass(frozen=True, slots=True)
class Chain:
    """A dotted chain outside relation position: a column, a struct path, `a.b.*`, or (in a hint) a relation's name.

    `ends` are the end offsets of the parts, to replace a prefix. `starred`: `.*` follows.
    """

    parts: Parts
    start: int
    ends: tuple[int, ...]
    scope: int
    starred: bool = False
    in_hint: bool = False


@dataclass(frozen=True, slots=True)
class Scan:
    """References and chains in text order. `parents[scope]` is the enclosing query's scope, None at the top (and for a CTE body)."""

    references: tuple[Reference, ...]
    chains: tuple[Chain, ...]
    parents: tuple[int | None, ...]
    obstacles: tuple[str, ...] = field(default=())

    def visible(self, scope: int) -> list[int]:
        """`scope` and the scopes around it, innermost first."""
        found: list[int] = []
        current: int | None = scope
        while current is not None:
            found.append(current)
            current = self.parents[current]
        return found
