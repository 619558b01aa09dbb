"""Parses a condition text to an Arrow expression, for the command line's `--where`.

    column = | == | != | <> | < | <= | > | >= literal
    column [NOT] IN (literal, ...)
    column IS [NOT] NULL

joined by AND, with Spark's quotes and names. A literal has the column's type: text, date or timestamp in quotes (with or without DATE or
TIMESTAMP; a timestamp without zone is UTC), a number, TRUE or FALSE. As in SQL, a comparison with null is not true. Anything else needs
Spark and is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.model.keys import META_COLUMNS
from lakehouse_engine.sql.grammar.brackets import parts
from lakehouse_engine.sql.grammar.lexer import Token, TokenKind, name_value, significant, string_value

_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


Literal = Callable[[Sequence[Token], pa.Field, str], pa.Scalar]
"""Reads the literal of a comparison. Raises `UnsupportedSqlError` if it is not a literal of the column's type."""


def row_condition(text: str, schema: pa.Schema) -> pc.Expression:
    """`schema` has the table's user columns. Raises `UnsupportedSqlError` with the part that is not understood."""
    known = [*schema, *(pa.field(name, pa.string()) for name in META_COLUMNS)]
    columns = {field.name.lower(): field for field in known}
    return reduce(operator.and_, [conjunct(part, columns, text) for part in parts(significant(text), "AND")])


def conjunct(tokens: Sequence[Token], columns: Mapping[str, pa.Field], text: str, literal: Literal | None = None) -> pc.Expression:
    """One comparison with a column of `columns` (by lower-case name). `literal` reads literals, if not the default way.

    Raises as `row_condition`.
    """
    literal = literal or _literal
    if len(tokens) < 3 or not tokens[0].is_name:
        raise _refused(tokens, text, "a condition is a column, an operator and a literal, and AND joins several")
    column = columns.get(name_value(tokens[0]).lower())
    if column is None:
        raise _refused(tokens, text, f"the table has no column {name_value(tokens[0])!r}")
    field, words, rest = pc.field(column.name), [token.keyword for token in tokens[1:]], tokens[2:]
    if words in (["IS", "NULL"], ["IS", "NOT", "NULL"]):
        return field.is_null() if len(words) == 2 else field.is_valid()
    if words[0] in _COMPARISONS:
        return _COMPARISONS[words[0]](field, literal(rest, column, text))
    if words[0] == "IN" or words[:2] == ["NOT", "IN"]:
        listed = _list(tokens[2:] if words[0] == "IN" else tokens[3:], text)
        found = field.isin(pa.array([literal(one, column, text) for one in listed]))
        return found if words[0] == "IN" else field.is_valid() & ~found
    raise _refused(tokens, text, "operators are =, !=, <, <=, >, >=, [NOT] IN (...), IS [NOT] NULL")


def _list(tokens: Sequence[Token], text: str) -> list[list[Token]]:
    if len(tokens) < 3 or tokens[0].keyword != "(" or tokens[-1].keyword != ")":
        raise _refused(tokens, text, "IN takes literals in parentheses")
    return parts(tokens[1:-1], ",")


def _literal(tokens: Sequence[Token], column: pa.Field, text: str) -> pa.Scalar:
    kind, given = column.type, list(tokens)
    if len(given) == 2 and given[0].keyword in ("DATE", "TIMESTAMP") and given[1].kind is TokenKind.STRING:
        if not (pat.is_date if given[0].keyword == "DATE" else pat.is_timestamp)(kind):
            raise _refused(tokens, text, f"the column {column.name!r} is {kind}")
        given = given[1:]
    sign = "-" if len(given) == 2 and given[0].keyword == "-" else ""
    if len(given) == (2 if sign else 1):
        try:
            value = _value(given[-1], sign, kind)
            if value is not None:
                return pa.scalar(value, kind)
        except (ValueError, InvalidOperation, OverflowError, pa.ArrowException) as error:
            raise _refused(tokens, text, f"it is no value of the column {column.name!r}, which is {kind}") from error
    raise _refused(tokens, text, f"the column {column.name!r} is {kind}, and is compared with a literal of that type")


def _value(token: Token, sign: str, kind: pa.DataType) -> Any:
    """None if the literal does not have the type."""
    if token.kind is TokenKind.NUMBER and token.text[-1:].isdigit():
        if pat.is_integer(kind):
            return int(sign + token.text)
        if pat.is_floating(kind):
            return float(sign + token.text)
        return Decimal(sign + token.text) if pat.is_decimal(kind) else None
    if token.kind is TokenKind.STRING and not sign:
        content = string_value(token)
        if pat.is_string(kind):
            return content
        if pat.is_date(kind):
            return date.fromisoformat(content)
        if pat.is_timestamp(kind):
            moment = datetime.fromisoformat(content)
            return moment if moment.tzinfo or kind.tz is None else moment.replace(tzinfo=UTC)
    if pat.is_boolean(kind) and token.keyword in ("TRUE", "FALSE"):
        return token.keyword == "TRUE"
    return None


def _refused(tokens: Sequence[Token], text: str, why: str) -> UnsupportedSqlError:
    part = text[tokens[0].start : tokens[-1].end] if tokens else text
    return UnsupportedSqlError(f"the condition {part!r} is not understood: {why}")
