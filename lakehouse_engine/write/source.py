"""Incoming rows, wherever they are: in memory, or staged in Arrow files below the table.

A batch is read many times (tagging, then once by each file's task) and possibly by other processes, so its rows have fixed numbers:
row `i` is the same row for everybody. Columns are `_hoodie_record_key`, `_hoodie_partition_path`, then the table's user columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.read.row_pool import take_rows
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.os_errors import as_storage_errors

Rows = npt.NDArray[np.int64]


class RowSource(Protocol):
    """Numbered rows. Picklable."""

    @property
    def num_rows(self) -> int: ...

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Some columns of all rows."""
        ...

    def take(self, rows: Rows | None) -> pa.Table:
        """Whole rows in the order of `rows`; None for all of them."""
        ...

    def slice(self, first: int, count: int) -> pa.Table:
        """Whole rows from number `first` on, `count` of them where there are so many."""
        ...

    def parts(self) -> Sequence[RowSource]:
        """All rows, in parts that different tasks can read."""
        ...


@dataclass(frozen=True, slots=True)
class MemorySource:
    """Rows of an Arrow table."""

    table: pa.Table

    @property
    def num_rows(self) -> int:
        return int(self.table.num_rows)

    def columns(self, names: Sequence[str]) -> pa.Table:
        return self.table.select(list(names))

    def take(self, rows: Rows | None) -> pa.Table:
        return self.table if rows is None else take_rows(self.table, rows)

    def slice(self, first: int, count: int) -> pa.Table:
        return self.table.slice(first, count)

    def parts(self) -> Sequence[RowSource]:
        return [self]


@dataclass(frozen=True, slots=True)
class StagedFile:
    """One Arrow IPC file of a staged batch; `path` relative to the table."""

    path: str
    num_rows: int


@dataclass(slots=True)
class StagedSource:
    """Rows in Arrow IPC files, numbered through the files in order. Files are mapped, not loaded, where the storage can."""

    storage: Storage
    files: tuple[StagedFile, ...]
    schema: pa.Schema
    _opened: pa.Table | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> tuple[Storage, tuple[StagedFile, ...], pa.Schema]:
        return self.storage, self.files, self.schema

    def __setstate__(self, state: tuple[Storage, tuple[StagedFile, ...], pa.Schema]) -> None:
        self.storage, self.files, self.schema = state
        self._opened = None

    @property
    def num_rows(self) -> int:
        return sum(file.num_rows for file in self.files)

    def _input(self, path: str) -> pa.NativeFile:
        local = self.storage.local_path(path)
        return self.storage.open_input(path) if local is None else pa.memory_map(local)

    def _read(self, path: str) -> pa.Table:
        with as_storage_errors("read staged rows from", path, self.storage.root):
            return pa.ipc.open_file(self._input(path)).read_all()

    def _table(self) -> pa.Table:
        if self._opened is None:
            parts = [self._read(file.path) for file in self.files if file.num_rows]
            self._opened = pa.concat_tables(parts) if parts else self.schema.empty_table()
        return self._opened

    def columns(self, names: Sequence[str]) -> pa.Table:
        return self._table().select(list(names))

    def take(self, rows: Rows | None) -> pa.Table:
        return self._table() if rows is None else take_rows(self._table(), rows)

    def slice(self, first: int, count: int) -> pa.Table:
        return self._table().slice(first, count)

    def parts(self) -> Sequence[RowSource]:
        return [StagedSource(self.storage, (file,), self.schema) for file in self.files]


@dataclass(frozen=True, slots=True)
class PatchedSource:
    """Another source's rows, but for `rows` (ascending), which are those of `table` (same columns)."""

    source: RowSource
    rows: Rows
    table: pa.Table

    @property
    def num_rows(self) -> int:
        return self.source.num_rows

    def columns(self, names: Sequence[str]) -> pa.Table:
        chosen = list(names)
        return self._patched(self.source.columns(chosen), np.arange(self.num_rows, dtype=np.int64), self.table.select(chosen))

    def take(self, rows: Rows | None) -> pa.Table:
        numbers = np.arange(self.num_rows, dtype=np.int64) if rows is None else rows
        return self._patched(self.source.take(rows), numbers, self.table)

    def slice(self, first: int, count: int) -> pa.Table:
        return self.take(np.arange(first, min(first + count, self.num_rows), dtype=np.int64))

    def parts(self) -> Sequence[RowSource]:
        return [self]

    def _patched(self, given: pa.Table, numbers: Rows, table: pa.Table) -> pa.Table:
        at = np.minimum(np.searchsorted(self.rows, numbers), max(0, len(self.rows) - 1))
        hit = self.rows[at] == numbers if len(self.rows) else np.zeros(len(numbers), dtype=bool)
        if not hit.any():
            return given
        indices = np.where(hit, len(numbers) + at, np.arange(len(numbers)))
        return pa.concat_tables([given, table.select(given.column_names).cast(given.schema)]).take(pa.array(indices))
