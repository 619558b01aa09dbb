from __future__ import annotations

import pickle
from datetime import date, datetime, time, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import OptionError, SchemaIncompatibleError
from lakehouse_engine.sorting.ranges import Ranges

NAN, INFINITY = float("nan"), float("inf")
UTC = timezone.utc

ASCENDING: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [-128, -1, 0, 1, 127]),
    "int64": (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
    "uint64": (pa.uint64(), [0, 1, 2**63, 2**64 - 1]),
    "float": (pa.float32(), [-INFINITY, -1.5, 0.0, 1.5, INFINITY, NAN]),
    "double": (pa.float64(), [-INFINITY, -1e300, -5e-324, 0.0, 5e-324, 1e300, INFINITY, NAN]),
    "boolean": (pa.bool_(), [False, True]),
    "text": (pa.string(), ["", "a", "a\0", "ab", "b", "z", "é", "\U0001f600"]),
    "large text": (pa.large_string(), ["Z", "a", "ä"]),
    "binary": (pa.binary(), [b"", b"\x00", b"\x7f", b"\x80", b"\xff\x00"]),
    "fixed binary": (pa.binary(2), [b"\x00\x00", b"\x00\x80", b"\xff\x00"]),
    "decimal": (pa.decimal128(12, 2), [Decimal(text) for text in ("-9999999999.99", "-0.01", "0.00", "0.01", "123.45")]),
    "long decimal": (pa.decimal128(38, 2), [Decimal(text) for text in ("-1e30", "-0.01", "0.00", "1e30")]),
    "date": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2026, 1, 1)]),
    "timestamp": (pa.timestamp("us", "UTC"), [datetime(1900, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)]),
    "local timestamp": (pa.timestamp("us"), [datetime.fromisoformat("1900-01-01"), datetime.fromisoformat("2026-01-01")]),
    "time": (pa.time64("us"), [time(0, 0), time(0, 0, 1), time(23, 59)]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["a", "b", "c"]),
}
"""Of each type values that ascend, as Spark orders them."""


def ids(values: pa.Array | pa.ChunkedArray, bits: int = 10, sample: pa.Array | None = None) -> list[int]:
    ranges = Ranges.of(pa.table({"v": values if sample is None else sample}), ["v"], bits)
    return [int(number) for number in ranges.of_rows(pa.table({"v": values}), ["v"])[0]]


@pytest.mark.parametrize("kind", ASCENDING)
def test_ids_ascend_with_the_values_and_null_is_0(kind: str) -> None:
    type_, values = ASCENDING[kind]
    found = ids(pa.array([None, *values], type_))
    assert found[0] == 0
    assert found[1] > 0
    assert found == sorted(set(found))


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_negative_zero_is_zero_and_every_nan_is_one(type_: pa.DataType) -> None:
    negative_nan = np.array([0xFFF8000000000000], np.uint64).view(np.float64)[0]
    found = ids(pa.array([0.0, -0.0, NAN, -NAN, negative_nan, INFINITY], type_))
    assert found[0] == found[1] < found[5] < found[2] == found[3] == found[4]


def test_values_beyond_the_sample_get_the_ids_of_its_ends() -> None:
    sample = pa.array(range(0, 1_000_000, 10), pa.int64())
    assert ids(pa.array([-(2**63), -1, 0, 999_990, 2**63 - 1]), sample=sample) == [1, 1, 1, 1023, 1023]


