"""Bounds of each type are read as they were wrapped, and null where they do not say what they are."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.format.metadata_table.bounds import (
    ValueType,
    is_indexed,
    unwrap_bounds,
    value_type_struct,
    value_types,
    wrap_bounds,
)
from tests.unit.format.metadata_table.payloads import bound_of

MICROS, LOCAL = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
EXAMPLES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False]),
    (pa.int32(), [-5, 2**31 - 1]),
    (pa.int64(), [-5, 2**63 - 1]),
    (pa.float32(), [0.5, -2.0]),
    (pa.float64(), [0.1, -2.0]),
    (pa.string(), ["", "\u00e9"]),
    (pa.binary(), [b"", b"\xff"]),
    (pa.date32(), [dt.date(1969, 12, 31), dt.date(2024, 1, 2)]),
    (pa.decimal128(12, 2), [Decimal("-1.28"), Decimal("1234567890.12")]),
]
TIMESTAMPS: list[tuple[pa.DataType, list[Any]]] = [
    (MICROS, [dt.datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=dt.timezone.utc)]),
    (LOCAL, [dt.datetime.fromisoformat("1969-01-02T03:04:05.678901")]),
]


def untyped(count: int) -> pa.Array:
    return pa.nulls(count, value_type_struct())


@pytest.mark.parametrize(("kind", "values"), EXAMPLES + TIMESTAMPS, ids=str)
def test_bounds_of_version_9_are_read_as_wrapped(kind: pa.DataType, values: list[Any]) -> None:
    given = pa.array([*values, None], kind)
    assert is_indexed(kind, by_value_type=True)
    assert unwrap_bounds(wrap_bounds(given, by_value_type=True), value_types(kind, len(given)), kind).equals(given)


@pytest.mark.parametrize(("kind", "values"), EXAMPLES, ids=str)
def test_bounds_of_version_6_are_read_as_wrapped(kind: pa.DataType, values: list[Any]) -> None:
    given = pa.array([*values, None], kind)
    assert is_indexed(kind, by_value_type=False)
    assert unwrap_bounds(wrap_bounds(given, by_value_type=False), untyped(len(given)), kind).equals(given)


@pytest.mark.parametrize(("kind", "values"), TIMESTAMPS, ids=str)
def test_a_number_of_version_6_is_no_timestamp_for_it_does_not_say_its_unit(kind: pa.DataType, values: list[Any]) -> None:
    given = pa.array(values, kind)
    assert unwrap_bounds(wrap_bounds(given, by_value_type=False), untyped(len(given)), kind).null_count == len(given)


def test_milliseconds_are_told_by_their_type() -> None:
    declared = pa.array([{"typeOrdinal": int(ValueType.TIMESTAMP_MILLIS), "additionalInfo": None}], value_type_struct())
    found = unwrap_bounds(wrap_bounds(pa.array([1500], pa.int64()), by_value_type=True), declared, MICROS)
    assert found.cast(pa.int64()).to_pylist() == [1_500_000]


def test_a_bound_from_before_its_column_was_widened_is_read_in_the_wider_type() -> None:
    wrapped = wrap_bounds(pa.array([7], pa.int32()), by_value_type=True)
    assert unwrap_bounds(wrapped, value_types(pa.int32(), 1), pa.int64()).to_pylist() == [7]
    assert unwrap_bounds(wrapped, value_types(pa.int32(), 1), pa.string()).to_pylist() == [None]
    assert unwrap_bounds(wrapped, value_types(pa.date32(), 1), pa.int32()).to_pylist() == [None]


def test_wrappers_are_those_of_hudi() -> None:
    def wrapped(values: pa.Array, by_value_type: bool) -> object:
        return bound_of(wrap_bounds(values, by_value_type=by_value_type)[0].as_py())

    day, money = pa.array([dt.date(1970, 1, 3)]), pa.array([Decimal("-1.28")], pa.decimal128(12, 2))
    assert wrapped(day, False) == ("DateWrapper", 2)
    assert wrapped(day, True) == ("IntWrapper", 2)
    assert wrapped(money, False) == ("DecimalWrapper", Decimal("-1.280000000000000"))
    assert wrapped(money, True) == ("BytesWrapper", b"\x80")
    assert value_types(money.type, 1).to_pylist() == [{"typeOrdinal": 10, "additionalInfo": "12,2"}]


def test_decimals_that_do_not_fit_version_6_and_nested_columns_have_no_bounds() -> None:
    assert not is_indexed(pa.decimal128(38, 10), by_value_type=False)
    assert not is_indexed(pa.decimal128(20, 18), by_value_type=False)
    assert is_indexed(pa.decimal128(38, 10), by_value_type=True)
    assert not is_indexed(pa.list_(pa.int32()), by_value_type=True)


@given(st.lists(st.none() | st.integers(-(10**38) + 1, 10**38 - 1), max_size=20))
def test_unscaled_numbers_take_as_few_bytes_as_in_java(numbers: list[int | None]) -> None:
    kind = pa.decimal128(38, 0)
    given = pa.array([None if one is None else Decimal(one) for one in numbers], kind)
    wrapped = wrap_bounds(given, by_value_type=True)
    for number, bound in zip(numbers, wrapped.to_pylist(), strict=True):
        if number is not None:
            size = (number if number >= 0 else ~number).bit_length() // 8 + 1
            assert bound["BytesWrapper"]["value"] == number.to_bytes(size, "big", signed=True)
    assert unwrap_bounds(wrapped, value_types(kind, len(given)), kind).equals(given)
