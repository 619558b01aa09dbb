"""Tables of many files, and upserts into them that are measured."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.scale.peaks import Peaks
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.write.create import TableSpec, create_table

Numbers = npt.NDArray[np.int64]

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64())])
NEW_KEYS = 10_000
_FIRST_NEW = 2**62
"""Numbers of stored keys are below it."""
_ROWS_AT_ONCE = 10_000_000
"""Rows of one bulk insert."""
_MEBIBYTE = 1024 * 1024
_ROW_BYTES = 24
"""What a writer reckons a row of `SCHEMA` to weigh."""


def fill(path: Path, table_type: str, version: int, files: int, rows: int, partitions: int) -> None:
    """Make a table of about so many files."""
    fill_at(LocalStorage(str(path)), table_type, version, files, rows, partitions)


def fill_at(storage: Storage, table_type: str, version: int, files: int, rows: int, partitions: int) -> None:
    """`fill` in any storage."""
    properties = {"hoodie.parquet.small.file.limit": "0", "hoodie.index.type": "GLOBAL_SIMPLE"}
    spec = TableSpec("t", SCHEMA, ["id"], [], ["part"], table_type, properties=properties, version=TableVersion(version))
    create_table(storage, spec)
    numbers, options = _numbers(files * rows), {"hoodie.parquet.max.file.size": str(rows * _ROW_BYTES)}
    for start in range(0, len(numbers), _ROWS_AT_ONCE):
        part = _rows(numbers[start : start + _ROWS_AT_ONCE], min(partitions, files))
        HoodieTable(storage).bulk_insert(part, options=options)


def _numbers(count: int) -> Numbers:
    """Numbers of the stored keys: those of a smaller count are the first ones of a larger."""
    return np.random.default_rng(1).integers(0, _FIRST_NEW, count)


def _rows(numbers: Numbers, partitions: int) -> pa.Table:
    keys, parts = np.char.mod("%016x", numbers), np.char.mod("p%03d", np.arange(len(numbers)) % partitions)
    return pa.table([pa.array(keys, pa.string()), pa.array(parts, pa.string()), pa.array(numbers)], schema=SCHEMA)


def build(path: Path, partitions: list[str]) -> tuple[float, float]:
    """Seconds of processor time, and MiB of memory at most that is no mapped file."""
    begin = time.process_time()
    with Peaks() as peaks:
        HoodieTable.open(str(path)).rebuild_metadata(partitions)
    return time.process_time() - begin, peaks.driver / _MEBIBYTE


def upserts(path: Path, kind: str, options: dict[str, str], repeats: int, partitions: int) -> tuple[float, float]:
    """Milliseconds of processor time: of the first upsert of this process, and the median of more."""
    with tempfile.TemporaryDirectory() as other:  # what a process does once is done there
        fill(Path(other) / "t", "cow", 9, 3, 10, 1)
        for number in range(3):
            HoodieTable.open(f"{other}/t").upsert(_rows(np.arange(number + 1), 1))
    taken = [_upsert(path, one, options) for one in batches(kind, repeats + 1, partitions)]
    return taken[0] * 1000, median(taken[1:]) * 1000


def batches(kind: str, count: int, partitions: int) -> Iterator[pa.Table]:
    """Batches of one stored row, in its partition of so many, or of new keys."""
    rng = np.random.default_rng(time.time_ns())
    for number in range(count):
        if kind == "one":
            row = _rows(_numbers(count), partitions).slice(number, 1)
            yield row.set_column(2, "n", pa.array([time.time_ns()]))
        else:
            yield _rows(rng.integers(_FIRST_NEW, 2**63, NEW_KEYS), 1)


def _upsert(path: Path, rows: pa.Table, options: dict[str, str]) -> float:
    begin = time.process_time()
    HoodieTable.open(str(path)).upsert(rows, options=options)
    return time.process_time() - begin
