"""Minimum and maximum values in statistics: unions of wrapper records <-> columns of one type (Hudi `HoodieAvroWrapperUtils`, `ValueType`).

Hudi 0.15, and 1.x in tables of versions 6 and 8 (version V1 of the index), wrap a value by its class: days are a DateWrapper, decimals have
30 digits, 15 of them after the point. In version 9 (V2) a `valueType` says what a plain wrapper means.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.format.avro.avro_encode import decimal_texts
from lakehouse_engine.format.avro.avro_source import decimals_of_bytes
from lakehouse_engine.format.metadata_table.payload import STATS
from lakehouse_engine.format.metadata_table.schema import payload_schema

V1_DECIMAL = pa.decimal128(30, 15)


class ValueType(IntEnum):
    """The type of a value, by its ordinal in `valueType` (Hudi `ValueType`)."""

    V1 = 0
    NULL = 1
    BOOLEAN = 2
    INT = 3
    LONG = 4
    FLOAT = 5
    DOUBLE = 6
    STRING = 7
    BYTES = 8
    FIXED = 9
    DECIMAL = 10
    UUID = 11
    DATE = 12
    TIME_MILLIS = 13
    TIME_MICROS = 14
    TIMESTAMP_MILLIS = 15
    TIMESTAMP_MICROS = 16
    TIMESTAMP_NANOS = 17
    LOCAL_TIMESTAMP_MILLIS = 18
    LOCAL_TIMESTAMP_MICROS = 19
    LOCAL_TIMESTAMP_NANOS = 20


_PLAIN: tuple[tuple[pa.DataType, str, ValueType], ...] = (
    (pa.bool_(), "BooleanWrapper", ValueType.BOOLEAN),
    (pa.int32(), "IntWrapper", ValueType.INT),
    (pa.int64(), "LongWrapper", ValueType.LONG),
    (pa.float32(), "FloatWrapper", ValueType.FLOAT),
    (pa.float64(), "DoubleWrapper", ValueType.DOUBLE),
    (pa.string(), "StringWrapper", ValueType.STRING),
    (pa.binary(), "BytesWrapper", ValueType.BYTES),
)
_WIDENED: dict[pa.DataType, tuple[str, ...]] = {
    pa.int64(): ("IntWrapper",),
    pa.float64(): ("IntWrapper",),
}
"""Wrappers of narrower types, found in files from before a column was widened; the wider type holds each of their values exactly."""


def bounds_type() -> pa.DataType:
    """The struct with a member for each decoded wrapper."""
    stats = payload_schema().field(STATS).type
    return stats.field("minValue").type


def value_type_struct() -> pa.DataType:
    """Type of the `valueType` field of statistics."""
    stats = payload_schema().field(STATS).type
    return stats.field("valueType").type


def is_indexed(kind: pa.DataType, *, by_value_type: bool) -> bool:
    """True if columns of this type have bounds (Hudi `HoodieTableMetadataUtil.isColumnTypeSupported`): for V1, decimals must fit."""
    if pat.is_decimal(kind):
        whole = V1_DECIMAL.precision - V1_DECIMAL.scale
        return by_value_type or bool(kind.scale <= V1_DECIMAL.scale and kind.precision - kind.scale <= whole)
    return pat.is_date32(kind) or _is_micros(kind) or any(kind == plain for plain, _, _ in _PLAIN)


def _is_micros(kind: pa.DataType) -> bool:
    return bool(pat.is_timestamp(kind) and kind.unit == "us")


def wrap_bounds(values: pa.Array, *, by_value_type: bool) -> pa.Array:
    """Bounds of one column (of an `is_indexed` type) as the union's struct."""
    kind = values.type
    if pat.is_decimal(kind):
        wrapped = ("BytesWrapper", _unscaled(values)) if by_value_type else ("DecimalWrapper", values.cast(V1_DECIMAL))
    elif pat.is_date32(kind):
        wrapped = ("IntWrapper" if by_value_type else "DateWrapper", values.view(pa.int32()))
    elif _is_micros(kind):
        wrapped = ("LongWrapper", values.view(pa.int64()))
    else:
        wrapped = (next(name for plain, name, _ in _PLAIN if plain == kind), values)
    return _struct_of(*wrapped)


def _struct_of(name: str, values: pa.Array) -> pa.Array:
    absent = pc.is_null(values)
    children = []
    for field in bounds_type():
        if field.name == name:
            children.append(pa.StructArray.from_arrays([values], fields=list(field.type), mask=absent))
        else:
            children.append(pa.nulls(len(values), field.type))
    return pa.StructArray.from_arrays(children, fields=list(bounds_type()), mask=absent)


def value_types(kind: pa.DataType, count: int) -> pa.Array:
    """The `valueType` of one column's bounds, repeated `count` times; `NULL` for the null type."""
    info = None
    if pat.is_null(kind):
        ordinal = ValueType.NULL
    elif pat.is_decimal(kind):
        ordinal, info = ValueType.DECIMAL, f"{kind.precision},{kind.scale}"
    elif pat.is_date32(kind):
        ordinal = ValueType.DATE
    elif _is_micros(kind):
        ordinal = ValueType.LOCAL_TIMESTAMP_MICROS if kind.tz is None else ValueType.TIMESTAMP_MICROS
    else:
        ordinal = next(found for plain, _, found in _PLAIN if plain == kind)
    children = [pa.array(np.full(count, ordinal, np.int32)), pa.repeat(pa.scalar(info, pa.string()), count)]
    return pa.StructArray.from_arrays(children, fields=list(value_type_struct()))


