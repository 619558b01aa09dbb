"""Values as text like Java's `toString`, for record keys and partition paths (table format, "Record key encoding")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.errors import UnsupportedTypeError
from lakehouse_engine.record.types import canonical_array

_PLAIN_SCALE = 6
"""Up to this scale `BigDecimal.toString` never uses an exponent."""


_GREGORIAN = -12_219_292_800_000_000
"""1582-10-15 in microseconds since the epoch."""


def java_text(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The values as one string array; nulls stay null.

    Numbers in decimal, floats like `Double.toString` / `Float.toString` (Java 19 and later: shortest digits), booleans `true` / `false`,
    dates `yyyy-MM-dd`, decimals like `BigDecimal.toString`, timestamps as microseconds since the epoch. Raises `UnsupportedTypeError` for
    binary and nested types, whose Java text does not identify the value.
    """
    values = canonical_array(array)
    kind = values.type
    if pat.is_string(kind):
        return values
    if pat.is_floating(kind):
        return _of_distinct(values, _bits(values), _double_text if kind == pa.float64() else _float_text)
    if pat.is_decimal(kind):
        return values.cast(pa.string()) if kind.scale <= _PLAIN_SCALE else _of_distinct(values, values, str)
    if pat.is_timestamp(kind):
        return values.cast(pa.int64()).cast(pa.string())
    if pat.is_integer(kind) or pat.is_boolean(kind) or pat.is_date(kind):
        return values.cast(pa.string())
    raise UnsupportedTypeError(f"a value of type {kind} has no text that can be a record key or a partition; use another column")


def timestamp_text(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Timestamps like `java.sql.Timestamp.toString` in UTC with whole milliseconds: `2026-05-01 12:00:00.12`; nulls stay null.

    Raises `UnsupportedTypeError` before 1582-10-15, where Java uses another calendar.
    """
    values = canonical_array(array)
    if not pat.is_timestamp(values.type):
        raise UnsupportedTypeError(f"a value of type {values.type} is no timestamp")
    moments = values.cast(pa.int64())
    if pc.any(pc.less(moments, _GREGORIAN)).as_py():
        raise UnsupportedTypeError("timestamps before 1582-10-15 have no text that every engine agrees on; use another column")
    micros = np.asarray(pc.fill_null(moments, 0))
    # Truncated towards zero: a microsecond before 1970 becomes 1970.
    whole = pa.array(np.sign(micros) * (np.abs(micros) // 1000), pa.int64()).view(pa.timestamp("ms"))
    texts = pc.replace_substring_regex(pc.strftime(whole, "%Y-%m-%d %H:%M:%S"), r"(\.[0-9]+?)0+$", r"\1")
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string()))


def _of_distinct(values: pa.Array, identity: pa.Array, text: Callable[[Any], str]) -> pa.Array:
    """Text of values that only Python can spell, made once per distinct value."""
    encoded = identity.dictionary_encode()
    distinct = encoded.dictionary
    if identity.type != values.type:
        distinct = distinct.view(values.type)
    texts = pa.array([text(value) for value in distinct.to_pylist()], pa.string())
    return texts.take(encoded.indices)


def _bits(values: pa.Array) -> pa.Array:
    """Floats by their bits, so that 0.0 and -0.0 are two values."""
    return values.view(pa.int64() if values.type == pa.float64() else pa.int32())


def _double_text(value: float) -> str:
    return _floating_text(value, np.format_float_scientific(value, unique=True, trim="-"))


def _float_text(value: float) -> str:
    return _floating_text(value, np.format_float_scientific(np.float32(value), unique=True, trim="-"))


def _floating_text(value: float, shortest: str) -> str:
    """`Double.toString`: plain from 1e-3 to 1e7, else with an exponent; always a digit on both sides of the point."""
    if value != value:
        return "NaN"
    sign = "-" if shortest.startswith("-") else ""
    if abs(value) == float("inf"):
        return f"{sign}Infinity"
    if value == 0:
        return f"{sign}0.0"
    mantissa, exponent = shortest.lstrip("-").split("e")
    if len(mantissa) == 1:
        # Java prints at least two digits and takes the nearest such number: Double.MIN_VALUE is 4.9E-324, not 5.0E-324.
        mantissa, exponent = f"{abs(value):.1e}".split("e")
    digits, power = mantissa.replace(".", "").rstrip("0") or "0", int(exponent)
    if power < -3 or power >= 7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    whole = digits[: power + 1].ljust(power + 1, "0")
    return f"{sign}{whole}.{digits[power + 1 :] or '0'}"
