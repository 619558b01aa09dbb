"""The least that a copy-on-write upsert can cost: our table's own base files read, merged and written by two pyarrow processes.

No timeline, no index, no checks: every file is read whole, the rows whose key is in the batch are replaced, and a file of the same
columns (Hudi's meta columns included) is written. The processes are started and warm before anything is timed.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.contenders.base import KEY
from benchmarks.queries import COLUMNS

PROCESSES = 2
META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name")
CONSTANT = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_file_name")
_COMMIT_TIME = "20990101000000000"


@dataclass(frozen=True)
class Rewrite:
    """One base file and where the result goes."""

    base: str
    target: str
    number: int


@dataclass(frozen=True)
class Share:
    """The files of one process, and the batch that meets them: read once."""

    updates: str
    rewrites: tuple[Rewrite, ...]


class Floor:
    def start(self, *, memory: str, scratch: str, jars: list[str]) -> dict[str, str]:
        self.pool = ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn"), initializer=_one_thread)
        for _ in self.pool.map(_warm, range(4 * PROCESSES)):
            pass
        return {"pyarrow": pa.__version__}

    def upsert(self, *, table: str, source: str) -> None:
        rewrites = [
            Rewrite(str(base), str(base.with_name(f"rewritten-{number}.parquet")), number) for number, base in enumerate(base_files(table))
        ]
        shares = [Share(source, tuple(rewrites[process::PROCESSES])) for process in range(PROCESSES)]
        list(self.pool.map(rewrite_share, shares))

    def export(self, *, table: str, target: str) -> None:
        Path(target).mkdir()
        for path in Path(table).glob("rewritten-*.parquet"):
            pq.write_table(pq.read_table(path, columns=list(COLUMNS)), f"{target}/{path.name}")

    def jobs_started(self) -> int:
        return -1

    def stop(self) -> None:
        self.pool.shutdown()


def base_files(table: str) -> list[Path]:
    """The Parquet files of a table that has been written once (so every one of them is live), largest first."""
    found = [path for path in Path(table).rglob("*.parquet") if ".hoodie" not in path.relative_to(table).parts]
    return sorted(found, key=lambda path: -path.stat().st_size)


def rewrite_share(share: Share) -> None:
    """Write every merged file of the share."""
    updates = pq.read_table(share.updates, use_threads=False)
    for task in share.rewrites:
        _rewrite(task, updates)


def _rewrite(task: Rewrite, updates: pa.Table) -> None:
    base = pq.ParquetFile(task.base, read_dictionary=list(CONSTANT)).read(use_threads=False)
    hits = pc.index_in(base[KEY], value_set=updates[KEY].combine_chunks())
    replaced = hits.is_valid()
    kept = base.filter(pc.invert(replaced))
    fresh = updates.take(pc.drop_null(hits.combine_chunks()))
    write(pa.concat_tables([_renamed(kept, task), _with_meta(fresh, task, base.schema)]), task.target)


def _renamed(kept: pa.Table, task: Rewrite) -> pa.Table:
    """Rows that stay say the name of the file they are in."""
    at = kept.column_names.index("_hoodie_file_name")
    return kept.set_column(at, "_hoodie_file_name", constant(Path(task.target).name, kept.num_rows))


def _with_meta(fresh: pa.Table, task: Rewrite, schema: pa.Schema) -> pa.Table:
    count = fresh.num_rows
    sequence = pc.binary_join_element_wise(f"{_COMMIT_TIME}_{task.number}", pa.array(np.arange(count)).cast(pa.string()), "_")
    meta = [
        constant(_COMMIT_TIME, count),
        sequence,
        fresh[KEY],
        constant("", count),
        constant(Path(task.target).name, count),
    ]
    named = dict(zip(META, meta, strict=True)) | {name: fresh[name] for name in fresh.column_names}
    return pa.table({name: named[name] for name in schema.names}).cast(schema)


def constant(value: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([value]))


def write(table: pa.Table, target: str) -> None:
    plain = ("_hoodie_commit_seqno", "_hoodie_record_key", KEY)
    with_dictionary = [name for name in table.column_names if name not in plain]
    pq.write_table(table, target, compression="zstd", row_group_size=500_000, use_dictionary=with_dictionary, store_schema=False)


def _one_thread() -> None:
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def _warm(number: int) -> int:
    return int(pc.sum(pa.array(np.arange(1_000_000))).as_py()) + number


CONTENDER = Floor
