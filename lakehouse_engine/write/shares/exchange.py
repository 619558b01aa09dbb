"""Rows split by the hash of their record keys: one process writes them, and others read a share each.

A write decides about one record key at a time, so a share can be planned from what is known of its own keys, and no process holds the keys
of the whole batch. Rows go through files in the table's temporary folder, which all processes share: they pass through no other process,
and no limit on messages is met.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from threading import Lock
from types import TracebackType

import numpy as np
import pyarrow as pa

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.record.keys.java_hash import java_string_hash
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.os_errors import as_storage_errors
from lakehouse_engine.write.source import Rows, StagedFile

_MIX = np.uint32(0x9E3779B1)
"""Spreads hashes of keys that differ in their last letters only (Knuth's multiplicative hashing)."""
_OPEN = 64
"""Files that a process keeps open: it reads many parts of each file, one after the other."""


@dataclass(slots=True)
class _Opened:
    """A file whose parts are read by one thread at a time."""

    reader: pa.ipc.RecordBatchFileReader
    lock: Lock = field(default_factory=Lock)

    def read(self, number: int) -> pa.Table:
        with self.lock:
            return pa.Table.from_batches([self.reader.get_batch(number)])


@dataclass(frozen=True, slots=True)
class Exchange:
    """The exchanged files, in `folder` (relative to the table). Picklable."""

    storage: Storage
    folder: str
    _opened: BoundedCache[_Opened] = field(default_factory=lambda: BoundedCache(_OPEN), init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[Exchange], tuple[Storage, str]]:
        return Exchange, (self.storage, self.folder)

    def stage(self, what: str, rows: pa.Table) -> StagedFile:
        """Write the rows to a file of their own."""
        return StagedFile(self._write(what, rows.schema, [rows]), rows.num_rows)

    def split(self, what: str, table: pa.Table, parts: Rows, count: int) -> SplitFile:
        """Write the rows of `table` by their part (0 to `count` - 1), each part in row order."""
        return self.split_each(what, [(table, parts)], count)[0]

    def split_each(self, what: str, tables: Iterable[tuple[pa.Table, Rows]], count: int) -> list[SplitFile]:
        """As `split`, for several tables in turn; consecutive tables of one schema share a file."""
        split: list[SplitFile] = []
        with _Writing(self, what) as writing:
            for table, parts in tables:
                rows = np.bincount(parts, minlength=count)
                order = np.argsort(parts, kind="stable")
                ordered, ends = table.take(pa.array(order)).combine_chunks(), np.cumsum(rows)
                path, before = writing.place(ordered.schema)
                pieces = (ordered.slice(int(end - length), int(length)) for end, length in zip(ends, rows, strict=True) if length)
                added = writing.add(piece.combine_chunks() for piece in pieces)
                assert added == np.count_nonzero(rows), "a part of one column is larger than a record batch can be"
                split.append(SplitFile(path, tuple(rows.tolist()), before))
        return split

    def read(self, path: str, number: int) -> pa.Table:
        """One record batch of a file."""
        with as_storage_errors("read", path, self.storage.root):
            return self._opened.find(path, lambda: self._open(path)).read(number)

    def _open(self, path: str) -> _Opened:
        local = self.storage.local_path(path)
        # A mapped file is not closed: the rows are in it.
        return _Opened(pa.ipc.open_file(self.storage.open_input(path) if local is None else pa.memory_map(local)))

    def read_part(self, file: SplitFile, part: int) -> pa.Table | None:
        """The rows of one part, or None."""
        return self.read(file.path, file.before + sum(1 for count in file.rows[:part] if count)) if file.rows[part] else None

    def _write(self, what: str, schema: pa.Schema, tables: Iterable[pa.Table]) -> str:
        with _Writing(self, what) as writing:
            path, _ = writing.place(schema)
            writing.add(tables)
            return path


@dataclass(slots=True)
class _Writing:
    """Writes record batches to new files, one at a time; a repeated attempt of a task writes other files. A context manager."""

    exchange: Exchange
    what: str
    _path: str = ""
    _writer: pa.ipc.RecordBatchFileWriter | None = None
    _schema: pa.Schema | None = None
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> _Writing:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._errors():
            self._open.__exit__(kind, error, trace)

    def place(self, schema: pa.Schema) -> tuple[str, int]:
        """The file for the next batches of that schema, and the number of batches already in it."""
        if self._schema is None or not self._schema.equals(schema, check_metadata=True):
            with self._errors():
                self._open.close()
            self._path = f"{self.exchange.folder}/{self.what}-{uuid.uuid4().hex}.arrow"
            with self._errors():
                sink = self._open.enter_context(self.exchange.storage.open_output(self._path))
                self._writer, self._schema = self._open.enter_context(pa.ipc.new_file(sink, schema)), schema
        return self._path, self._batches

    def add(self, tables: Iterable[pa.Table]) -> int:
        """Write tables with the schema of the last `place`; returns the number of batches that they became."""
        assert self._writer is not None
        before = self._batches
        with self._errors():
            for table in tables:
                self._writer.write_table(table)
        return self._batches - before

    @property
    def _batches(self) -> int:
        return 0 if self._writer is None else int(self._writer.stats.num_record_batches)

    def _errors(self) -> AbstractContextManager[None]:
        return as_storage_errors("write", self._path, self.exchange.storage.root)


@dataclass(frozen=True, slots=True)
class SplitFile:
    """One record batch of an Arrow IPC file for each part that has rows. `rows` counts the rows of every part; `before` batches of others
    precede them in the file.
    """

    path: str
    rows: tuple[int, ...]
    before: int = 0


def shares_of(keys: pa.Array, count: int) -> Rows:
    """The share (0 to `count` - 1) of every record key."""
    return np.asarray((java_string_hash(keys) * _MIX) >> np.uint32(8), dtype=np.int64) % count
