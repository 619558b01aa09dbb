from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import OptionError
from lakehouse_engine.sorting import rows
from lakehouse_engine.sorting.layout import SortLayout
from lakehouse_engine.sorting.ranges import Ranges
from lakehouse_engine.sorting.rows import curve_keys, sample_of, sort_order, sort_rows
from tests.unit.sorting.test_ranges import ASCENDING, NAN

FILES = 64


def spark_order(value: Any) -> tuple[Any, ...]:
    """Null, then numbers, then NaN."""
    if value is None:
        return (0,)
    return (2,) if value != value else (1, value)


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.sampled_from([-1.5, -0.0, 0.0, 2.0, NAN, float("inf")])),
            st.one_of(st.none(), st.sampled_from(["", "a", "aa", "b"])),
        ),
        max_size=60,
    )
)
def test_linear_is_the_order_by_of_spark_and_leaves_equal_rows_as_they_are(pairs: list[tuple[float | None, str | None]]) -> None:
    table = pa.table({"x": pa.array([x for x, _ in pairs], pa.float64()), "y": pa.array([y for _, y in pairs], pa.string())})
    expected = sorted(range(len(pairs)), key=lambda row: (spark_order(pairs[row][0]), spark_order(pairs[row][1])))
    assert list(sort_order(table, ["x", "y"], SortLayout.LINEAR)) == expected


@pytest.mark.parametrize("layout", SortLayout)
@pytest.mark.parametrize("kind", ASCENDING)
def test_by_one_column_every_layout_gives_the_order_of_its_type(kind: str, layout: SortLayout) -> None:
    type_, values = ASCENDING[kind]
    ascending = pa.array([None, *values], type_)
    shuffled = np.random.default_rng(3).permutation(len(ascending))
    table = pa.table({"v": ascending.take(pa.array(shuffled)), "place": shuffled})
    result = sort_rows(table, ["v"], layout)
    assert result.column("place").to_pylist() == list(range(len(ascending)))
    assert result.schema == table.schema


@pytest.mark.parametrize("layout", SortLayout)
def test_rows_stay_whole_and_none_is_lost(layout: SortLayout) -> None:
    numbers = np.random.default_rng(1).permutation(5000)
    whole = pa.table(
        {
            "id": numbers,
            "text": pa.array([None if number % 7 == 0 else f"t{number % 100}" for number in numbers]).dictionary_encode(),
            "amount": pa.array([Decimal(int(number)) / 100 for number in numbers], pa.decimal128(20, 2)),
            "deep": pa.array([{"of": [int(number)]} for number in numbers]),
        },
        metadata={"kept": "yes"},
    )
    table = pa.concat_tables([whole.slice(0, 1234), whole.slice(1234)])
    result = sort_rows(table, ["text", "amount"], layout)
    assert result.schema.equals(table.schema, check_metadata=True)
    assert result.sort_by("id") == whole.sort_by("id")
    assert result.column("id").to_pylist() != whole.column("id").to_pylist()


@pytest.mark.parametrize("layout", SortLayout)
def test_a_table_without_rows_stays_one(layout: SortLayout) -> None:
    table = pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())})
    assert sort_rows(table, ["a", "b"], layout) == table


def test_text_above_the_size_of_a_chunk_comes_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_CHUNK_BYTES", 1000)
    texts = [None if number % 10 == 0 else f"{number:05d}" * (number % 5) for number in range(2000)]
    table = pa.table({"id": range(2000, 0, -1), "text": texts, "raw": pa.array(texts, pa.string()).cast(pa.binary())})
    result = sort_rows(table, ["id"], SortLayout.LINEAR)
    assert result.column("text").to_pylist() == texts[::-1]
    assert result.column("text").num_chunks > 10
    assert result.schema == table.schema


