"""Spark SQL type text to Arrow types, so that a table can be created without a session."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from lakehouse_engine.errors import UnsupportedTypeError
from lakehouse_engine.model.constraints import Constraints, Generated
from lakehouse_engine.record.spark_types import BY_NAME
from lakehouse_engine.sql.grammar.reader import StatementReader
from lakehouse_engine.sql.grammar.statements import ColumnDefinition

_SIZED = ("VARCHAR", "CHAR", "CHARACTER")
_DECIMAL = ("DECIMAL", "DEC", "NUMERIC")


def arrow_schema(columns: Iterable[ColumnDefinition]) -> pa.Schema:
    """Columns of CREATE TABLE or ADD COLUMNS as a schema, all nullable. Raises `UnsupportedTypeError` with the column."""
    return pa.schema([pa.field(one.name, arrow_type(one.type, one.name)) for one in columns])


def constraints_of(columns: Iterable[ColumnDefinition]) -> Constraints:
    """Constraints of the columns in CREATE TABLE or ADD COLUMNS. Raises as `max_length`.

    For generated columns, the columns that they need are not known yet.
    """
    listed = list(columns)
    lengths = ((one.name, max_length(one.type, one.name)) for one in listed)
    kept = tuple((name, length) for name, length in lengths if length is not None)
    defaults = tuple((one.name, one.default) for one in listed if one.default is not None)
    generated = tuple(Generated(one.name, one.generated) for one in listed if one.generated is not None)
    return Constraints(tuple(one.name for one in listed if not one.nullable), kept, defaults, generated)


def max_length(text: str, column: str) -> int | None:
    """Length of VARCHAR(n); None for other types. Raises `UnsupportedTypeError` for a VARCHAR without one."""
    reader = StatementReader.over(text)
    if not reader.accept("VARCHAR"):
        return None
    found = _numbers(reader, text, column)
    if len(found) != 2 or found[0] < 1 or not reader.done:
        raise UnsupportedTypeError(f"the type {text} of the column {column} needs a length: VARCHAR(n), or STRING for any", column=column)
    return found[0]


def arrow_type(text: str, column: str) -> pa.DataType:
    """Arrow type of `text` (`decimal(10, 2)`, `array<struct<a: int>>`); VARCHAR(n) is a string with a constraint (`max_length`).

    Raises `UnsupportedTypeError` with `column` for an unknown type, or one that a table cannot hold.
    """
    if max_length(text, column) is not None:
        return pa.string()
    reader = StatementReader.over(text)
    found = _type(reader, text, column)
    if not reader.done:
        raise _unknown(text, column)
    return found


def _unknown(text: str, column: str) -> UnsupportedTypeError:
    return UnsupportedTypeError(f"the type {text} of the column {column} is not one that a table can hold", column=column)


def _type(reader: StatementReader, text: str, column: str) -> pa.DataType:
    word = reader.keyword()
    reader.at += 1
    if word == "DOUBLE":
        reader.accept("PRECISION")
    if (found := BY_NAME.get(word.lower())) is not None:
        return found.stored
    if word in _SIZED:
        kind = "VARCHAR(n) inside another type" if word == "VARCHAR" else f"{word}(n), which pads with blanks,"
        message = f"{text} of the column {column}: {kind} is not kept; use VARCHAR(n) for a column, or STRING"
        raise UnsupportedTypeError(message, column=column)
    if word in _DECIMAL:
        precision, scale = [*_numbers(reader, text, column), 10, 0][:2] if reader.keyword() == "(" else (10, 0)
        if not 0 < precision <= 38 or not 0 <= scale <= precision:
            raise UnsupportedTypeError(f"{text} of the column {column}: a decimal has 1 to 38 digits, at least its scale", column=column)
        return pa.decimal128(precision, scale)
    nested = _NESTED.get(word)
    if nested is None:
        raise _unknown(text, column)
    if not reader.accept("<"):
        raise _unknown(text, column)
    made = nested(reader, text, column)
    if not reader.accept(">"):
        raise _unknown(text, column)
    return made


def _numbers(reader: StatementReader, text: str, column: str) -> list[int]:
    """`(n)` or `(p, s)`; the default scale is 0."""
    found: list[int] = []
    reader.accept("(")
    while not reader.accept(")"):
        token = reader.peek()
        if token is None or not token.text.isdigit():
            raise _unknown(text, column)
        found.append(int(token.text))
        reader.at += 1
        reader.accept(",")
    return found if len(found) != 1 else [found[0], 0]


def _array(reader: StatementReader, text: str, column: str) -> pa.DataType:
    return pa.list_(pa.field("element", _type(reader, text, column)))


def _map(reader: StatementReader, text: str, column: str) -> pa.DataType:
    key = _type(reader, text, column)
    if not reader.accept(","):
        raise _unknown(text, column)
    if key != pa.string():
        raise UnsupportedTypeError(f"the map {text} of the column {column} needs STRING keys, as Hudi's schemas do", column=column)
    return pa.map_(key, _type(reader, text, column))


def _struct(reader: StatementReader, text: str, column: str) -> pa.DataType:
    fields: list[pa.Field] = []
    while not fields or reader.accept(","):
        name = reader.identifier("a field's name")
        reader.accept(":")
        field_type = _type(reader, text, column)
        if reader.accept("NOT", "NULL"):
            raise UnsupportedTypeError(f"{text} of the column {column}: NOT NULL of a field is not kept; leave it out", column=column)
        if reader.accept("COMMENT"):
            reader.string("a comment")
        fields.append(pa.field(name, field_type))
    return pa.struct(fields)


_NESTED: dict[str, Callable[[StatementReader, str, str], pa.DataType]] = {"ARRAY": _array, "MAP": _map, "STRUCT": _struct}
