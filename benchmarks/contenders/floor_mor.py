"""The least that a compaction can cost: the base files and logs of our table read, merged and written by two pyarrow processes.

No timeline, no checks, no ordering values compared: of the log rows of a key the last one counts, as batches of the benchmark get newer.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.contenders.file_groups import newest_slices
from benchmarks.contenders.floor import CONSTANT, PROCESSES, Floor, constant, write
from lakehouse_engine.format.log.reader import read_blocks

_KEY = "_hoodie_record_key"


@dataclass(frozen=True)
class Merge:
    """One slice and where the result goes."""

    base: str
    logs: tuple[str, ...]
    target: str


class FloorMor(Floor):
    def compact(self, *, table: str) -> None:
        slices = [one for one in newest_slices(table) if one.base is not None]
        merges = [
            Merge(str(one.base), tuple(map(str, one.logs)), str(Path(table) / f"rewritten-{number}.parquet"))
            for number, one in enumerate(slices)
        ]
        list(self.pool.map(merge_all, [merges[process::PROCESSES] for process in range(PROCESSES)]))

    def deltas(self, *, table: str) -> int:
        """None once the merged files are there: they are what `export` reads."""
        return 0 if list(Path(table).glob("rewritten-*.parquet")) else sum(len(one.logs) for one in newest_slices(table))


def merge_all(merges: list[Merge]) -> None:
    """Write every merged file of one process."""
    for merge in merges:
        write(_merged(merge), merge.target)


def _merged(merge: Merge) -> pa.Table:
    base = pq.ParquetFile(merge.base, read_dictionary=list(CONSTANT)).read(use_threads=False)
    name = Path(merge.target).name
    if not merge.logs:
        return _named(base, name)
    logged = _last_of_each_key(pa.concat_tables([_rows(log) for log in merge.logs]))
    kept = base.filter(pc.invert(pc.is_in(base[_KEY], value_set=logged[_KEY].combine_chunks())))
    return _named(pa.concat_tables([kept, logged.select(base.column_names).cast(base.schema)]), name)


def _rows(log: str) -> pa.Table:
    """The rows of a log file: all its blocks are Parquet."""
    blocks = read_blocks(memoryview(Path(log).read_bytes()))
    return pa.concat_tables([pq.read_table(pa.BufferReader(pa.py_buffer(block.content)), use_threads=False) for block in blocks])


def _last_of_each_key(rows: pa.Table) -> pa.Table:
    numbered = pa.table({"key": rows[_KEY], "at": np.arange(rows.num_rows)})
    last = numbered.group_by("key", use_threads=False).aggregate([("at", "max")])["at_max"]
    return rows.take(last)


def _named(rows: pa.Table, name: str) -> pa.Table:
    at = rows.column_names.index("_hoodie_file_name")
    return rows.set_column(at, "_hoodie_file_name", constant(name, rows.num_rows))


CONTENDER = FloorMor