def test_keys_sort_as_the_rows_do() -> None:
    generator = np.random.default_rng(2)
    table = pa.table({"a": generator.integers(0, 1000, 3000), "b": generator.random(3000)})
    ranges = Ranges.of(sample_of(table), ["a", "b"])
    for layout in (SortLayout.Z_ORDER, SortLayout.HILBERT):
        keys = curve_keys(table, ["a", "b"], layout, ranges)
        assert keys.type == pa.uint64()
        assert (np.argsort(np.asarray(keys), kind="stable") == sort_order(table, ["a", "b"], layout)).all()


@pytest.mark.parametrize("layout", SortLayout)
def test_keys_of_many_columns_are_binary_and_sort_alike(layout: SortLayout) -> None:
    generator = np.random.default_rng(2)
    names = [f"c{number}" for number in range(9)]
    table = pa.table({name: generator.integers(0, 50, 2000) for name in names})
    keys = curve_keys(table, names, layout, Ranges.of(table, names))
    assert keys.type == pa.binary(16)
    by_bytes = sorted(range(2000), key=lambda row: keys[row].as_py())
    by_words = sort_rows(table, names, layout)
    if layout is not SortLayout.LINEAR:  # by values, which ranges are coarser than
        assert table.take(pa.array(by_bytes)) == by_words
    else:
        assert table.take(pa.array(by_bytes)).column("c0") == by_words.column("c0")


def test_a_sample_is_the_same_each_time_and_spread_over_the_table() -> None:
    table = pa.table({"n": range(300_000)})
    sample = sample_of(table, 1000)
    assert sample == sample_of(table, 1000)
    assert 900 < sample.num_rows <= 1000
    places = np.asarray(sample.column("n"))
    assert np.bincount(places // 30_000, minlength=10).min() > 60
    assert sample_of(table.slice(0, 1000), 1000).num_rows == 1000


def test_columns_that_cannot_be_ordered_by_are_refused() -> None:
    with pytest.raises(OptionError, match="'tags' of type list"):
        sort_rows(pa.table({"tags": [[1]]}), ["tags"], SortLayout.LINEAR)


def share_opened(table: pa.Table, column: str, layout: SortLayout) -> float:
    """The mean share of 64 files of equal size that could hold a value, by their min and max."""
    values = np.asarray(sort_rows(table, ["x", "y"], layout).column(column)).reshape(FILES, -1)
    low, high = values.min(axis=1)[:, None], values.max(axis=1)[:, None]
    asked = np.quantile(values, np.linspace(0.005, 0.995, 400))
    return float(((low <= asked) & (asked <= high)).mean())


@pytest.mark.parametrize("distribution", ["uniform", "skewed"])
def test_each_of_two_columns_opens_the_root_of_the_files_along_a_curve(distribution: str) -> None:
    """An equality on one column of a grid of 8 by 8 files opens 8, one part of 8. Sorted by one column, the other opens all.

    Files end where the grid does but for some rows. Along the Hilbert curve those are in a neighbouring cell; along the Z-order curve
    they may be far, so that a file is two cells wide or more.
    """
    generator = np.random.default_rng(7)
    draw = generator.random if distribution == "uniform" else lambda rows: generator.exponential(1.0, rows) ** 3
    table = pa.table({"x": draw(FILES * 2000), "y": draw(FILES * 2000)})
    for layout, most in ((SortLayout.Z_ORDER, 2.0), (SortLayout.HILBERT, 1.3)):
        for column in ("x", "y"):
            assert 1 / 8 <= share_opened(table, column, layout) < most / 8, (layout, column)
    assert share_opened(table, "x", SortLayout.LINEAR) < 1.1 / 64
    assert share_opened(table, "y", SortLayout.LINEAR) > 0.95


def test_a_column_of_few_values_is_cut_too() -> None:
    """Into its four values; the other column gets the rest of the cuts."""
    generator = np.random.default_rng(7)
    table = pa.table({"x": generator.random(FILES * 2000), "y": generator.choice([0.0, 1.0, 2.0, 3.0], FILES * 2000)})
    for layout in (SortLayout.Z_ORDER, SortLayout.HILBERT):
        assert share_opened(table, "y", layout) < 0.36, layout
        assert share_opened(table, "x", layout) < 0.12, layout
