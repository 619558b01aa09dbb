"""What a condition says about single columns: comparisons with literals, joined by AND and OR.

A predicate holds for every row for which the condition does, and often for more: None means any row. It does not hold for rows whose
columns are null because a join found no match, so it applies on either side of a join.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.binding.condition import conjunct
from lakehouse_engine.sql.binding.literals import Moment, has_literals, no_moment, typed_literal
from lakehouse_engine.sql.grammar.brackets import depths
from lakehouse_engine.sql.grammar.lexer import QUERY_WORDS, Token, TokenKind, name_value, quote_name, words

_UNCERTAIN = words("CASE |> | ||")
"""What could bind the words around it differently."""

_OPERATORS = words("= == != <> < <= > >= IN NOT IS BETWEEN")
_PLAIN_WORDS = _OPERATORS | words("NULL AND DATE TIMESTAMP TRUE FALSE ( ) , -")
_LITERALS = (TokenKind.STRING, TokenKind.NUMBER)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`column` (lower case) compared as `rest` says. Tokens have no positions, so equal spellings are equal."""

    column: str
    rest: tuple[Token, ...]

    def __str__(self) -> str:
        return " ".join([quote_name(self.column), *(token.text for token in self.rest)])


@dataclass(frozen=True, slots=True)
class All:
    """True if all parts are."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " and ".join(f"({part})" if isinstance(part, Either) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Either:
    """True if one of the parts is; without parts false."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " or ".join(map(str, self.parts)) or "false"


Predicate = Comparison | All | Either
NOTHING = Either(())
"""Holds for no row: dbt asks for columns only with `where false`."""


def both(*parts: Predicate | None) -> Predicate | None:
    """All hold; unknown ones say nothing."""
    known = list(dict.fromkeys(part for part in parts if part is not None))
    return None if not known else known[0] if len(known) == 1 else All(tuple(known))


def either(*parts: Predicate | None) -> Predicate | None:
    """One of them holds; if one is unknown, nothing is known."""
    known = list(dict.fromkeys(part for part in parts if part is not None))
    if not known or None in parts:
        return None
    return known[0] if len(known) == 1 else Either(tuple(known))


def predicate_of(tokens: Sequence[Token], table: str, *, qualified: bool) -> Predicate | None:
    """What a condition's tokens say about the relation called `table`; with `qualified`, its columns are qualified too.

    Then there are other relations, and `IS NULL` may hold for rows without a join match, so it says nothing.
    """
    if not tokens or any(token.keyword in _UNCERTAIN for token in _at_top(tokens)):
        return None
    alternatives = _split(tokens, "OR")
    if len(alternatives) > 1:
        return either(*(predicate_of(part, table, qualified=qualified) for part in alternatives))
    parts = _split(tokens, "AND")
    if len(parts) > 1:
        return both(*(predicate_of(part, table, qualified=qualified) for part in parts))
    if [token.keyword for token in tokens] == ["FALSE"]:
        return NOTHING
    if _is_group(tokens):
        return None if tokens[1].keyword in QUERY_WORDS else predicate_of(tokens[1:-1], table, qualified=qualified)
    return _comparison(tokens, table, qualified)


def mapped(predicate: Predicate | None, column_of: Callable[[str], str | None], *, nulls: bool) -> Predicate | None:
    """The predicate over other columns. Parts about a column for which `column_of` gives none say nothing; `IS NULL` counts only with
    `nulls`.
    """
    if predicate is None or predicate == NOTHING:
        return predicate
    if isinstance(predicate, Comparison):
        column = column_of(predicate.column)
        return None if column is None or (not nulls and _is_null(predicate.rest)) else Comparison(column.lower(), predicate.rest)
    parts = (mapped(part, column_of, nulls=nulls) for part in predicate.parts)
    return both(*parts) if isinstance(predicate, All) else either(*parts)