@given(st.lists(st.one_of(st.none(), st.integers(-50, 50)), min_size=1, max_size=300), st.integers(2, 16))
def test_ids_never_contradict_the_values(values: list[int | None], bits: int) -> None:
    array = pa.array(values, pa.int32())
    found = ids(array, bits, sample=array.slice(0, max(1, len(array) // 3)))
    pairs = sorted((value is not None, value or 0, number) for value, number in zip(values, found, strict=True))
    numbers = [number for _, _, number in pairs]
    assert numbers == sorted(numbers)
    assert all((number == 0) is (not known) for known, _, number in pairs)
    assert max(numbers) < 2**bits


@given(st.lists(st.one_of(st.none(), st.text(max_size=4)), min_size=1, max_size=200), st.integers(2, 12))
def test_texts_get_the_ids_of_their_dictionary(values: list[str | None], bits: int) -> None:
    texts = pa.array(values, pa.string())
    pieces = pa.chunked_array([texts.slice(0, 7), texts.slice(7)])
    assert ids(texts, bits) == ids(pieces, bits) == ids(pieces.dictionary_encode(), bits) == ids(texts.cast(pa.large_string()), bits)


def test_ranges_have_about_equal_shares_of_the_rows() -> None:
    values = pa.array(np.random.default_rng(5).exponential(1e6, 100_000))
    counts = np.bincount(ids(values, bits=4), minlength=16)
    assert counts[0] == 0
    assert counts[1:].min() > 6600
    assert counts[1:].max() < 6730


def test_a_column_of_two_values_is_cut_by_the_leading_bit() -> None:
    """Then a curve cuts it as early as a column of many values, also where one of the two is a little rarer."""
    low, high = ids(pa.array([1, 7]).take(pa.array([0] * 55 + [1] * 45)))[54:56]
    assert (low >> 9, high >> 9) == (0, 1)


def test_a_share_of_nulls_takes_its_share_of_the_ids() -> None:
    found = ids(pa.array([None] * 500 + list(range(500)), pa.int64()))
    assert set(found[:500]) == {0}
    assert min(found[500:]) > 500


@pytest.mark.parametrize("sample", [[], [None, None], [3]])
def test_a_sample_of_few_values_or_none_gives_ids(sample: list[int | None]) -> None:
    found = ids(pa.array([None, 1, 3, 5], pa.int64()), sample=pa.array(sample, pa.int64()))
    assert found[0] == 0 < found[1] <= found[2] <= found[3]


@pytest.mark.parametrize(
    "type_", [pa.struct([("x", pa.int32())]), pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32()), pa.month_day_nano_interval()]
)
def test_columns_without_an_order_are_refused_by_name(type_: pa.DataType) -> None:
    with pytest.raises(OptionError, match="column 'tags' of type") as caught:
        Ranges.of(pa.table({"tags": pa.nulls(1, type_)}), ["tags"])
    assert caught.value.context == {"column": "tags"}


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ([], "none is named"),
        (["nowhere"], "no such column; the columns are a, b, B"),
        (["a", "A"], "the column 'a' twice"),
        (["a.x"], "no such column"),
    ],
)
def test_names_that_do_not_name_columns_are_refused(columns: list[str], problem: str) -> None:
    table = pa.table([[1], [2], [3]], names=["a", "b", "B"])
    with pytest.raises(OptionError, match=problem):
        Ranges.of(table, columns)


def test_a_name_matches_in_any_case_unless_another_column_is_meant() -> None:
    table = pa.table([[1], [2], [3]], names=["a", "b", "B"])
    assert Ranges.of(table, ["A", "B"]).of_rows(table, ["a", "B"]).shape == (2, 1)
    with pytest.raises(OptionError, match="several columns have this name"):
        Ranges.of(pa.table([[1], [2]], names=["Bb", "bB"]), ["bb"])


def test_other_columns_than_those_of_the_sample_are_refused() -> None:
    ranges = Ranges.of(pa.table({"a": [1]}), ["a"])
    with pytest.raises(SchemaIncompatibleError, match="'b' has no ranges"):
        ranges.of_rows(pa.table({"b": [1]}), ["b"])
    with pytest.raises(SchemaIncompatibleError, match="'a' is string, and its ranges were made from int64"):
        ranges.of_rows(pa.table({"a": ["1"]}), ["a"])


@pytest.mark.parametrize("bits", [1, 17])
def test_bits_that_ids_cannot_have_are_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="2 to 16 bits"):
        Ranges.of(pa.table({"a": [1]}), ["a"], bits)


def test_ranges_are_sent_to_other_processes() -> None:
    table = pa.table({"a": ["x", None, "y"], "b": [1.5, NAN, None]})
    ranges = Ranges.of(table, ["a", "b"])
    there = pickle.loads(pickle.dumps(ranges))
    assert (there.of_rows(table, ["a", "b"]) == ranges.of_rows(table, ["a", "b"])).all()
