"""Incoming rows, wherever they are: in memory, or staged in Arrow files below the table.

A batch is read many times (tagging, then once by each file's task) and possibly by other processes, so its rows have fixed numbers:
row `i` is the same row for everybody. Columns are `_hoodie_record_key`, `_hoodie_partition_path`, then the table's user columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.files.row_pool import take_rows
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.os_errors import as_storage_errors

Rows = npt.NDArray[np.int64]


class RowSource(Protocol):
    """Numbered rows. Picklable."""

    @property
    def num_rows(self) -> int: ...

    @property
    def column_names(self) -> Sequence[str]: ...

    def columns(self, names: Sequence[str], rows: Rows | None = None) -> pa.Table:
        """Some columns of `rows`, in their order; None for all rows."""
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

    def only(self, rows: Rows) -> RowSource:
        """A source to be sent to another process, with `rows` (distinct, ascending) under the same numbers; others need not be there."""
        ...


@dataclass(frozen=True, slots=True)
class MemorySource:
    """Rows of an Arrow table."""

    table: pa.Table

    @property
    def num_rows(self) -> int:
        return int(self.table.num_rows)

    @property
    def column_names(self) -> Sequence[str]:
        return list(self.table.column_names)

    def columns(self, names: Sequence[str], rows: Rows | None = None) -> pa.Table:
        return _chosen(self.table, names, rows)

    def take(self, rows: Rows | None) -> pa.Table:
        return self.table if rows is None else take_rows(self.table, rows)

    def slice(self, first: int, count: int) -> pa.Table:
        return self.table.slice(first, count)

    def parts(self) -> Sequence[RowSource]:
        return [self]

    def only(self, rows: Rows) -> RowSource:
        return self if len(rows) == self.num_rows else SomeRows(self.num_rows, rows, take_rows(self.table, rows))


@dataclass(frozen=True, slots=True)
class SomeRows:
    """Rows `rows` (ascending) of a source of `num_rows`, which are those of `table`; there are no others to be had."""

    num_rows: int
    rows: Rows
    table: pa.Table

    @property
    def column_names(self) -> Sequence[str]:
        return list(self.table.column_names)

    def columns(self, names: Sequence[str], rows: Rows | None = None) -> pa.Table:
        return self.table.select(list(names)).take(pa.array(self._at(rows)))

    def take(self, rows: Rows | None) -> pa.Table:
        return take_rows(self.table, self._at(rows))

    def slice(self, first: int, count: int) -> pa.Table:
        return self.take(np.arange(first, min(first + count, self.num_rows), dtype=np.int64))

    def parts(self) -> Sequence[RowSource]:
        return [self]

    def only(self, rows: Rows) -> RowSource:
        return SomeRows(self.num_rows, rows, self.take(rows))

    def _at(self, rows: Rows | None) -> Rows:
        wanted = np.arange(self.num_rows, dtype=np.int64) if rows is None else rows
        at = np.searchsorted(self.rows, wanted).astype(np.int64)
        if len(wanted) and (not len(self.rows) or (self.rows[np.minimum(at, len(self.rows) - 1)] != wanted).any()):
            raise IndexError("rows were asked for that a task did not say it needs")
        return at


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

    @property
    def column_names(self) -> Sequence[str]:
        return list(self.schema.names)

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

    def columns(self, names: Sequence[str], rows: Rows | None = None) -> pa.Table:
        return _chosen(self._table(), names, rows)

    def take(self, rows: Rows | None) -> pa.Table:
        return self._table() if rows is None else take_rows(self._table(), rows)

    def slice(self, first: int, count: int) -> pa.Table:
        return self._table().slice(first, count)

    def parts(self) -> Sequence[RowSource]:
        return [StagedSource(self.storage, (file,), self.schema) for file in self.files]

    def only(self, rows: Rows) -> RowSource:
        return self  # every process reads them from the files


@dataclass(frozen=True, slots=True)
class PatchedSource:
    """Another source's rows, but for `rows` (ascending), which are those of `table` (same columns)."""

    source: RowSource
    rows: Rows
    table: pa.Table

    @property
    def num_rows(self) -> int:
        return self.source.num_rows

    @property
    def column_names(self) -> Sequence[str]:
        return self.source.column_names

    def columns(self, names: Sequence[str], rows: Rows | None = None) -> pa.Table:
        chosen, numbers = list(names), np.arange(self.num_rows, dtype=np.int64) if rows is None else rows
        return self._patched(self.source.columns(chosen, rows), numbers, self.table.select(chosen))

    def take(self, rows: Rows | None) -> pa.Table:
        numbers = np.arange(self.num_rows, dtype=np.int64) if rows is None else rows
        return self._patched(self.source.take(rows), numbers, self.table)

    def slice(self, first: int, count: int) -> pa.Table:
        return self.take(np.arange(first, min(first + count, self.num_rows), dtype=np.int64))

    def parts(self) -> Sequence[RowSource]:
        return [self]

    def only(self, rows: Rows) -> RowSource:
        mine = np.isin(self.rows, rows)
        return PatchedSource(self.source.only(rows), self.rows[mine], self.table.filter(pa.array(mine)))

    def _patched(self, given: pa.Table, numbers: Rows, table: pa.Table) -> pa.Table:
        at = np.minimum(np.searchsorted(self.rows, numbers), max(0, len(self.rows) - 1))
        hit = self.rows[at] == numbers if len(self.rows) else np.zeros(len(numbers), dtype=bool)
        if not hit.any():
            return given
        indices = np.where(hit, len(numbers) + at, np.arange(len(numbers)))
        return pa.concat_tables([given, table.select(given.column_names).cast(given.schema)]).take(pa.array(indices))


