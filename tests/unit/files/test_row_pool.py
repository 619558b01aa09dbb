"""Rows of many blocks: each is measured once, and those above the limit go to files."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa

from lakehouse_engine.files.row_pool import RowPool, SpillTo
from lakehouse_engine.storage.memory import MemoryStorage

SCHEMA = pa.schema([("id", pa.int64())])


class Measured:
    """Rows that count how often they are asked for their size."""

    asked = 0

    @property
    def nbytes(self) -> int:
        Measured.asked += 1
        return 8


def test_what_is_held_is_not_measured_again_with_each_block() -> None:
    pool = RowPool(SCHEMA, SpillTo(MemoryStorage(), "spilled", 1_000_000))
    for _ in range(300):
        pool.add(cast("Any", Measured()))
    assert Measured.asked == 300


def test_rows_above_the_limit_are_in_files_in_their_order() -> None:
    storage = MemoryStorage()
    pool = RowPool(SCHEMA, SpillTo(storage, "spilled", 100))
    for number in range(40):
        pool.add(pa.table({"id": [number]}, schema=SCHEMA))
    assert pool.table()["id"].to_pylist() == list(range(40))
    # 13 rows of 8 bytes are more than 100.
    assert len(storage.list("spilled")) == 3
