"""What runs per slice with log files where a commit needs a base file: read the slice merged, apply changes, write it as a base file.

It is what a copy-on-write merge does to a base file, for slices of merge-on-read tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.files.footer import read_footer
from lakehouse_engine.files.log_scanner import LoggedSlice
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.format.bloom import BloomFilter
from lakehouse_engine.format.file_names import MarkerType
from lakehouse_engine.index.simple import stored_filter
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import COMMIT_SEQNO, COMMIT_TIME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.write.source import Rows, RowSource, packed_source
from lakehouse_engine.write.tasks.append import NO_KEYS
from lakehouse_engine.write.tasks.base_files import NO_ROWS, FileContext, Mask, WriteStatus, identity, next_version, open_writer
from lakehouse_engine.write.tasks.file_writer import BaseFileWriter, FileIdentity


@dataclass(frozen=True, slots=True)
class SliceMergeTask:
    """Write the next base file of a slice.

    `rows` of `source` replace every stored row of their key (that they win is decided already), or are added where their key is not
    stored. `deletes` are record keys, `seqnos` texts of `_hoodie_commit_seqno`, of stored rows to drop.
    """

    context: FileContext
    task: int
    piece: LoggedSlice
    reader: SliceReader
    source: RowSource
    rows: Rows = field(default_factory=lambda: NO_ROWS)
    deletes: pa.Array = field(default_factory=lambda: NO_KEYS)
    seqnos: pa.Array = field(default_factory=lambda: NO_KEYS)

    def packed(self) -> SliceMergeTask:
        """As `engine.Packable`."""
        return replace(self, source=packed_source(self.source, self.rows))


def merge_slice(task: SliceMergeTask) -> WriteStatus:
    """Write the merged slice with the changes applied, row group by row group. No status when nothing stored was changed or added:
    then no write stat names the file it wrote, and the commit removes it.

    Raises as `SliceReader.iter`.
    """
    context, stored = task.context, task.piece.slice
    file = next_version(context, stored.partition_path, stored.file_id, task.task)
    kind = MarkerType.CREATE if stored.base_file is None else MarkerType.MERGE
    writer = open_writer(context, file, kind, _stored_filter(context, stored.base_file))
    merging = _Merging(task, writer, identity(context, file, task.task))
    try:
        merging.run()
        size, rows = writer.close()
    except BaseException:
        writer.discard()
        raise
    if not (merging.updates or merging.deletes or merging.inserts):
        return WriteStatus(None)
    return WriteStatus(_stat(merging, file, size, rows))


def _stored_filter(context: FileContext, base: BaseFile | None) -> BloomFilter | None:
    return stored_filter(read_footer(context.storage, base)) if context.populate and base is not None else None


@dataclass(slots=True)
class _Merging:
    """One merge at work: where it writes, and what it has done so far."""

    task: SliceMergeTask
    writer: BaseFileWriter
    stamp: FileIdentity
    updates: int = 0
    deletes: int = 0
    inserts: int = 0
    stamped: int = 0

    def run(self) -> None:
        """Rows stay about where they were: a changed one comes behind the row group that its old self was in."""
        task, schema = self.task, self.task.context.schema
        reader = replace(task.reader, schema=schema)
        incoming = _flat(task.source.columns([RECORD_KEY], task.rows).column(0))
        waiting = np.ones(len(task.rows), dtype=bool)
        for stored, in_base in _marked_last(reader.iter(task.piece, [*META_COLUMNS, *schema.names])):
            keys = reader.rules.record_keys(stored)
            found = pc.index_in(keys, value_set=incoming)
            replaced = np.asarray(found.is_valid())
            dropped = self._dropped(stored, keys) & ~replaced
            # A key that is stored twice is replaced once.
            hits = np.unique(np.asarray(found.drop_null()).astype(np.int64))
            hits = hits[waiting[hits]]
            waiting[hits] = False
            self.deletes += int(dropped.sum())
            self.updates += len(hits)
            self._keep(stored, ~replaced & ~dropped, new_keys=not in_base)
            self._write_new(task.rows[hits], new_keys=not in_base)
        self.inserts = int(waiting.sum())
        self._write_new(task.rows[waiting], new_keys=True)

    def _dropped(self, stored: pa.Table, keys: pa.Array) -> Mask:
        dropped = np.zeros(stored.num_rows, dtype=bool)
        if len(self.task.deletes):
            dropped |= np.asarray(pc.is_in(keys, value_set=self.task.deletes))
        if len(self.task.seqnos):
            dropped |= np.asarray(pc.is_in(stored.column(COMMIT_SEQNO), value_set=self.task.seqnos))
        return dropped

    def _keep(self, stored: pa.Table, kept: Mask, *, new_keys: bool) -> None:
        rows = stored if kept.all() else stored.filter(pa.array(kept))
        for name in (COMMIT_TIME, PARTITION_PATH):
            rows = rows.set_column(rows.schema.get_field_index(name), name, rows.column(name).dictionary_encode())
        self.writer.write(self.stamp.restamp(rows), new_keys=new_keys)

    def _write_new(self, rows: Rows, *, new_keys: bool) -> None:
        step = self.task.context.options.row_group_rows
        for start in range(0, len(rows), step):
            taken = self.task.source.take(rows[start : start + step])
            self.writer.write(self.stamp.stamp(taken, self.stamped), new_keys=new_keys)
            self.stamped += taken.num_rows


def _marked_last(tables: Iterator[pa.Table]) -> Iterator[tuple[pa.Table, bool]]:
    """Each table with whether its keys are in the base file: all but the last, which has what only logs have."""
    held: pa.Table | None = None
    for table in tables:
        if held is not None:
            yield held, True
        held = table
    if held is not None:
        yield held, False


def _flat(column: pa.ChunkedArray) -> pa.Array:
    flat = column.combine_chunks()
    return pa.concat_arrays(flat.chunks) if isinstance(flat, pa.ChunkedArray) else flat


def _stat(merging: _Merging, file: BaseFile, size: int, rows: int) -> HoodieWriteStat:
    return HoodieWriteStat(
        file_id=file.file_id,
        path=file.path,
        prev_commit=merging.task.piece.slice.base_instant,
        partition_path=file.partition_path,
        num_writes=rows,
        num_deletes=merging.deletes,
        num_update_writes=merging.updates,
        num_inserts=merging.inserts,
        total_write_bytes=size,
        file_size_in_bytes=size,
    )