@dataclass(frozen=True, slots=True)
class JoinedSource:
    """The rows of one source, and behind them those of another (same columns)."""

    source: RowSource
    more: RowSource

    @property
    def num_rows(self) -> int:
        return self.source.num_rows + self.more.num_rows

    @property
    def column_names(self) -> Sequence[str]:
        return self.source.column_names

    def columns(self, names: Sequence[str], rows: Rows | None = None) -> pa.Table:
        return self._joined(lambda source, mine: source.columns(names, mine), rows)

    def take(self, rows: Rows | None) -> pa.Table:
        return self._joined(lambda source, mine: source.take(mine), rows)

    def slice(self, first: int, count: int) -> pa.Table:
        return self.take(np.arange(first, min(first + count, self.num_rows), dtype=np.int64))

    def parts(self) -> Sequence[RowSource]:
        return [*self.source.parts(), *self.more.parts()]

    def only(self, rows: Rows) -> RowSource:
        first = self.source.num_rows
        return JoinedSource(self.source.only(rows[rows < first]), self.more.only(rows[rows >= first] - first))

    def _joined(self, read: Callable[[RowSource, Rows | None], pa.Table], rows: Rows | None) -> pa.Table:
        if rows is None:
            return pa.concat_tables([read(self.source, None), read(self.more, None)])
        first = self.source.num_rows
        behind = rows >= first
        if not behind.any():
            return read(self.source, rows)
        table = pa.concat_tables([read(self.source, rows[~behind]), read(self.more, rows[behind] - first)])
        order = np.concatenate([np.flatnonzero(~behind), np.flatnonzero(behind)])
        return table.take(pa.array(np.argsort(order)))


def _chosen(table: pa.Table, names: Sequence[str], rows: Rows | None) -> pa.Table:
    chosen = table.select(list(names))
    return chosen if rows is None else take_rows(chosen, rows)


def packed_source(source: RowSource, *numbers: Rows) -> RowSource:
    """The source to send to a task that needs only these rows."""
    wanted = [rows for rows in numbers if len(rows)]
    if len(wanted) == 1 and (np.diff(wanted[0]) > 0).all():
        return source.only(wanted[0])  # the same object, which is sent once
    return source.only(np.unique(np.concatenate([np.empty(0, np.int64), *wanted])))
