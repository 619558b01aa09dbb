"""Rows split by the hash of their record keys: one process writes them, and others read a share each.

All that a write decides, it decides of one record key at a time. So what is known of the keys of one share is all that is needed to plan
it, and nobody holds the keys of the whole batch. Rows go through files below the table's temporary folder, which all processes share: they
pass through no other process, and no limit on messages is met.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakehouse_engine.record.keys.java_hash import java_string_hash
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.os_errors import as_storage_errors
from lakehouse_engine.write.source import Rows, StagedFile

_MIX = np.uint32(0x9E3779B1)
"""Spreads hashes of keys that differ in their last letters only (Knuth's multiplicative hashing)."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Where what is exchanged lies: files in `folder` (relative to the table). Picklable."""

    storage: Storage
    folder: str

    def stage(self, what: str, rows: pa.Table) -> StagedFile:
        """Rows in a file of their own."""
        return StagedFile(self._write(what, rows.schema, [rows]), rows.num_rows)

    def split(self, what: str, table: pa.Table, parts: Rows, count: int) -> SplitFile:
        """The rows of `table` by their part (0 to `count` - 1), in their order."""
        rows = np.bincount(parts, minlength=count)
        order = np.argsort(parts, kind="stable")
        ordered, ends = table.take(pa.array(order)).combine_chunks(), np.cumsum(rows)
        pieces = (ordered.slice(int(end - length), int(length)) for end, length in zip(ends, rows, strict=True) if length)
        return SplitFile(self._write(what, ordered.schema, pieces), tuple(rows.tolist()))

    def read(self, path: str, number: int) -> pa.Table:
        """One record batch of a file."""
        local = self.storage.local_path(path)
        with as_storage_errors("read", path, self.storage.root):
            # A mapped file is not closed: the rows are in it.
            source = self.storage.open_input(path) if local is None else pa.memory_map(local)
            return pa.Table.from_batches([pa.ipc.open_file(source).get_batch(number)])

    def read_part(self, file: SplitFile, part: int) -> pa.Table | None:
        """The rows of one part; None where there are none."""
        return self.read(file.path, sum(1 for count in file.rows[:part] if count)) if file.rows[part] else None

    def _write(self, what: str, schema: pa.Schema, tables: Iterable[pa.Table]) -> str:
        """The path of a new file: an attempt of a task that is repeated writes another."""
        path = f"{self.folder}/{what}-{uuid.uuid4().hex}.arrow"
        with (
            as_storage_errors("write", path, self.storage.root),
            self.storage.open_output(path) as sink,
            pa.ipc.new_file(sink, schema) as writer,
        ):
            for table in tables:
                writer.write_table(table)
        return path


@dataclass(frozen=True, slots=True)
class SplitFile:
    """An Arrow IPC file with a record batch for each part that has rows; `rows` counts those of every part."""

    path: str
    rows: tuple[int, ...]


def shares_of(keys: pa.Array, count: int) -> Rows:
    """The share of every record key, of `count` ones."""
    return np.asarray((java_string_hash(keys) * _MIX) >> np.uint32(8), dtype=np.int64) % count
