"""Literals of a column's own type: the only ones that Spark compares without a coercion that settings can change."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as pat

from lakehouse_engine.sql.grammar.lexer import Token, TokenKind, is_plain_string

Moment = Callable[[str], int | None]
"""Microseconds since 1970 for the (quoted) text of a TIMESTAMP literal in the session; None if unknown."""

_WHOLE = re.compile(r"\d+", re.ASCII)
_DECIMAL = re.compile(r"\d*\.\d+", re.ASCII)
_DAY = re.compile(r"'(\d{4}-\d{2}-\d{2})'", re.ASCII)


def no_moment(_: str) -> None:
    """Without a session, TIMESTAMP literals have no value."""


def has_literals(kind: pa.DataType) -> bool:
    """True if a column's type has literals."""
    is_one_of = (pat.is_string, pat.is_integer, pat.is_decimal, pat.is_date, pat.is_timestamp, pat.is_boolean)
    return any(is_one(kind) for is_one in is_one_of)


def typed_literal(tokens: Sequence[Token], kind: pa.DataType, moment: Moment = no_moment) -> pa.Scalar | None:
    """Value of a literal of the type; None for any other expression, and for a value that the type cannot hold."""
    if len(tokens) not in (1, 2):
        return None
    before, last = tokens[0].keyword if len(tokens) == 2 else None, tokens[-1]
    try:
        if last.kind is TokenKind.NUMBER and before in (None, "-"):
            return _number((before or "") + last.text, last.text, kind)
        if last.kind is TokenKind.STRING and is_plain_string(last):
            return _quoted(before, last.text, kind, moment)
    except (ValueError, OverflowError, pa.ArrowException):
        return None
    is_word = before is None and pat.is_boolean(kind) and last.keyword in ("TRUE", "FALSE")
    return pa.scalar(last.keyword == "TRUE") if is_word else None


def _number(signed: str, text: str, kind: pa.DataType) -> pa.Scalar | None:
    if pat.is_integer(kind) and _WHOLE.fullmatch(text):
        return pa.scalar(int(signed), kind)
    return pa.scalar(Decimal(signed), kind) if pat.is_decimal(kind) and _DECIMAL.fullmatch(text) else None


def _quoted(word: str | None, text: str, kind: pa.DataType, moment: Moment) -> pa.Scalar | None:
    if word is None:
        return pa.scalar(text[1:-1], kind) if pat.is_string(kind) else None
    if word == "DATE" and pat.is_date(kind) and _DAY.fullmatch(text):
        return pa.scalar(date.fromisoformat(text[1:-1]), kind)
    if word == "TIMESTAMP" and pat.is_timestamp(kind) and kind.tz is not None:
        value = moment(text)
        return None if value is None else pa.scalar(value, pa.timestamp("us", kind.tz)).cast(kind)
    return None
