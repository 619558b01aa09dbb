"""The comparison sees what matters, and only that."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.support.readers import assert_same_rows, first_difference, user_columns

NAN = float("nan")


def table(**columns: pa.Array) -> pa.Table:
    return pa.table(columns)


def test_order_of_rows_and_columns_does_not_matter() -> None:
    a = table(_hoodie_record_key=pa.array(["a", "b"]), v=pa.array([1, 2]))
    b = table(v=pa.array([2, 1]), _hoodie_record_key=pa.array(["b", "a"]))
    assert_same_rows(a, b)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (pa.array(["x", None], pa.large_string()), pa.array(["x", None])),
        (pa.array(["x", "y"]).dictionary_encode(), pa.array(["x", "y"])),
        (pa.array([b"x"], pa.large_binary()), pa.array([b"x"])),
        (pa.array([NAN, 1.0, None]), pa.array([NAN, 1.0, None])),
        (pa.array([[NAN], [], None]), pa.array([[NAN], [], None], pa.large_list(pa.field("array", pa.float64())))),
        (pa.array([0], pa.timestamp("us", tz="UTC")), pa.array([0], pa.timestamp("ns", tz="Etc/UTC"))),
        (pa.array([{"a": 1}], pa.struct({"a": pa.int32()})), pa.array([{"a": 1}], pa.struct([pa.field("a", pa.int32(), nullable=False)]))),
        (pa.array([[("k", 1), ("l", None)]], pa.map_("string", "int32")), pa.array([[("l", None), ("k", 1)]], pa.map_("string", "int32"))),
        (pa.nulls(2), pa.nulls(2)),
        (pa.array([-0.0]), pa.array([0.0])),
    ],
)
def test_forms_that_mean_the_same_are_the_same(ours: pa.Array, theirs: pa.Array) -> None:
    assert_same_rows(table(c=ours), table(c=theirs))


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        (pa.array([1], pa.int32()), pa.array([1], pa.int64()), "actual type int32, expected type int64"),
        (pa.array([Decimal("1.00")], pa.decimal128(10, 2)), pa.array([Decimal("1.00")], pa.decimal128(12, 2)), "decimal128"),
        (pa.array([0], pa.timestamp("us")), pa.array([0], pa.timestamp("us", tz="UTC")), "tz=UTC"),
        (pa.array([None, 1]), pa.array([0, 1]), "actual"),
        (pa.array([NAN]), pa.array([None], pa.float64()), "actual nan, expected None"),
        (pa.array([1, 1, 2]), pa.array([1, 2, 2]), "actual 1, expected 2"),
        (pa.array([[1, None]]), pa.array([[1]]), "actual [1, None], expected [1]"),
        (pa.array([[1]]), pa.array([[1], [2]]), "actual has 1 rows, expected 2"),
        (pa.array([[("k", 1)]], pa.map_("string", "int32")), pa.array([[("k", 2)]], pa.map_("string", "int32")), "('k', 2)"),
        (pa.array([dt.date(1, 1, 1)]), pa.array([dt.date(9999, 12, 31)]), "datetime.date(1, 1, 1)"),
    ],
)
def test_a_difference_is_named(ours: pa.Array, theirs: pa.Array, words: str) -> None:
    with pytest.raises(AssertionError) as raised:
        assert_same_rows(table(c=ours), table(c=theirs))
    assert words in str(raised.value)
    assert "column 'c'" in str(raised.value) or "rows" in str(raised.value)


def test_missing_and_unexpected_columns_are_named() -> None:
    found = first_difference(table(a=pa.array([1]), b=pa.array([1])), table(a=pa.array([1]), c=pa.array([1])))
    assert found == "columns differ: missing ['c'], unexpected ['b']"


def test_a_missing_row_is_shown() -> None:
    ours, theirs = (table(_hoodie_record_key=pa.array(keys)) for keys in (["a", "c"], ["a", "b", "c"]))
    found = first_difference(ours, theirs)
    assert found is not None
    assert "first row apart in expected: {'_hoodie_record_key': 'b'}" in found


def test_ignored_columns_are_not_compared() -> None:
    a, b = (table(k=pa.array(["a"]), _hoodie_commit_time=pa.array([time])) for time in ("1", "2"))
    assert_same_rows(a, b, ignore=["_hoodie_commit_time"])
    assert user_columns(a).column_names == ["k"]


def test_duplicates_are_counted() -> None:
    assert first_difference(table(k=pa.array(["a", "a", "b"])), table(k=pa.array(["a", "b", "b"]))) is not None
