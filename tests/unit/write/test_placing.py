"""New records go into small files by the size of their records, not by that of what a file has once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse

SCHEMA = pa.schema([("id", pa.int64())])
LARGE_FILTER = {"hoodie.bloom.index.filter.type": "DYNAMIC_V0", "hoodie.index.bloom.num_entries": 60_000}
"""Tens of kilobytes of Bloom filter in each file, however few rows it has."""


def ids(first: int, count: int) -> pa.Table:
    return pa.table({"id": range(first, first + count)}, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    options = {"hoodie.parquet.max.file.size": 1_000_000, "hoodie.parquet.small.file.limit": 900_000}
    made = Lakehouse(str(tmp_path), options={**options, **LARGE_FILTER}).create_table("s.t", schema=SCHEMA, record_key=["id"])
    made.insert(ids(0, 2))
    return made


def test_a_file_of_which_most_is_its_bloom_filter_takes_many_records(table: HoodieTable) -> None:
    (before,) = table.state.view.latest_slices()
    assert before.size > 40_000
    result = table.insert(ids(2, 100))
    assert (result.files_created, result.files_updated) == (0, 1)
    (after,) = table.state.view.latest_slices()
    assert after.file_id == before.file_id
    assert table.to_arrow().num_rows == 102
