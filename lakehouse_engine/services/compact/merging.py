"""Folds the logs of one slice into its next base file: the task per slice of a compaction, on an executor or in a thread."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lakehouse_engine.files.base_file import RowGroups, opened_groups
from lakehouse_engine.files.row_pool import SpillTo, take_rows
from lakehouse_engine.files.slice_reader import BaseRowsBy, Met, SliceMerge, SliceReader, plain
from lakehouse_engine.format.file_names import marker_folder
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import FILE_NAME, META_COLUMNS
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.write.tasks.base_files import (
    FileContext,
    Portion,
    WrittenFile,
    cut,
    encoded,
    inherited_keys,
    is_large,
    next_version,
    placed,
    write_base_file,
)
from lakehouse_engine.write.tasks.copying import KEPT_META, Copying, unchanged

_NEW_GROUP = "null"


@dataclass(frozen=True, slots=True)
class CompactTask:
    """One slice, numbered by `task`. `reader` sees the logs as of the compaction; rows beyond `memory_bytes` are spilled to files.

    The slice belongs to the reader's table, the new file to the context's; for a compaction both are the same table.
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
    """State of a task while it writes the next base file. `base` are the row groups of the present one, None if there is none, and
    `copying` their chunks to copy. `merge` and `scan_ms` are set once the logs have been read.
    """

    task: CompactTask
    spill: SpillTo
    base: RowGroups | None
    copying: Copying | None
    merge: SliceMerge = field(init=False)
    scan_ms: int = 0

    def portions(self) -> Iterator[Portion]:
        """Yield row group by row group, each row in its place, then rows that only the logs have."""
        task, began = self.task, time.monotonic()
        # Rewriting goes by keys, even if the logs have positions.
        self.merge = replace(task.reader, base_rows=BaseRowsBy.KEYS).merge(task.piece, task.columns, self.spill)
        self.scan_ms = _milliseconds(began)
        if self.base is not None:
            for number in range(self.base.file.num_row_groups):
                yield from self._group(self.base, number)
        new, step = np.sort(self.merge.insert_numbers()), task.context.options.row_group_rows
        for start in range(0, len(new), step):
            rows = take_rows(self.merge.outcome.data, new[start : start + step])
            yield Portion(rows.select(list(task.columns)), new_keys=True, inserts=rows.num_rows)

    def _group(self, base: RowGroups, number: int) -> Iterator[Portion]:
        copying = self.copying if self.copying is not None and self.copying.takes(number) else None
        if copying is None:
            group = self._typed(base.read(number))
            met = self.merge.met(group)
            yield from self._rewritten(group, met, self.merge.replacing(group, met))
            return
        needed = base.read(number, columns=self.merge.rules.columns(self.task.reader.schema, base=True))
        met = self.merge.met(needed)
        if not len(met.removed):
            yield Portion(base.read(number, columns=[FILE_NAME]), copied=copying.all_chunks(number))
            return
        # Merged rows, and row groups encoded without copied chunks, have the table's types, not dictionaries.
        beside = self.merge.rules.whole_rows and not len(met.gone)
        group = self._whole(copying.repeating if beside else base, number, needed)
        after = self.merge.replacing(group, met)
        if len(met.gone) or is_large(group, after):
            yield from self._rewritten(self._whole(base, number, needed) if beside else group, met, after)
        else:
            yield self._beside_copied(group, met, after, copying, number)

    def _whole(self, groups: RowGroups, number: int, needed: pa.Table) -> pa.Table:
        """The whole row group; `needed` are the columns that were already read."""
        known = set(needed.column_names)
        rest = groups.read(number, columns={name for name in groups.wanted.names if name not in known})
        return self._typed(pa.table({name: (needed if name in known else rest).column(name) for name in groups.wanted.names}))

    def _typed(self, group: pa.Table) -> pa.Table:
        """The group in plain types: rows merged from two take values from either side, whose types must match."""
        return group if self.merge.rules.whole_rows else group.cast(plain(group.schema))

    def _beside_copied(self, group: pa.Table, met: Met, after: pa.Table, copying: Copying, number: int) -> Portion:
        """The changed columns of a row group that loses no row, with the other columns copied."""
        same = KEPT_META.union(unchanged(group.drop_columns(list(META_COLUMNS)), after, met.places))
        columns = [name for name in self.task.columns if name not in same]
        rows = placed(encoded(group.select(columns)), encoded(after.select(columns)), met.places)
        return Portion(rows, copied=copying.chunks(number, same), updates=len(met.places))

    def _rewritten(self, group: pa.Table, met: Met, after: pa.Table) -> Iterator[Portion]:
        """All columns of the group's rows, in one piece or more."""
        columns, updates, deletes = list(self.task.columns), len(met.places), len(met.gone)
        for rows, incoming, places, lost in cut(encoded(group.select(columns)), encoded(after.select(columns)), met.places, met.gone):
            assert incoming is not None
            yield Portion(placed(rows, incoming, places, lost), updates=updates, deletes=deletes)
            updates = deletes = 0


def compact_slice(task: CompactTask) -> HoodieWriteStat:
    """Write the base file that a slice becomes; returns its stat for the commit record. If all rows are gone, the file is empty.

    Rows keep their commit time, seqno and key. Raises as `SliceReader.merge` and `iter_base_file`.
    """
    context, piece = task.context, task.piece.slice
    began = time.monotonic()
    file = next_version(context, piece.partition_path, piece.file_id, task.task)
    spill = SpillTo(context.storage, f"{marker_folder(context.instant_time)}/.spill/{file.name}", task.memory_bytes)
    inherited, base = inherited_keys(context, task.reader.storage, piece.base_file), piece.base_file
    with nullcontext() if base is None else _opened(task, base) as groups:
        # Only at the end is it known whether new rows follow those of the base file.
        copying = None if groups is None else Copying.of(context, groups, inherited, joined=True)
        folding, pattern = _Folding(task, spill, groups, copying), None if copying is None else copying.pattern
        try:
            portions, merges = folding.portions(), base is not None
            written = write_base_file(context, file, task.task, portions, merges=merges, inherited=inherited, pattern=pattern)
        finally:
            context.storage.delete_tree(spill.folder)
    return _stat(folding, written, _milliseconds(began))


def _opened(task: CompactTask, base: BaseFile) -> AbstractContextManager[RowGroups]:
    return opened_groups(task.reader.storage, base, task.context.schema, meta_columns=META_COLUMNS, whole=True)


def _milliseconds(since: float) -> int:
    """Milliseconds since a moment of the monotonic clock."""
    return int((time.monotonic() - since) * 1000)


def _stat(folding: _Folding, written: WrittenFile, took_ms: int) -> HoodieWriteStat:
    """The write stat, filled as by Hudi's `HoodieCompactor`. A slice without a base file counts as a new group, as there."""
    piece, merge = folding.task.piece.slice, folding.merge
    created = piece.base_file is None
    write_ms = took_ms - folding.scan_ms
    return replace(
        written.stat(_NEW_GROUP if created else piece.base_instant),
        total_log_records=merge.outcome.records,
        total_log_files_compacted=merge.scanned.files,
        total_log_size_compacted=sum(log.size for log in piece.log_files),
        total_updated_records_compacted=len(merge.outcome.rows),
        total_log_blocks=merge.scanned.total,
        total_corrupt_log_block=merge.scanned.corrupt,
        total_rollback_blocks=merge.scanned.rollbacks,
        runtime_stats={
            "totalScanTime": folding.scan_ms,
            "totalUpsertTime": 0 if created else write_ms,
            "totalCreateTime": write_ms if created else 0,
        },
    )
