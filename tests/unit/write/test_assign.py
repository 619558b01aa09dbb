"""Which file takes a new record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.write.plan.assign import SizedFile, assign_inserts, average_record_size, split_evenly
from tests.support.table_builder import TableBuilder, rich_row


def sized(name: str, size: int, rows: int = 10) -> SizedFile:
    return SizedFile(BaseFile("", f"{name}-0", "0-0-0", "20260101000000000", size=size), rows, size)


def test_the_smallest_file_is_filled_first_and_the_rest_goes_to_new_groups() -> None:
    options = WriteOptions(small_file_limit=100, max_file_size=120)
    rows = np.arange(40)
    given_files = [sized("b", 90), sized("a", 60), sized("full", 100)]
    assignment = assign_inserts(rows, given_files, 10.0, options)
    assert [(base.file_id, list(part)) for base, part in assignment.to_files] == [("a-0", list(range(6))), ("b-0", [6, 7, 8])]
    assert [len(part) for part in assignment.to_new] == [10, 10, 11]


def test_a_limit_of_zero_leaves_every_file_alone() -> None:
    assignment = assign_inserts(np.arange(3), [sized("a", 1)], 1.0, WriteOptions(small_file_limit=0))
    assert not assignment.to_files
    assert [list(part) for part in assignment.to_new] == [[0, 1, 2]]


@given(
    st.integers(0, 300),
    st.lists(st.integers(1, 200), max_size=5),
    st.floats(0.5, 50),
    st.integers(0, 150),
    st.integers(1, 200),
)
def test_every_row_is_assigned_once_and_within_the_room(count: int, sizes: list[int], per_row: float, limit: int, most: int) -> None:
    files = [sized(f"f{number}", size) for number, size in enumerate(sizes)]
    assignment = assign_inserts(np.arange(count), files, per_row, WriteOptions(small_file_limit=limit, max_file_size=most))
    parts = [part for _, part in assignment.to_files] + list(assignment.to_new)
    assert np.array_equal(np.concatenate([np.empty(0, np.int64), *parts]), np.arange(count))
    for base, part in assignment.to_files:
        assert base.size < limit
        assert base.size + len(part) * per_row <= most
    for part in assignment.to_new:
        assert 0 < len(part) <= max(1, int(most / per_row))


def test_pieces_are_as_equal_as_they_can_be() -> None:
    assert [len(piece) for piece in split_evenly(np.arange(10), 4)] == [3, 3, 4]
    assert list(split_evenly(np.arange(0), 4)) == []


def test_the_size_of_a_record_comes_from_files_that_have_enough_of_them() -> None:
    assert average_record_size([sized("a", 5000, 2000), sized("b", 9999, 3)], lambda: 7) == 2.5
    assert average_record_size([sized("b", 30, 3)], lambda: 7) == 10
    assert average_record_size([sized("c", 30, 0)], lambda: 7) == 7


@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_new_records_fill_the_small_file_and_touch_no_large_one(operation: str, tmp_path: Path) -> None:
    built = TableBuilder.create(tmp_path / "t")
    built.bulk_insert([rich_row(number) for number in range(5)])
    result = getattr(built, operation)([rich_row(number) for number in range(5, 9)])
    assert (result.files_created, result.files_updated, result.inserts) == (0, 1, 4)
    built.options["hoodie.parquet.small.file.limit"] = 10
    result = getattr(built, operation)([rich_row(number) for number in range(20, 24)])
    assert (result.files_created, result.files_updated) == (1, 0)
    built.check()
