from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import OptionError
from lakehouse_engine.sorting import parts
from lakehouse_engine.sorting.layout import SortLayout
from lakehouse_engine.sorting.parts import SortParts
from lakehouse_engine.sorting.rows import sort_order
from tests.unit.sorting.test_ranges import ASCENDING, NAN

PAIRS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.sampled_from([-1.5, -0.0, 0.0, 2.0, NAN, float("inf")])),
        st.one_of(st.none(), st.sampled_from(["", "a", "aa", "b"])),
    ),
    max_size=60,
)


def by_parts(cut: SortParts, rows: pa.Table) -> list[int]:
    """Row numbers, part by part, each in its order."""
    numbers = cut.numbers(rows)
    found: list[int] = []
    for number in range(cut.count):
        own = np.flatnonzero(numbers == number)
        found += list(own[cut.order(rows.take(pa.array(own)))])
    return found


@given(PAIRS, st.integers(1, 7), st.integers(0, 60))
def test_parts_one_after_the_other_are_the_order_of_all_rows(pairs: list[Any], count: int, sampled: int) -> None:
    rows = pa.table({"x": pa.array([x for x, _ in pairs], pa.float64()), "y": pa.array([y for _, y in pairs], pa.string())})
    cut = SortParts.of(rows.slice(0, sampled), ["x", "y"], SortLayout.LINEAR, count)
    assert cut.count <= count
    assert by_parts(cut, rows) == list(sort_order(rows, ["x", "y"], SortLayout.LINEAR))


@pytest.mark.parametrize("kind", ASCENDING)
def test_parts_of_each_type_are_in_its_order(kind: str) -> None:
    type_, values = ASCENDING[kind]
    ascending = pa.array([None, *values], type_)
    shuffled = np.random.default_rng(3).permutation(len(ascending))
    rows = pa.table({"v": ascending.take(pa.array(shuffled)), "place": shuffled})
    cut = SortParts.of(rows, ["V"], SortLayout.HILBERT, 3)
    assert rows.take(pa.array(by_parts(cut, rows))).column("place").to_pylist() == list(range(len(ascending)))


@pytest.mark.parametrize("layout", [SortLayout.Z_ORDER, SortLayout.HILBERT])
def test_along_a_curve_parts_are_alike_and_in_its_order(layout: SortLayout) -> None:
    chance = np.random.default_rng(7)
    rows = pa.table({"a": chance.integers(0, 1000, 20_000), "b": pa.array(chance.integers(0, 10**6, 20_000)).cast(pa.string())})
    cut = SortParts.of(rows, ["a", "b"], layout, 16)
    assert by_parts(cut, rows) == list(sort_order(rows, ["a", "b"], layout))
    sizes = np.bincount(cut.numbers(rows), minlength=16)
    assert sizes.min() > 0.9 * 20_000 / 16
    assert sizes.max() < 1.1 * 20_000 / 16


def test_of_a_curve_through_many_columns_every_word_of_the_key_counts() -> None:
    chance = np.random.default_rng(7)
    rows = pa.table({str(number): chance.integers(0, 9, 3000) for number in range(8)})
    names = list(rows.column_names)
    cut = SortParts.of(rows, names, SortLayout.Z_ORDER, 10)
    assert len(cut.cuts) == 2
    assert by_parts(cut, rows) == list(sort_order(rows, names, SortLayout.Z_ORDER))


def test_columns_that_no_number_has_room_for_cut_no_finer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_MOST", 100)
    chance = np.random.default_rng(7)
    rows = pa.table({name: chance.integers(0, 9, 500) for name in "abc"})
    cut = SortParts.of(rows, ["a", "b", "c"], SortLayout.LINEAR, 8)
    assert by_parts(cut, rows) == list(sort_order(rows, ["a", "b", "c"], SortLayout.LINEAR))


def test_equal_rows_are_in_one_part() -> None:
    rows = pa.table({"a": [5] * 90 + list(range(10))})
    cut = SortParts.of(rows, ["a"], SortLayout.LINEAR, 4)
    assert len(set(cut.numbers(rows)[:90])) == 1


def test_rows_without_a_sample_are_one_part() -> None:
    rows = pa.table({"a": [3, 1, 2]})
    cut = SortParts.of(rows.slice(0, 0), ["a"], SortLayout.LINEAR, 4)
    assert (cut.count, list(cut.numbers(rows)), list(cut.order(rows))) == (1, [0, 0, 0], [1, 2, 0])


def test_columns_without_an_order_are_refused() -> None:
    with pytest.raises(OptionError, match="there is no such column"):
        SortParts.of(pa.table({"a": [1]}), ["b"], SortLayout.LINEAR, 2)
