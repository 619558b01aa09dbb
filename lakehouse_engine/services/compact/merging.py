"""Fold the logs of one slice into its next base file: what runs per slice, on an executor or in a thread."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lakehouse_engine.files.base_file import iter_base_file
from lakehouse_engine.files.log_scanner import LoggedSlice
from lakehouse_engine.files.row_pool import SpillTo, take_rows
from lakehouse_engine.files.slice_reader import SliceMerge, SliceReader, plain
from lakehouse_engine.format.file_names import marker_folder
from lakehouse_engine.model.keys import META_COLUMNS
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.write.tasks.base_files import FileContext, Portion, WrittenFile, inherited_filter, next_version, write_base_file

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
class _Folding:
    """The slice of a task on its way into its next base file. `merge` and `scan_ms` are there once the logs have been read."""

    task: CompactTask
    spill: SpillTo
    merge: SliceMerge = field(init=False)
    scan_ms: int = 0

    def portions(self) -> Iterator[Portion]:
        """Row group by row group: kept rows as they were, changed rows behind them; at the end rows that only the logs have."""
        task, base, began = self.task, self.task.piece.slice.base_file, time.monotonic()
        # What is written anew goes by keys, whatever positions the logs say.
        self.merge = replace(task.reader, by_position=False).merge(task.piece, task.columns, self.spill)
        self.scan_ms = _milliseconds(began)
        if base is not None:
            for group in iter_base_file(task.reader.storage, base, task.context.schema, meta_columns=META_COLUMNS):
                yield from self._group(group)
        new, step = np.sort(self.merge.insert_numbers()), task.context.options.row_group_rows
        for start in range(0, len(new), step):
            rows = take_rows(self.merge.outcome.data, new[start : start + step])
            yield Portion(rows.select(list(task.columns)), new_keys=True, inserts=rows.num_rows)

    def _group(self, group: pa.Table) -> Iterator[Portion]:
        if not self.merge.rules.merger.whole_rows:
            # Rows made of two take their values from either side, which must have the same types.
            group = group.cast(plain(group.schema))
        removed, replaced = self.merge.pairs(group)
        kept = np.ones(group.num_rows, np.bool_)
        kept[removed] = False
        rows = group.filter(pa.array(kept)) if len(removed) else group
        yield Portion(rows.select(list(self.task.columns)), deletes=len(removed) - replaced.num_rows)
        yield Portion(replaced.select(list(self.task.columns)), updates=replaced.num_rows)


def compact_slice(task: CompactTask) -> HoodieWriteStat:
    """Write the base file that a slice becomes; its stat for the commit record. A slice whose rows are all gone makes an empty one.

    Rows keep their commit time, seqno and key. Raises as `SliceReader.merge` and `iter_base_file`.
    """
    context, piece = task.context, task.piece.slice
    began = time.monotonic()
    file = next_version(context, piece.partition_path, piece.file_id, task.task)
    spill = SpillTo(context.storage, f"{marker_folder(context.instant_time)}/.spill/{file.name}", task.memory_bytes)
    inherited = inherited_filter(context, task.reader.storage, piece.base_file)
    folding, merges = _Folding(task, spill), piece.base_file is not None
    try:
        written = write_base_file(context, file, task.task, folding.portions(), merges=merges, inherited=inherited)
    finally:
        context.storage.delete_tree(spill.folder)
    return _stat(folding, written, _milliseconds(began))


def _milliseconds(since: float) -> int:
    """Since a moment of the monotonic clock."""
    return int((time.monotonic() - since) * 1000)


def _stat(folding: _Folding, written: WrittenFile, took_ms: int) -> HoodieWriteStat:
    """As Hudi's `HoodieCompactor` fills it. A slice without a base file counts as a new group, as there."""
    piece, merge = folding.task.piece.slice, folding.merge
    created = piece.base_file is None
    write_ms = took_ms - folding.scan_ms
    return replace(
        written.stat(_NEW_GROUP if created else piece.base_instant),
        total_log_records=merge.outcome.records,
        total_log_files_compacted=merge.scanned.files,
        total_log_size_compacted=sum(log.size for log in piece.log_files),
        total_updated_records_compacted=len(merge.outcome.keys),
        total_log_blocks=merge.scanned.total,
        total_corrupt_log_block=merge.scanned.corrupt,
        total_rollback_blocks=merge.scanned.rollbacks,
        runtime_stats={
            "totalScanTime": folding.scan_ms,
            "totalUpsertTime": 0 if created else write_ms,
            "totalCreateTime": write_ms if created else 0,
        },
    )
