from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import SchemaIncompatibleError
from lakehouse_engine.record.merging.ordering import incoming_wins, last_values_per_key, latest_per_key, ranks

# Each row of values ascends strictly.
ASCENDING = [
    pa.array([None, -5, 0, 2**31 - 1], pa.int32()),
    pa.array([None, -(2**63), -1, 2**63 - 1], pa.int64()),
    pa.array([None, -math.inf, -1.5, -0.0, 0.0, 5e-324, 2.0, math.inf, math.nan]),
    pa.array([None, -1.5, 0.0, 2.0, math.nan], pa.float32()),
    pa.array([None, "", "Z", "a", "ab", "é", "\uffee", "🦆"]),
    pa.array([None, dt.date(1582, 1, 1), dt.date(2024, 1, 1)]),
    pa.array([None, -1, 0, 1709209815123456], pa.timestamp("us", "UTC")),
    pa.array([None, Decimal("-1.50"), Decimal("0.00"), Decimal("1e20")], pa.decimal128(38, 2)),
    pa.array([None, False, True]),
]


@pytest.mark.parametrize("values", ASCENDING, ids=lambda values: str(values.type))
def test_higher_value_wins_in_every_type(values: pa.Array) -> None:
    count = len(values)
    left, right = np.divmod(np.arange(count * count), count)
    wins = incoming_wins([values.take(left)], [values.take(right)])
    assert wins.tolist() == [bool(i <= j) for i, j in zip(left, right, strict=True)]
    for order in (range(count), reversed(range(count))):
        shuffled = values.take(pa.array(list(order)))
        kept = latest_per_key(pa.array(["k"] * count), [shuffled])
        assert shuffled.take(kept).equals(values.slice(count - 1)) or math.isnan(shuffled.take(kept)[0].as_py())


@pytest.mark.parametrize(
    "values", [*ASCENDING, *(values.drop_null() for values in ASCENDING)], ids=lambda values: f"{len(values)} {values.type}"
)
def test_ranks_compare_as_the_values_do(values: pa.Array) -> None:
    at = np.random.default_rng(3).integers(0, len(values), 50)
    found = ranks([values.take(pa.array(at))], len(at))
    assert found.dtype == np.int64
    assert (np.sign(np.subtract.outer(found.astype(object), found.astype(object))) == np.sign(np.subtract.outer(at, at))).all()
    both = ranks([values.take(pa.array(at)), pa.array(range(len(at)))], len(at))
    assert np.argsort(both).tolist() == np.lexsort((np.arange(len(at)), at)).tolist()


def test_distinct_keys_are_all_kept_in_order() -> None:
    assert latest_per_key(pa.array(["b", "a", None]), [pa.array([1, 2, 3])]).tolist() == [0, 1, 2]


def test_last_row_of_a_key_is_kept_without_ordering_and_among_equals() -> None:
    keys = pa.chunked_array([["a", "b"], ["a", "c", "b", "a"]])
    assert latest_per_key(keys, []).tolist() == [3, 4, 5]
    assert latest_per_key(keys, [pa.array([1, 5, 1, 1, 4, 1])]).tolist() == [1, 3, 5]


def test_second_field_decides_where_the_first_is_equal() -> None:
    keys = pa.array(["a"] * 4)
    first, second = pa.array([1, 2, 2, None]), pa.array(["z", "x", None, "y"])
    assert latest_per_key(keys, [first, second]).tolist() == [1]
    base = [pa.array([1, 1, None, 2]), pa.array(["b", "b", "a", None])]
    incoming = [pa.array([1, 1, None, 2]), pa.array(["b", "a", "b", None])]
    assert incoming_wins(base, incoming).tolist() == [True, False, True, True]


def test_null_stored_value_loses_and_null_incoming_value_loses_to_a_value() -> None:
    assert incoming_wins([pa.array([None, 1, None], pa.int64())], [pa.array([1, None, None], pa.int64())]).tolist() == [True, False, True]


def test_ordering_types_must_agree() -> None:
    with pytest.raises(SchemaIncompatibleError, match=r"int64.*string"):
        incoming_wins([pa.array([1])], [pa.array(["1"])])


def java_order(value: float | None) -> tuple[int, ...]:
    if value is None:
        return (0, 0)
    bits = struct.unpack(">q", struct.pack(">d", math.nan if math.isnan(value) else value))[0]
    return (2, 0) if math.isnan(value) else (1, bits if bits >= 0 else -(2**63) - bits - 1)


ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.none() | st.integers(-2, 2), st.none() | st.sampled_from([0.0, -0.0, 1.5, math.nan, -math.inf])),
    max_size=12,
)


@given(ROWS)
def test_latest_rows_are_those_of_a_plain_search(rows: list[tuple[str, int | None, float | None]]) -> None:
    best: dict[str, int] = {}
    for number, row in enumerate(rows):
        rank = [((row[1] is not None), row[1] or 0), java_order(row[2])]
        other = rows[best[row[0]]] if row[0] in best else None
        if other is None or rank >= [((other[1] is not None), other[1] or 0), java_order(other[2])]:
            best[row[0]] = number
    keys, first, second = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    kept = latest_per_key(pa.array(keys, pa.string()), [pa.array(first, pa.int64()), pa.array(second, pa.float64())])
    assert kept.tolist() == sorted(best.values())


def test_last_values_fill_nulls_in_order_of_the_ordering_field() -> None:
    batch = pa.table(
        {
            "id": ["a", "b", "a", "a", "c", "c"],
            "ts": [2, 1, 3, 1, 1, 1],
            "x": ["new", "only", None, "old", None, None],
            "y": [None, None, [1], [2], None, [3]],
        }
    )
    rows, sources = last_values_per_key(batch, batch.column("id"), [batch.column("ts")])
    assert sources.tolist() == [1, 2, 5]
    assert rows.to_pylist() == [
        {"id": "b", "ts": 1, "x": "only", "y": None},
        {"id": "a", "ts": 3, "x": "new", "y": [1]},
        {"id": "c", "ts": 1, "x": None, "y": [3]},
    ]
