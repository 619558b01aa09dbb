"""One SELECT, to move a condition on its result down to its input.

That is possible for columns that are passed on unchanged, if the excluded rows do not affect others: not below a window, limit, sample or
set operation. Below GROUP BY it works, because Spark allows only grouped columns to be passed on.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse_engine.sql.grammar.brackets import depths, parts
from lakehouse_engine.sql.grammar.lexer import Token, TokenKind, name_value, words

_OTHERWISE = words(
    """
    UNION EXCEPT INTERSECT MINUS SETMINUS LIMIT OFFSET FETCH QUALIFY PIVOT UNPIVOT TABLESAMPLE LATERAL WATERMARK CLUSTER DISTRIBUTE SORT
    WINDOW ROLLUP CUBE GROUPING TRANSFORM MAP REDUCE INSERT VALUES RECURSIVE MATCH_RECOGNIZE ASOF NEAREST |> ${ ;
    """
)
"""Constructs beyond selecting, joining and grouping rows."""

_NO_COLUMNS = words(
    "NULL TRUE FALSE DEFAULT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURRENT_CATALOG CURRENT_SCHEMA CURRENT_DATABASE"
    " CURRENT_TIMEZONE LOCALTIME LOCALTIMESTAMP SESSION_USER USER ALL DISTINCT"
)
PATTERN = re.compile(r"[()\[\]{}*+?|^$\\.]")
"""Characters that make a quoted name a pattern (`spark.sql.parser.quotedRegexColumnNames`)."""


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a select list: `column` of `table` (None: not stated), passed on as `output` (lower case).

    `column` is None for computed items and "*" for all columns; `output` is None for a name that cannot be written, and for a star.
    """

    output: str | None
    table: str | None
    column: str | None


@dataclass(frozen=True, slots=True)
class SelectBlock:
    """`reads_from` is the position of FROM among the statement's tokens."""

    items: tuple[Item, ...]
    reads_from: int

    @classmethod
    def of(cls, tokens: Sequence[Token], begin: int, end: int) -> SelectBlock | None:
        """Read the query from token `begin` to before `end`; None unless it is plainly one SELECT."""
        top = _top(tokens, begin, end)
        if not top or tokens[begin].keyword not in ("SELECT", "WITH") or any(tokens[at].keyword in _OTHERWISE for at in top):
            return None
        selects = [at for at in top if tokens[at].keyword == "SELECT"]
        froms = [at for at in top if tokens[at].keyword == "FROM" and tokens[at - 1].keyword != "DISTINCT"]
        if len(selects) != 1 or len(froms) != 1 or froms[0] < selects[0]:
            return None
        chosen = range(selects[0] + 1, froms[0])
        if any(tokens[at].keyword == "OVER" for at in chosen):
            return None
        items = _items([tokens[at] for at in chosen])
        return None if items is None else cls(items, froms[0])

    def column_of(self, output: str, source: str, *, alone: bool, names: Sequence[str] = ()) -> str | None:
        """Column (lower case) of the relation `source` that the result has as `output`; None if there is none, or it may be another's.

        `alone`: there is no other source. `names` are the result's column names, if they are renamed.
        """
        items = self.items
        if names:
            if len(names) != len(items) or any(item.column == "*" for item in items):
                return None
            items = tuple(Item(name.lower(), item.table, item.column) for item, name in zip(items, names, strict=True))
        found = [item for item in items if item.output == output]
        stars = [item for item in items if item.column == "*"]
        if found and found[0].column != output and any(star.table in (None, source.lower()) for star in stars):
            return None  # with `spark.sql.caseSensitive` the name may be one of the star's
        if not found:
            return output if len(stars) == 1 and _is_of(stars[0], source, alone) else None
        return found[0].column if len(found) == 1 and _is_of(found[0], source, alone) else None


def _is_of(item: Item, source: str, alone: bool) -> bool:
    return alone if item.table is None else item.table == source.lower()


def _top(tokens: Sequence[Token], begin: int, end: int) -> list[int]:
    return [at for at, depth in enumerate(depths(tokens[begin:end]), begin) if depth == 0]


def _items(tokens: Sequence[Token]) -> tuple[Item, ...] | None:
    tokens = _without_hints(tokens)
    if tokens and tokens[0].keyword in ("DISTINCT", "ALL"):
        tokens = tokens[1:]
    items = [_item(part) for part in parts(tokens, ",")]
    known = [item for item in items if item is not None]
    return tuple(known) if len(known) == len(items) else None


def _without_hints(tokens: Sequence[Token]) -> list[Token]:
    found, inside = [], False
    for token in tokens:
        inside = inside or token.keyword == "/*+"
        if not inside:
            found.append(token)
        inside = inside and token.keyword != "*/"
    return found


def _item(tokens: list[Token]) -> Item | None:
    """One item of a SELECT list; None for a form that may mean several columns."""
    if not tokens or any(token.kind is TokenKind.QUOTED and PATTERN.search(name_value(token)) for token in tokens):
        return None
    signs = [token.keyword for token in tokens]
    if signs == ["*"]:
        return Item(None, None, "*")
    if signs[1:] == [".", "*"] and tokens[0].is_name:
        return Item(None, name_value(tokens[0]).lower(), "*")
    if signs[0] == "*" or [".", "*"] in [signs[at : at + 2] for at in range(len(signs))] or "EXCEPT" in signs:
        return None
    if any(one == "AS" and following == "(" for one, following in itertools.pairwise(signs)):
        return None
    core, output = _aliased(tokens)
    if len(core) == 1 and core[0].is_name and core[0].keyword not in _NO_COLUMNS:
        return Item(output, None, name_value(core[0]).lower())
    if len(core) == 3 and core[1].keyword == "." and core[0].is_name and core[2].is_name:
        return Item(output, name_value(core[0]).lower(), name_value(core[2]).lower())
    return Item(output, None, None)


def _aliased(tokens: list[Token]) -> tuple[list[Token], str | None]:
    """What an item computes, and its name, which is its last part if it ends with one."""
    if not tokens[-1].is_name:
        return tokens, None
    output = name_value(tokens[-1]).lower()
    if len(tokens) > 2 and tokens[-2].keyword == "AS":
        return tokens[:-2], output
    if len(tokens) > 1 and tokens[-2].keyword != ".":
        return tokens[:-1], output
    return tokens, output
