"""Clusters a large table of ours whose rows do not fit into the memory that a task may take for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.client import REPOSITORY
from benchmarks.clustering.data import COLUMNS, batch
from benchmarks.memory import MemorySampler
from benchmarks.scale.peaks import Peaks, cpu_seconds
from lakehouse_engine import HoodieTable, Lakehouse

_FILE_ROWS = 500_000
_NOTE = 320
"""Letters of a note that has nothing to compress: rows of half a kilobyte."""
_GIGABYTE, _MEGABYTE = 1024**3, 1024**2
_FILES_AFTER = 16


def measured(folder: Path, gigabytes: float, megabytes: int) -> int:
    """Make a table of so many gigabytes of files, which are one group; cluster it with so many megabytes of memory for rows."""
    began = time.monotonic()
    table = _made(folder, int(gigabytes * _GIGABYTE))
    size = sum(entry.base_file.size for entry in table.state.view.latest_slices())
    print(f"made: {size / _GIGABYTE:.1f} GB in {time.monotonic() - began:.0f} s", flush=True)
    said = json.dumps({"path": table.path, "megabytes": megabytes, "size": size})
    done = subprocess.run([sys.executable, "-m", "benchmarks.clustering.memory", said], check=False, text=True, cwd=REPOSITORY)
    return done.returncode


def _made(folder: Path, size: int) -> HoodieTable:
    lake = Lakehouse(str(folder))
    lake.create_schema("s")
    off = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    table = lake.create_table("s.t", schema=_batch(0, 1).schema, record_key=["id"], properties=off)
    number, written = 0, 0
    while written < size:
        table.bulk_insert(_batch(number, _FILE_ROWS))
        written = sum(path.stat().st_size for path in Path(table.path).rglob("*.parquet"))
        number += 1
    return table


def _batch(number: int, count: int) -> pa.Table:
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", np.uint8)
    notes = letters[np.frombuffer(np.random.default_rng(number).bytes(count * _NOTE), np.uint8) & 63]
    ends = np.arange(count + 1, dtype=np.int32) * _NOTE
    column = pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(notes))
    return batch(number * _FILE_ROWS, count, number).append_column("note", column)


def _cluster(path: str, megabytes: int, size: int) -> None:
    table = HoodieTable.open(path)
    options = {
        "lakehouse.clustering.memory.bytes": megabytes * _MEGABYTE,
        "hoodie.clustering.plan.strategy.max.bytes.per.group": 2 * size,
        "hoodie.clustering.plan.strategy.target.file.max.bytes": size // _FILES_AFTER,
    }
    before, resident = _sums(table), MemorySampler(os.getpid())
    with Peaks() as peaks, resident:
        began, used = time.monotonic(), cpu_seconds()
        done = table.cluster(order_by=list(COLUMNS), layout="z_order", options=options)
        seconds, used = time.monotonic() - began, cpu_seconds() - used
    assert len(done.groups) == 1, len(done.groups)
    assert _sums(HoodieTable.open(path)) == before, "rows were lost"
    sizes = f"{size / _GIGABYTE:.1f} GB, {done.rows_written:,} rows, {done.files_replaced} files into {done.files_created}"
    took = f"{megabytes} MB for rows: {seconds:.0f} s, {used:.0f} processor s"
    most = f"anonymous memory {peaks.before / _MEGABYTE:.0f} MB before, {peaks.driver / _MEGABYTE:.0f} MB at most"
    print(f"{sizes}; {took}; {most}, with mapped files {resident.peak.driver / _MEGABYTE:.0f} MB", flush=True)
    print(f"files opened for one value: {done.opened_before} before, {done.opened_after} after", flush=True)


def _sums(table: HoodieTable) -> list[int]:
    """Rows, and the sums of two columns, file by file."""
    total = [0, 0, 0]
    for piece in table.state.view.latest_slices():
        rows = pq.read_table(Path(table.path) / piece.base_file.path, columns=["quantity", "customer_id"])
        found = [rows.num_rows, *(int(pc.sum(column).as_py()) for column in rows.columns)]
        total = [one + other for one, other in zip(total, found, strict=True)]
    return total


if __name__ == "__main__":
    _cluster(**json.loads(sys.argv[1]))
