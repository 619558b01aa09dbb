"""Statistics of many files of a partition, merged into one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_engine.format.metadata_table import statistics
from lakehouse_engine.format.metadata_table.payload import STATS
from lakehouse_engine.format.metadata_table.statistics import COUNTS, fold_stats, merge_stats, stats_payloads

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 9) | st.none(), st.integers(0, 9), st.sampled_from("....dt")), max_size=25)


def stats_of(rows: list[tuple[int, int | None, int, str]]) -> pa.Array:
    """Statistics of one file in turns; `d` marks a deletion, and `t` tight bounds."""
    least = pa.array([low for _, low, _, _ in rows], pa.int64())
    greatest = pa.array([None if low is None else low + more for _, low, more, _ in rows], pa.int64())
    counts = pa.table([pa.array([more for _, _, more, _ in rows], pa.int64())] * 4, names=COUNTS)
    table = stats_payloads(pa.array(["f"] * len(rows), pa.string()), "x", least, greatest, counts, by_value_type=True)
    stats = table.column(STATS).combine_chunks()
    marks = {"isDeleted": "d", "isTightBound": "t"}
    marked = {name: pa.array([row[3] == mark for row in rows]) for name, mark in marks.items()}
    children = [marked.get(field.name, stats.field(field.name)) for field in stats.type]
    return pa.StructArray.from_arrays(children, fields=list(stats.type))


@settings(max_examples=60, deadline=None)
@given(ROWS, st.booleans())
def test_statistics_are_merged_as_one_after_the_other(rows: list[tuple[int, int | None, int, str]], marked: bool) -> None:
    rows = [(0, 1, 1, "."), (1, 1, 1, "."), (2, 1, 1, "."), (3, 1, 1, "."), *rows]  # each code has some
    rows = rows if marked else [(*row[:3], ".") for row in rows]
    stats, codes = stats_of(rows), np.array([row[0] for row in rows])
    expected = []
    for code in range(4):
        places = np.flatnonzero(codes == code)
        one = stats.slice(int(places[0]), 1)
        for place in places[1:]:
            one = merge_stats(one, stats.slice(int(place), 1))
        expected += one.to_pylist()
    assert fold_stats(codes, 4, stats).to_pylist() == expected


def test_the_number_of_steps_does_not_grow_with_the_number_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []

    def counted(older: pa.Array, newer: pa.Array) -> pa.Array:
        steps.append(len(newer))
        return merge_stats(older, newer)

    monkeypatch.setattr(statistics, "merge_stats", counted)
    (whole,) = fold_stats(np.zeros(1000, np.int64), 1, stats_of([(0, number, 1, ".") for number in range(1000)])).to_pylist()
    assert len(steps) == 10
    assert whole["valueCount"] == 1000
