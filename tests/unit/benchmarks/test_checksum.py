from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.checksum import Checksum, checksum_of, row_hashes

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("i", pa.int64()),
        ("d", pa.float64()),
        ("m", pa.decimal128(18, 2)),
        ("t", pa.timestamp("us", tz="UTC")),
        ("b", pa.bool_()),
    ]
)
MOMENTS = st.integers(0, 2**52).map(lambda micros: dt.datetime.fromtimestamp(0, dt.timezone.utc) + dt.timedelta(microseconds=micros))
ROWS = st.lists(
    st.tuples(
        st.none() | st.text(max_size=12),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(allow_nan=False),
        st.none() | st.decimals(-10000, 10000, places=2),
        st.none() | MOMENTS,
        st.none() | st.booleans(),
    ),
    max_size=20,
)


def table_of(rows: list[tuple[object, ...]]) -> pa.Table:
    return pa.table([[row[column] for row in rows] for column in range(len(SCHEMA))], schema=SCHEMA)


@settings(deadline=None, max_examples=60)
@given(ROWS, st.randoms(use_true_random=False), st.integers(0, 20))
def test_order_and_split_of_rows_do_not_matter(rows, random, cut):
    shuffled = list(rows)
    random.shuffle(shuffled)
    parts = [table_of(shuffled[:cut]), table_of(shuffled[cut:])]
    assert checksum_of(parts, SCHEMA) == checksum_of([table_of(rows)], SCHEMA)


@settings(deadline=None, max_examples=60)
@given(ROWS, ROWS)
def test_checksums_of_different_rows_differ(left, right):
    same = sorted(map(repr, _comparable(left))) == sorted(map(repr, _comparable(right)))
    assert (checksum_of([table_of(left)], SCHEMA) == checksum_of([table_of(right)], SCHEMA)) is same


def _comparable(rows):
    return [tuple(value + 0.0 if isinstance(value, float) else value for value in row) for row in rows]


@pytest.mark.parametrize(
    "changed",
    [
        [("b", 1), ("a", 2)],
        [("a", 2), ("b", 1)],
        [("a", 1), ("b", 2), ("b", 2)],
        [("a", 1)],
        [("a", 1), ("b", None)],
        [("", 1), ("ab", 2)],
        [("a", 1), ("b\0", 2)],
    ],
)
def test_swapped_doubled_lost_and_moved_values_are_seen(changed):
    schema = pa.schema([("k", pa.string()), ("v", pa.int64())])
    table = pa.table([[row[0] for row in changed], [row[1] for row in changed]], schema=schema)
    expected = checksum_of([pa.table([["a", "b"], [1, 2]], schema=schema)], schema)
    assert (checksum_of([table], schema) == expected) is (changed == [("a", 1), ("b", 2)])
    assert checksum_of([table], schema) != expected


def test_sliced_columns_hash_like_whole_ones():
    rows = [("x" * number, number, number / 4, Decimal(number), None, number % 2 == 0) for number in range(50)]
    whole = row_hashes(table_of(rows), SCHEMA)
    assert np.array_equal(row_hashes(table_of(rows).slice(7, 20), SCHEMA), whole[7:27])


def test_other_types_of_the_same_values_hash_alike_after_the_cast():
    schema = pa.schema([("s", pa.string()), ("n", pa.int64())])
    plain = pa.table({"s": ["a", None, "c"], "n": pa.array([1, 2, 3], pa.int64())})
    other = pa.table({"n": pa.array([1, 2, 3], pa.int32()), "s": pa.array(["a", None, "c"]).dictionary_encode(), "_hoodie_x": ["", "", ""]})
    assert checksum_of([other], schema) == checksum_of([plain], schema)


def test_rows_taken_out_and_put_in_give_the_checksum_of_the_result():
    schema = pa.schema([("n", pa.int64())])
    whole, old, new = (checksum_of([pa.table({"n": values})], schema) for values in ([1, 2, 3], [2], [9]))
    assert whole - old + new == checksum_of([pa.table({"n": [9, 3, 1]})], schema)


def test_a_missing_column_is_refused_by_name():
    with pytest.raises(KeyError, match="absent"):
        row_hashes(pa.table({"n": [1]}), pa.schema([("absent", pa.int64())]))


def test_no_rows_have_the_empty_checksum():
    assert checksum_of([], SCHEMA) == checksum_of([SCHEMA.empty_table()], SCHEMA) == Checksum()
