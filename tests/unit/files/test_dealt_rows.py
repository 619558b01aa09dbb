from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_engine.files.dealt_rows import DealtRows
from lakehouse_engine.files.row_pool import SpillTo
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.memory import MemoryStorage

SCHEMA = pa.schema([("n", pa.int64()), ("t", pa.dictionary(pa.int32(), pa.string()))])
PARTS = 3


def rows(numbers: list[int]) -> pa.Table:
    texts = pa.array([f"text {number // 2}" for number in numbers]).dictionary_encode()
    return pa.table([pa.array(numbers), texts], schema=SCHEMA)


@pytest.fixture(params=["disk", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return LocalStorage(str(tmp_path)) if request.param == "disk" else MemoryStorage()


@pytest.mark.parametrize("limit", [0, 100, 10**9])
def test_a_part_has_its_rows_in_the_order_in_which_they_came(storage: Storage, limit: int) -> None:
    dealt = DealtRows(SCHEMA, PARTS, SpillTo(storage, "spill", limit))
    given = [rows([5, 4, 3]), rows([]), rows([11, 10, 9, 8]), rows([2]), rows([])]
    for table in given:
        dealt.add(table, np.asarray(table.column("n")) % PARTS)
    every = [number for table in given for number in table.column("n").to_pylist()]
    for part in range(PARTS):
        own = [number for number in every if number % PARTS == part]
        assert dealt.part(part).to_pylist() == rows(own).to_pylist()
        assert dealt.rows_of(part) == len(own)
    assert bool(storage.walk("spill")) is (limit < 10**9)


def test_without_rows_all_parts_are_empty() -> None:
    dealt = DealtRows(SCHEMA, PARTS, SpillTo(MemoryStorage(), "spill", 0))
    assert [dealt.part(part).num_rows for part in range(PARTS)] == [0] * PARTS
    assert dealt.part(0).schema == SCHEMA


def test_a_file_has_one_batch_for_all_parts(storage: Storage) -> None:
    dealt = DealtRows(SCHEMA, PARTS, SpillTo(storage, "spill", 100))
    for first in (0, 100, 200):
        table = rows(list(range(first, first + 90)))
        dealt.add(table, np.asarray(table.column("n")) % PARTS)
    files = [entry.path for entry in storage.walk("spill")]
    assert len(files) == 3
    assert [pa.ipc.open_file(pa.py_buffer(storage.read(path))).num_record_batches for path in files] == [1, 1, 1]
