"""Keeps rows in memory up to a limit, and beyond it in mapped Arrow files."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.files.mapped import mapped
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.os_errors import as_storage_errors

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SpillTo:
    """Where rows go above `limit` bytes in memory: Arrow IPC files below `folder` (relative to the table)."""

    storage: Storage
    folder: str
    limit: int

    def write(self, number: int, rows: pa.Table) -> pa.Table:
        """The same rows, read back from a file. The owner of the folder removes it."""
        path = f"{self.folder}/{number}.arrow"
        with (
            as_storage_errors("write", path, self.storage.root),
            self.storage.open_output(path) as sink,
            pa.ipc.new_file(sink, rows.schema) as writer,
        ):
            writer.write_table(rows)
        return pa.ipc.open_file(pa.py_buffer(mapped(self.storage, path))).read_all()


@dataclass(slots=True)
class RowPool:
    """Numbered rows of one schema. With `spill`, rows above its limit are moved to files and keep their numbers."""

    schema: pa.Schema
    spill: SpillTo | None = None
    _stored: list[pa.Table] = field(default_factory=list)
    _held: list[pa.Table] = field(default_factory=list)
    _bytes: int = 0
    """Size of the held rows, kept here because computing a small table's size is slow."""

    def add(self, rows: pa.Table) -> None:
        self._held.append(rows)
        if self.spill is None:
            return
        self._bytes += rows.nbytes
        if self._bytes > self.spill.limit:
            self._stored.append(self.spill.write(len(self._stored), pa.concat_tables(self._held)))
            self._held, self._bytes = [], 0

    def table(self) -> pa.Table:
        """All rows so far, in order; those in files are mapped, not loaded."""
        return pa.concat_tables([self.schema.empty_table(), *self._stored, *self._held])


def take_rows(table: pa.Table, rows: Rows) -> pa.Table:
    """`table.take(rows)`, chunk by chunk: Arrow's own take joins all chunks of a column first, which for a few rows of a large
    table copies the table. Rows come in the order of `rows`, which is cheapest when they ascend.
    """
    if table.num_rows == 0 or len(rows) == 0:
        return table.slice(0, 0)
    batches = table.to_batches()
    if len(batches) == 1:
        return pa.Table.from_batches([batches[0].take(pa.array(rows))], table.schema)
    if len(rows) > 1 and not bool((np.diff(rows) >= 0).all()):
        order = np.argsort(rows, kind="stable")
        back = np.empty(len(rows), dtype=np.int64)
        back[order] = np.arange(len(rows))
        return take_rows(table, rows[order]).combine_chunks().take(pa.array(back))
    ends = np.cumsum([batch.num_rows for batch in batches])
    cuts = np.searchsorted(rows, ends, side="left")
    parts, low = [], 0
    for batch, end, cut in zip(batches, ends, cuts, strict=True):
        if cut > low:
            parts.append(batch.take(pa.array(rows[low:cut] - (end - batch.num_rows))))
        low = cut
    return pa.Table.from_batches(parts, table.schema)
