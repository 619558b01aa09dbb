"""Turns a seed's agate table into a typed Arrow table: no SQL text, no bindings, one write. Loaded when a seed is written."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.writing.types import arrow_type, text_length

if TYPE_CHECKING:
    import agate

_TIME_FORMS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y")
_OFFSET = r":\d\d(\.\d+)?([zZ]|[+-]\d{2}(:?\d{2})?)$"
"""UTC offset at the end of a time."""
_LONG = (-(2**63), 2**63 - 1)
_DIGITS = 28
_GIVE = "name the column's type in column_types, such as string or decimal(38, 0)"


def seed_table(table: agate.Table, inferred: Mapping[str, str], overrides: Mapping[str, str]) -> pa.Table:
    """Rows of the seed. `inferred` and `overrides` give each column's Spark type; an override's column holds text.

    Raises `DbtRuntimeError` with the column whose text does not parse as its type, or has been changed by dbt.
    """
    chosen = {name.lower(): kind for name, kind in overrides.items()}
    for name in overrides:
        _check_is_text(table, name, arrow_type(overrides[name]))
    columns = [_column(table, name, chosen.get(name.lower(), inferred[name])) for name in table.column_names]
    return pa.table(columns, names=list(table.column_names))


def _check_is_text(table: agate.Table, wanted: str, kind: pa.DataType) -> None:
    """Check that dbt kept the column's text. It does so only if `column_types` spells the name as the file does; otherwise it has already
    made numbers, dates and booleans of it (007 became 7).
    """
    for name in table.column_names:
        if name != wanted and name.lower() == wanted.lower() and pa.types.is_string(kind):
            read = [value for value in table.columns[name].values() if value is not None]
            if not all(isinstance(value, str) for value in read):
                raise DbtRuntimeError(
                    f"column_types names '{wanted}', but the seed's file calls the column '{name}', and dbt goes by the file's spelling:"
                    f" it has read {type(read[0]).__name__} values where the text is to be kept; write '{name}' in column_types"
                )


def _column(table: agate.Table, name: str, type_name: str) -> pa.Array:
    kind = arrow_type(type_name)
    values = list(table.columns[name].values())
    try:
        return _fitted(_typed(values, kind), name, type_name)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise DbtRuntimeError(f"The seed column '{name}' does not hold values of type {type_name}: {error}") from error


def _fitted(column: pa.Array, name: str, type_name: str) -> pa.Array:
    """Cut texts that are too long only by trailing blanks, as Spark does; refuse others."""
    length = text_length(type_name)
    if length is None:
        return column
    too_long = pc.fill_null(pc.greater(pc.utf8_length(column), length), False)
    cut = pc.utf8_rtrim(column, characters=" ")
    broken = pc.and_(too_long, pc.fill_null(pc.greater(pc.utf8_length(cut), length), False))
    count = pc.sum(broken).as_py() or 0
    if count:
        example = column[pc.index(broken, True).as_py()].as_py()
        raise DbtRuntimeError(f"The seed column '{name}' has {count:,} value(s) that are longer than {type_name}, for example {example!r}")
    return pc.if_else(too_long, pc.utf8_slice_codeunits(column, 0, length), column)


def _typed(values: list[Any], kind: pa.DataType) -> pa.Array:
    if any(isinstance(value, str) for value in values):
        return _from_text(pa.array([None if value is None else str(value) for value in values], pa.string()), kind)
    if pa.types.is_string(kind):
        return pa.array([None if value is None else _as_text(value) for value in values], kind)
    if pa.types.is_integer(kind):
        return pa.array([None if value is None else _whole(value) for value in values], kind)
    if pa.types.is_floating(kind):
        return pa.array([None if value is None else _real(value) for value in values], kind)
    return pa.array(values, kind) if not pa.types.is_timestamp(kind) else _timestamps(values, kind)


def _timestamps(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Times without a zone are UTC, the session's zone."""
    naive = [value.astimezone(timezone.utc).replace(tzinfo=None) if value is not None and value.tzinfo else value for value in values]
    plain = pa.array(naive, pa.timestamp("us"))
    return pc.assume_timezone(plain, "UTC") if kind.tz else plain


def _from_text(text: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind):
        return text
    trimmed = pc.utf8_trim_whitespace(text)
    if pa.types.is_boolean(kind):
        return _booleans(trimmed)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _times(trimmed, kind)
    return pc.cast(trimmed, kind)


def _booleans(text: pa.Array) -> pa.Array:
    lowered = pc.utf8_lower(text)
    true = pc.is_in(lowered, pa.array(["true", "t", "yes", "y", "1"]))
    false = pc.is_in(lowered, pa.array(["false", "f", "no", "n", "0"]))
    wrong = pc.and_(pc.is_valid(text), pc.invert(pc.or_(true, false)))
    if pc.any(wrong).as_py():
        raise ValueError(f"'{text.filter(wrong)[0].as_py()}' is neither true nor false")
    return pc.if_else(pc.is_valid(text), true, pa.scalar(None, pa.bool_()))


def _times(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Times by their own UTC offsets; those without one are UTC, the session's zone."""
    zoned = pc.fill_null(pc.match_substring_regex(text, _OFFSET), False)
    if not pc.any(zoned).as_py():
        return _plain_times(text, kind)
    if not getattr(kind, "tz", None):
        raise ValueError(f"'{text.filter(zoned)[0].as_py()}' has an offset from UTC; the type timestamp keeps such moments")
    nothing = pa.scalar(None, pa.string())
    moments = pc.cast(pc.if_else(zoned, text, nothing), kind)
    return pc.coalesce(moments, _plain_times(pc.if_else(zoned, nothing, text), kind))


def _plain_times(text: pa.Array, kind: pa.DataType) -> pa.Array:
    for form in (None, *_TIME_FORMS):
        try:
            parsed = pc.cast(text, pa.timestamp("us")) if form is None else pc.strptime(text, form, "us")
        except pa.ArrowInvalid:
            continue
        if pa.types.is_date(kind):
            return pc.cast(parsed, pa.date32())
        return pc.assume_timezone(parsed, "UTC") if kind.tz else parsed
    return pc.cast(text, kind)


def _whole(value: Any) -> int:
    if int(value) != value:
        raise ValueError(f"{value} is no whole number")
    if not _LONG[0] <= value <= _LONG[1]:
        raise ValueError(f"{int(value)} has too many digits; {_GIVE}")
    return int(value)


def _real(value: Any) -> float:
    """Refuse whole numbers with more digits than Python's decimal default (28): dbt has rounded them."""
    if isinstance(value, Decimal):
        digits, exponent = value.as_tuple()[1:]
        if len(digits) >= _DIGITS and isinstance(exponent, int) and exponent > 0:
            raise ValueError(f"of a number as long as {value:f} dbt keeps the first {_DIGITS} digits; {_GIVE}")
    return float(value)


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