def unwrap_bounds(bounds: pa.Array, declared: pa.Array, kind: pa.DataType) -> pa.Array:
    """Bounds in a column's type; null where there is none or it is NaN, or where the stored value cannot be read as that type.

    `declared` are the `valueType`s. A V1 number that could be micro- or milliseconds is not taken for a timestamp.
    """
    ordinal = pc.fill_null(declared.field("typeOrdinal"), int(ValueType.V1))
    if pat.is_decimal(kind):
        return _decimals(bounds, declared, ordinal, kind)
    if pat.is_date32(kind):
        days = pc.if_else(pc.equal(ordinal, int(ValueType.DATE)), _values(bounds, "IntWrapper"), _values(bounds, "DateWrapper"))
        return days.view(pa.date32())
    if pat.is_timestamp(kind):
        micros = (ValueType.TIMESTAMP_MICROS, ValueType.LOCAL_TIMESTAMP_MICROS)
        millis = (ValueType.TIMESTAMP_MILLIS, ValueType.LOCAL_TIMESTAMP_MILLIS)
        number = _values(bounds, "LongWrapper")
        found = pc.coalesce(_where(ordinal, micros, number), pc.multiply(_where(ordinal, millis, number), 1000))
        return found.view(pa.timestamp("us")).view(kind)
    wrapper = next((name for plain, name, _ in _PLAIN if plain == kind), None)
    if wrapper is None:
        return pa.nulls(len(bounds), kind)
    plain_types = (ValueType.V1, *(found for _, _, found in _PLAIN))
    candidates = [_values(bounds, name).cast(kind) for name in (wrapper, *_WIDENED.get(kind, ()))]
    found = _where(ordinal, plain_types, pc.coalesce(*candidates))
    # Hudi orders NaN above all numbers, Arrow does not order it.
    return pc.if_else(pc.is_nan(found), pa.scalar(None, kind), found) if pat.is_floating(kind) else found


def _values(bounds: pa.Array, wrapper: str) -> pa.Array:
    """The values of one member; null where a bound is in another member."""
    member = bounds.field(wrapper)
    there = pc.and_(bounds.is_valid(), member.is_valid())
    values = member.field("value")
    return pc.if_else(there, values, pa.scalar(None, values.type))


def _where(ordinal: pa.Array, types: tuple[ValueType, ...], values: pa.Array) -> pa.Array:
    """The values that are declared to be of one of these types; null elsewhere."""
    among = pc.is_in(ordinal, value_set=pa.array([int(one) for one in types], ordinal.type))
    return pc.if_else(among, values, pa.scalar(None, values.type))


def _decimals(bounds: pa.Array, declared: pa.Array, ordinal: pa.Array, kind: pa.DataType) -> pa.Array:
    plain = _where(ordinal, (ValueType.V1,), _values(bounds, "DecimalWrapper"))
    found = _fitting(plain, kind)
    unscaled = _where(ordinal, (ValueType.DECIMAL,), _values(bounds, "BytesWrapper"))
    infos = declared.field("additionalInfo")
    for info in pc.unique(infos.drop_null()).to_pylist():
        stored = decimal_type_of(info)
        if stored is not None:
            octets = pc.if_else(pc.equal(infos, info), unscaled, pa.scalar(None, pa.binary()))
            found = pc.coalesce(found, _fitting(decimals_of(octets, stored), kind))
    return found


def decimal_type_of(info: str) -> pa.DataType | None:
    """Decimal type from an `additionalInfo`, `precision,scale`; None if it does not name one."""
    precision, _, scale = info.partition(",")
    if not (precision.isdigit() and scale.isdigit() and 0 < int(precision) <= 38 and int(scale) <= int(precision)):
        return None
    return pa.decimal128(int(precision), int(scale))


def decimals_of(octets: pa.Array, kind: pa.DataType) -> pa.Array:
    """Unscaled numbers as big-endian bytes -> decimals; nulls stay null."""
    valid = np.asarray(octets.is_valid())
    numbers = decimals_of_bytes(octets.drop_null(), kind)
    places = np.maximum(np.cumsum(valid) - 1, 0)
    return numbers.take(pa.array(places, mask=~valid)) if len(numbers) else pa.nulls(len(octets), kind)


def _fitting(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Decimals cast to another type; all null if one does not fit, since the column's type has changed then."""
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        return pa.nulls(len(values), kind)


def _unscaled(values: pa.Array) -> pa.Array:
    """Unscaled numbers as big-endian bytes; nulls stay null."""
    valid = np.asarray(values.is_valid())
    numbers = decimal_texts(values.drop_null())
    places = np.maximum(np.cumsum(valid) - 1, 0)
    return numbers.take(pa.array(places, mask=~valid)) if len(numbers) else pa.nulls(len(values), pa.binary())
