"""SIMPLE and BLOOM indexes: compare the keys of a batch with the keys stored in the files where they can be.

Files, and row groups of them, are ruled out by the key range in their Parquet statistics (what this process knows of those, without a
task); the BLOOM kinds ask the footer's filter too. What is left has its key column read, and only that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.engine import TaskRunner, looking_runner
from lakehouse_engine.files.base_file import iter_base_file
from lakehouse_engine.files.footer import BaseFileFooter, read_footer
from lakehouse_engine.format.bloom import BloomFilter
from lakehouse_engine.index.base import KeyedRows, Rows, Slices, StoredKeys, TaggedFile
from lakehouse_engine.index.key_bounds import bounds_of, learn, may_have_keys
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import COMMIT_SEQNO, RECORD_KEY
from lakehouse_engine.record.keys.keygen import KeyGenerator
from lakehouse_engine.storage.base import Storage

_CHUNK = 2_000_000
"""Keys of a batch, and of a file, that are looked up at once: bounds a task's memory, whatever their number."""


@dataclass(frozen=True, slots=True)
class MetaColumnKeys:
    """Record keys as the meta column has them."""

    @property
    def meta_columns(self) -> Sequence[str]:
        return (RECORD_KEY,)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([])

    @property
    def bounded(self) -> bool:
        return True

    def keys(self, table: pa.Table) -> pa.ChunkedArray:
        return table.column(RECORD_KEY)


@dataclass(frozen=True, slots=True)
class RowNumbers:
    """`_hoodie_commit_seqno` in the place of keys: finds single rows, also where several have one key."""

    @property
    def meta_columns(self) -> Sequence[str]:
        return (COMMIT_SEQNO,)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([])

    @property
    def bounded(self) -> bool:
        return False  # footers are read for the bounds of record keys

    def keys(self, table: pa.Table) -> pa.ChunkedArray:
        return table.column(COMMIT_SEQNO)


@dataclass(frozen=True, slots=True)
class GeneratedKeys:
    """Record keys computed from user columns, for tables with `hoodie.populate.meta.fields=false`."""

    generator: KeyGenerator
    schema: pa.Schema

    @property
    def meta_columns(self) -> Sequence[str]:
        return ()

    @property
    def bounded(self) -> bool:
        return False  # such files have the meta columns, empty

    def keys(self, table: pa.Table) -> pa.ChunkedArray:
        return pa.chunked_array([self.generator.record_keys(table)])


def stored_filter(footer: BaseFileFooter) -> BloomFilter | None:
    """The Bloom filter of a base file's footer, None where it has none."""
    return None if footer.bloom is None else BloomFilter.from_base64(footer.bloom, footer.bloom_kind or "SIMPLE")


@dataclass(frozen=True, slots=True)
class TagTask:
    """Look the keys of `rows` (row numbers of the batch; None for all) up in one base file."""

    storage: Storage
    base: BaseFile
    stored: StoredKeys
    keys: pa.Array
    rows: Rows | None
    use_bloom: bool


def tag_file(task: TagTask) -> TaggedFile:
    """Positions of the batch's keys in one base file."""
    footer = read_footer(task.storage, task.base)
    keys, rows = task.keys, task.rows
    if task.use_bloom and (bloom := stored_filter(footer)) is not None:
        possible = np.flatnonzero(bloom.might_contain(keys)).astype(np.int64)
        keys, rows = keys.take(pa.array(possible)), possible if rows is None else rows[possible]
    positions, indices = _find(task, footer, keys)
    found = indices if rows is None else rows[indices]
    return TaggedFile(task.base, footer.num_rows, positions, found, bounds_of(footer) if task.stored.bounded else None)


def _find(task: TagTask, footer: BaseFileFooter, keys: pa.Array) -> tuple[Rows, Rows]:
    """(row numbers in the file, indices into `keys`) of every hit, ascending by row number."""
    positions: list[Rows] = []
    indices: list[Rows] = []
    bounded = task.stored.bounded
    wanted = [number for number, group in enumerate(footer.row_groups) if not bounded or _may_hold(group.min_key, group.max_key, keys)]
    for numbers, stored in _stored_keys(task, footer, wanted):
        for low in range(0, len(keys), _CHUNK):
            hits = pc.index_in(stored, value_set=keys.slice(low, _CHUNK))
            where = np.flatnonzero(pc.is_valid(hits).to_numpy())
            positions.append(numbers[where])
            indices.append(pc.drop_null(hits).to_numpy().astype(np.int64) + low)
    if not positions:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    where, found = np.concatenate(positions), np.concatenate(indices)
    order = np.argsort(where, kind="stable")
    return where[order], found[order]


def _stored_keys(task: TagTask, footer: BaseFileFooter, wanted: Sequence[int]) -> Iterator[tuple[Rows, pa.ChunkedArray]]:
    """Keys of some row groups with their row numbers in the file, of several groups at once: each look-up hashes the batch's keys anew."""
    starts = np.cumsum([0, *(group.num_rows for group in footer.row_groups)], dtype=np.int64)
    groups = iter_base_file(task.storage, task.base, task.stored.schema, meta_columns=task.stored.meta_columns, row_groups=wanted)
    numbers: list[Rows] = []
    chunks: list[pa.Array] = []
    rows = 0
    for number, table in zip(wanted, groups, strict=True):
        numbers.append(np.arange(starts[number], starts[number] + table.num_rows))
        chunks += task.stored.keys(table).chunks
        rows += table.num_rows
        if rows >= _CHUNK or number == wanted[-1]:
            yield np.concatenate(numbers), pa.chunked_array(chunks, pa.string())
            numbers, chunks, rows = [], [], 0


def _may_hold(low: str | None, high: str | None, keys: pa.Array) -> bool:
    """Whether any key is in [low, high]; unknown bounds hold everything."""
    if not len(keys):
        return False
    if low is None or high is None:
        return True
    return bool(pc.any(pc.and_(pc.greater_equal(keys, low), pc.less_equal(keys, high))).as_py())


@dataclass(frozen=True, slots=True)
class KeyColumnIndex:
    """SIMPLE (a key is unique in its partition) or GLOBAL_SIMPLE (in the table), with or without Bloom filters."""

    is_global: bool
    use_bloom: bool

    def tag(self, storage: Storage, view: Slices, batch: KeyedRows, stored: StoredKeys, runner: TaskRunner) -> list[TaggedFile]:
        tasks = list(self._tasks(storage, view, batch, stored))
        looked = looking_runner(runner, storage).run(tag_file, tasks, name="tag")
        learn(storage, looked)
        return [found for found in looked if len(found.positions)]

    def _tasks(self, storage: Storage, view: Slices, batch: KeyedRows, stored: StoredKeys) -> list[TagTask]:
        if not len(batch.keys):
            return []
        if self.is_global:
            bases = _bases(view, None)
            bases = may_have_keys(storage, bases, batch.keys) if stored.bounded else bases
            return [TagTask(storage, base, stored, batch.keys, None, self.use_bloom) for base in bases]
        tasks = []
        for partition, rows in batch.rows_by_partition.items():
            bases = _bases(view, partition)
            whole = len(rows) == len(batch.keys)
            keys = batch.keys if whole or not bases else batch.keys.take(pa.array(rows))
            bases = may_have_keys(storage, bases, keys) if stored.bounded else bases
            tasks += [TagTask(storage, base, stored, keys, None if whole else rows, self.use_bloom) for base in bases]
        return tasks


def _bases(view: Slices, partition: str | None) -> list[BaseFile]:
    return [piece.base_file for piece in view.latest_slices(partition) if piece.base_file is not None]