def expression_of(
    predicate: Predicate | None, schema: pa.Schema, fields: Sequence[str] | None = None, moment: Moment = no_moment
) -> pc.Expression | None:
    """Expression over a schema's columns (or only `fields`) that holds for every row for which the predicate does; None if that is any row.
    Only literals of the column's own type count (`literals.typed_literal`).
    """
    chosen = None if fields is None else {name.lower() for name in fields}
    columns = {one.name.lower(): one for one in schema if has_literals(one.type) and (chosen is None or one.name.lower() in chosen)}
    return _expression(predicate, columns, moment)


def _expression(predicate: Predicate | None, columns: Mapping[str, pa.Field], moment: Moment) -> pc.Expression | None:
    if predicate is None:
        return None
    if predicate == NOTHING:
        return pc.scalar(False)
    if isinstance(predicate, Comparison):
        return _compared(predicate, columns, moment)
    parts = [_expression(part, columns, moment) for part in predicate.parts]
    known = [part for part in parts if part is not None]
    if isinstance(predicate, All):
        return reduce(operator.and_, known) if known else None
    return reduce(operator.or_, known) if len(known) == len(parts) else None


def _compared(one: Comparison, columns: Mapping[str, pa.Field], moment: Moment) -> pc.Expression | None:
    def literal(tokens: Sequence[Token], column: pa.Field, text: str) -> pa.Scalar:
        value = typed_literal(tokens, column.type, moment)
        if value is None:
            raise UnsupportedSqlError(f"{text}: not a literal of the type {column.type}")
        return value

    try:
        return reduce(operator.and_, [conjunct(part, columns, str(one), literal) for part in _plain_parts(one)])
    except UnsupportedSqlError:
        return None


def _plain_parts(one: Comparison) -> list[list[Token]]:
    """`a BETWEEN b AND c` is two comparisons."""
    name, rest = Token(TokenKind.QUOTED, quote_name(one.column), 0, 0), list(one.rest)
    if rest[0].keyword != "BETWEEN":
        return [[name, *rest]]
    at = next((number for number, token in enumerate(rest) if token.keyword == "AND"), len(rest))
    return [[name, _symbol(">="), *rest[1:at]], [name, _symbol("<="), *rest[at + 1 :]]]


def _symbol(text: str) -> Token:
    return Token(TokenKind.SYMBOL, text, 0, 0)


def _comparison(tokens: Sequence[Token], table: str, qualified: bool) -> Comparison | None:
    if not tokens[0].is_name or len(tokens) < 3 or tokens[0].keyword in ("TRUE", "FALSE", "NULL"):
        return None
    if tokens[1].keyword == ".":
        is_own = name_value(tokens[0]).lower() == table.lower() and tokens[2].is_name
        column, rest = (tokens[2], tokens[3:]) if is_own else (None, ())
    else:
        column, rest = (None, ()) if qualified else (tokens[0], tokens[1:])
    if column is None or len(rest) < 2 or rest[0].keyword not in _OPERATORS or (qualified and _is_null(rest)):
        return None
    if any(token.kind not in _LITERALS and token.keyword not in _PLAIN_WORDS for token in rest):
        return None
    return Comparison(name_value(column).lower(), tuple(token._replace(start=0, end=0) for token in rest))


def _is_null(rest: Sequence[Token]) -> bool:
    return [token.keyword for token in rest] == ["IS", "NULL"]


def _at_top(tokens: Sequence[Token]) -> list[Token]:
    return [token for token, depth in zip(tokens, depths(tokens), strict=True) if depth == 0]


def _split(tokens: Sequence[Token], word: str) -> list[list[Token]]:
    """Parts joined by a top-level word, except the AND of a BETWEEN."""
    parts: list[list[Token]] = [[]]
    is_between = False
    for token, depth in zip(tokens, depths(tokens), strict=True):
        if depth == 0 and token.keyword == "BETWEEN":
            is_between = True
        if depth == 0 and token.keyword == word and not (word == "AND" and is_between):
            parts.append([])
            continue
        if depth == 0 and token.keyword == "AND":
            is_between = False
        parts[-1].append(token)
    return parts


def _is_group(tokens: Sequence[Token]) -> bool:
    """True if one pair of parentheses encloses everything."""
    return len(tokens) > 2 and tokens[0].keyword == "(" and tokens[-1].keyword == ")" and 0 not in depths(tokens)[1:-1]
