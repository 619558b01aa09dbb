"""Fold the logs of one slice into its next base file: what runs per slice, on an executor or in a thread."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lakehouse_engine.files.base_file import DICTIONARY_COLUMNS, iter_base_file
from lakehouse_engine.files.footer import read_footer
from lakehouse_engine.files.log_scanner import LoggedSlice
from lakehouse_engine.files.row_pool import SpillTo, take_rows
from lakehouse_engine.files.slice_reader import SliceMerge, SliceReader, plain
from lakehouse_engine.format.file_names import MarkerType, marker_folder
from lakehouse_engine.index.simple import stored_filter
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import META_COLUMNS
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.write.tasks.base_files import FileContext, identity, next_version, open_writer
from lakehouse_engine.write.tasks.file_writer import BaseFileWriter, FileIdentity

_NEW_GROUP = "null"


@dataclass(frozen=True, slots=True)
class CompactTask:
    """One slice. `reader` sees the logs as of the compaction; above `memory_bytes` their rows are kept in files. `task` numbers it.

    The slice is of the reader's table; the new file is of the context's, which for a compaction is the same one.
    """

    context: FileContext
    task: int
    reader: SliceReader
    piece: LoggedSlice
    memory_bytes: int

    @property
    def columns(self) -> tuple[str, ...]:
        return (*META_COLUMNS, *self.context.schema.names)


@dataclass(slots=True)
class _Merging:
    """A merge at work, and what it has done so far."""

    task: CompactTask
    merge: SliceMerge
    writer: BaseFileWriter
    stamp: FileIdentity
    updates: int = 0
    deletes: int = 0
    inserts: int = 0
    scan_ms: int = field(default=0)

    def run(self) -> None:
        """Row group by row group: kept rows as they were, changed rows behind them; at the end rows that only the logs have."""
        context, base = self.task.context, self.task.piece.slice.base_file
        if base is not None:
            for group in iter_base_file(self.task.reader.storage, base, context.schema, meta_columns=META_COLUMNS):
                self._write_group(group)
        new, step = np.sort(self.merge.insert_numbers()), context.options.row_group_rows
        for start in range(0, len(new), step):
            self._write(take_rows(self.merge.outcome.data, new[start : start + step]), new_keys=True)
        self.inserts = len(new)

    def _write_group(self, group: pa.Table) -> None:
        if not self.merge.rules.merger.whole_rows:
            # Rows made of two take their values from either side, which must have the same types.
            group = group.cast(plain(group.schema))
        removed, replaced = self.merge.pairs(group)
        kept = np.ones(group.num_rows, np.bool_)
        kept[removed] = False
        self._write(group.filter(pa.array(kept)) if len(removed) else group, new_keys=False)
        self._write(replaced, new_keys=False)
        self.updates += replaced.num_rows
        self.deletes += len(removed) - replaced.num_rows

    def _write(self, rows: pa.Table, *, new_keys: bool) -> None:
        if rows.num_rows:
            self.writer.write(self.stamp.restamp(_encoded(rows.select(list(self.task.columns)))), new_keys=new_keys)


def _encoded(rows: pa.Table) -> pa.Table:
    """The rows with the meta columns as dictionaries that repeat themselves."""
    for name in DICTIONARY_COLUMNS:
        column = rows.column(name)
        if not pa.types.is_dictionary(column.type):
            rows = rows.set_column(rows.column_names.index(name), name, column.dictionary_encode())
    return rows


def compact_slice(task: CompactTask) -> HoodieWriteStat:
    """Write the base file that a slice becomes; its stat for the commit record. A slice whose rows are all gone makes an empty one.

    Rows keep their commit time, seqno and key. Raises as `SliceReader.merge` and `iter_base_file`.
    """
    context, base = task.context, task.piece.slice.base_file
    began = time.monotonic()
    file = next_version(context, task.piece.slice.partition_path, task.piece.slice.file_id, task.task)
    spill = SpillTo(context.storage, f"{marker_folder(context.instant_time)}/.spill/{file.name}", task.memory_bytes)
    inherited = stored_filter(read_footer(task.reader.storage, base)) if base is not None and context.populate else None
    writer = open_writer(context, file, MarkerType.CREATE if base is None else MarkerType.MERGE, inherited)
    try:
        merge = task.reader.merge(task.piece, task.columns, spill)
        merging = _Merging(task, merge, writer, identity(context, file, task.task), scan_ms=_milliseconds(began))
        merging.run()
        size, rows = writer.close()
    except BaseException:
        writer.discard()
        raise
    finally:
        context.storage.delete_tree(spill.folder)
    return _stat(merging, file, size, rows, _milliseconds(began))


def _milliseconds(since: float) -> int:
    return int((time.monotonic() - since) * 1000)


def _stat(merging: _Merging, file: BaseFile, size: int, rows: int, took_ms: int) -> HoodieWriteStat:
    """As Hudi's `HoodieCompactor` fills it. A slice without a base file counts as a new group, as there."""
    piece, scanned = merging.task.piece.slice, merging.merge.scanned
    created = piece.base_file is None
    write_ms = took_ms - merging.scan_ms
    return HoodieWriteStat(
        file_id=file.file_id,
        path=file.path,
        prev_commit=_NEW_GROUP if created else piece.base_instant,
        partition_path=file.partition_path,
        num_writes=rows,
        num_deletes=merging.deletes,
        num_update_writes=merging.updates,
        num_inserts=merging.inserts,
        total_write_bytes=size,
        file_size_in_bytes=size,
        total_log_records=merging.merge.outcome.records,
        total_log_files_compacted=scanned.files,
        total_log_size_compacted=sum(log.size for log in piece.log_files),
        total_updated_records_compacted=len(merging.merge.outcome.keys),
        total_log_blocks=scanned.total,
        total_corrupt_log_block=scanned.corrupt,
        total_rollback_blocks=scanned.rollbacks,
        runtime_stats={
            "totalScanTime": merging.scan_ms,
            "totalUpsertTime": 0 if created else write_ms,
            "totalCreateTime": write_ms if created else 0,
        },
    )
