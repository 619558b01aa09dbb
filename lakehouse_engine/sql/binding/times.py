"""What a comparison of a day or a moment with a literal says, whatever the session's settings.

Which moment a text is depends on the session's time zone where it names none. So a literal lies between two values, which are one where the
settings are known to leave no choice. With `spark.sql.legacy.typeCoercion.datetimeToString.enabled` days and moments are compared with
texts as texts, of which the year `+10000` is before 2026 and an offset is none: those say nothing then. Without ANSI those in lists are
compared so whatever that setting is (`or_of_another_calendar`).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.compat import UTC
from lakehouse_engine.sql.grammar.brackets import parts
from lakehouse_engine.sql.grammar.lexer import Token, TokenKind, is_plain_string

_TEXT = re.compile(r"'(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?)(Z|[+-]\d{2}:\d{2})?)?'", re.ASCII)
_OFFSET = re.compile(r"([+-])(\d{2}):(\d{2})", re.ASCII)
_UTC = ("UTC", "Z", "GMT", "Etc/UTC", "Etc/GMT", "UCT", "Zulu")
_FAR = timedelta(days=2)
"""More than what two zones (18 hours each) can move a moment."""
_GREGORIAN = date(1582, 10, 15)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TYPES = ("DATE", "TIMESTAMP")
_OPERATORS = ("=", "==", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class _Literal:
    """It lies between `low` and `high`, which are of the column's type; `exact`: it is both."""

    low: pa.Scalar
    high: pa.Scalar
    exact: bool


def compared_time(column: pa.Field, rest: Sequence[Token], zone: str | None) -> pc.Expression | None:
    """What is true of every row for which `column` is as `rest` says, an operator and literals; None where that may be any row.

    `zone`: the session's time zone, None where it is not known, or texts are compared as such: then `rest` has none (`has_text`).
    """
    words, field = [token.keyword for token in rest], pc.field(column.name)
    if words[0] in _OPERATORS:
        return _compared(field, words[0], _literal(rest[1:], column.type, zone))
    if words[:2] == ["IN", "("] and words[-1] == ")" and len(words) > 3:
        any_of = [_compared(field, "=", _literal(one, column.type, zone)) for one in parts(rest[2:-1], ",")]
        known = [one for one in any_of if one is not None]
        return reduce(operator.or_, known) if len(known) == len(any_of) else None
    return None


def has_text(rest: Sequence[Token]) -> bool:
    """Whether a string among the literals is neither a DATE's nor a TIMESTAMP's."""
    before = [None, *rest]
    return any(two.kind is TokenKind.STRING and (one is None or one.keyword not in _TYPES) for one, two in zip(before, rest, strict=False))


def or_of_another_calendar(found: pc.Expression, column: pa.Field, rest: Sequence[Token]) -> pc.Expression:
    """With the days that another text stands for with `spark.sql.legacy.timeParserPolicy=LEGACY`, where `rest` is a list with texts: those
    before Christ have no sign, and those that the older calendar does not have are later ones.
    """
    if not pat.is_date(column.type) or not has_text(rest) or "IN" not in (token.keyword for token in rest[:2]):
        return found
    return found | (pc.field(column.name) < pa.scalar(_GREGORIAN).cast(column.type))


def _compared(field: pc.Expression, word: str, literal: _Literal | None) -> pc.Expression | None:
    if literal is None:
        return None
    if word in ("=", "=="):
        return field == literal.low if literal.exact else (field >= literal.low) & (field <= literal.high)
    if word in (">", ">="):
        return field > literal.low if word == ">" else field >= literal.low
    return field < literal.high if word == "<" and literal.exact else field <= literal.high


def _literal(tokens: Sequence[Token], kind: pa.DataType, zone: str | None) -> _Literal | None:
    given = list(tokens)
    word = given[0].keyword if len(given) == 2 else ""
    if word in _TYPES:
        given = given[1:]
    if len(given) != 1 or given[0].kind is not TokenKind.STRING or not is_plain_string(given[0]):
        return None
    found = _TEXT.fullmatch(given[0].text)
    if found is None or (found[2] and word == "DATE"):
        return None
    try:
        return _day(found, word, kind) if pat.is_date(kind) else _moment(found, kind, zone)
    except (ValueError, OverflowError, pa.ArrowException):
        return None  # there is no such day, or none two days away from it


def _day(found: re.Match[str], word: str, kind: pa.DataType) -> _Literal | None:
    """Spark leaves out what stands behind the day in a text that it compares with a day; a TIMESTAMP it compares as one."""
    if word == "TIMESTAMP":
        return None
    day = pa.scalar(date.fromisoformat(found[1])).cast(kind)
    return _Literal(day, day, exact=True)


def _moment(found: re.Match[str], kind: pa.TimestampType, zone: str | None) -> _Literal:
    here = datetime.fromisoformat(f"{found[1]}T{found[2] or '00:00:00'}+00:00")
    given, session = _offset(found[3]), _offset(zone)
    if kind.tz is None:  # a wall clock: what a text says of a zone is left out, or counts, by what it is taken for
        moment, exact = here, given is None and session is not None
    else:
        known = given if given is not None else session
        moment, exact = here - (known or timedelta()), zone is not None and known is not None
    return _Literal(*_around(moment, timedelta() if exact else _FAR, kind), exact)


def _offset(zone: str | None) -> timedelta | None:
    """Of a zone that is the same all year and for ever, by its name."""
    if zone in _UTC:
        return timedelta()
    found = None if zone is None else _OFFSET.fullmatch(zone)
    if found is None:
        return None
    offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
    return -offset if found[1] == "-" else offset


def _around(moment: datetime, far: timedelta, kind: pa.TimestampType) -> tuple[pa.Scalar, pa.Scalar]:
    """From and to, as far around the moment as values of the type can tell."""
    low, high = ((one - _EPOCH) // timedelta(microseconds=1) for one in (moment - far, moment + far))
    if kind.unit == "ns":
        low, high = low * 1_000, high * 1_000
    else:
        step = {"us": 1, "ms": 1_000, "s": 1_000_000}[kind.unit]
        low, high = low // step, -(-high // step)
    return pa.scalar(low, pa.int64()).cast(kind), pa.scalar(high, pa.int64()).cast(kind)
