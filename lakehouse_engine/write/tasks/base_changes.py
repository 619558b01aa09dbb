"""What runs per file group, on an executor or in a thread: create a base file, or merge changes into one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lakehouse_engine.files.base_file import iter_base_file
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import META_COLUMNS, PARTITION_PATH, RECORD_KEY
from lakehouse_engine.record.merging.deletions import HUDI_MARK, DeleteMarks
from lakehouse_engine.record.merging.mergers import RecordMerger
from lakehouse_engine.record.merging.ordering_fields import NO_ORDERING, OrderingFields
from lakehouse_engine.write.source import Rows, RowSource, packed_source
from lakehouse_engine.write.tasks.base_files import (
    NO_ROWS,
    FileContext,
    Mask,
    Portion,
    WriteStatus,
    created_stat,
    given_portions,
    inherited_filter,
    next_version,
    write_base_file,
)


@dataclass(frozen=True, slots=True)
class CreateTask:
    """Write rows of `source` (None: all of them) as a new file group."""

    context: FileContext
    task: int
    partition_path: str
    file_id: str
    source: RowSource
    rows: Rows | None

    def packed(self) -> CreateTask:
        """As `engine.Packable`."""
        return self if self.rows is None else replace(self, source=packed_source(self.source, self.rows))


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Write the next version of `base`.

    `positions` (ascending row numbers in the base file) meet `rows` of `source`, one to one; `deletes` are base rows to drop;
    `inserts` are rows of `source` to add. Ordering values decide who wins through `merger`; `marks` tells rows that delete.
    """

    context: FileContext
    task: int
    base: BaseFile
    source: RowSource
    merger: RecordMerger
    ordering: OrderingFields = NO_ORDERING
    marks: DeleteMarks = HUDI_MARK
    positions: Rows = field(default_factory=lambda: NO_ROWS)
    rows: Rows = field(default_factory=lambda: NO_ROWS)
    deletes: Rows = field(default_factory=lambda: NO_ROWS)
    inserts: Rows = field(default_factory=lambda: NO_ROWS)

    def packed(self) -> MergeTask:
        """As `engine.Packable`."""
        return replace(self, source=packed_source(self.source, self.rows, self.inserts))


def create_file(task: CreateTask) -> WriteStatus:
    """Write a new file group with every row given, in order."""
    context = task.context
    file = next_version(context, task.partition_path, task.file_id, task.task)
    written = write_base_file(context, file, task.task, given_portions(context, task.source, task.rows))
    return WriteStatus(created_stat(file, written.size, written.rows))


def merge_file(task: MergeTask) -> WriteStatus:
    """Write the next version of a base file. No status when every change lost against what is stored."""
    context, base = task.context, task.base
    file = next_version(context, base.partition_path, base.file_id, task.task)
    inherited = inherited_filter(context, context.storage, base)
    written = write_base_file(context, file, task.task, _merged(task), merges=True, inherited=inherited)
    return written.changed(base.instant_time)


def _merged(task: MergeTask) -> Iterator[Portion]:
    """Row group by row group: kept rows as they were, changed rows behind them; new rows at the end."""
    start = 0
    for group in iter_base_file(task.context.storage, task.base, task.context.schema, meta_columns=META_COLUMNS):
        yield _Group(task, group, start).portion()
        start += group.num_rows
    yield from given_portions(task.context, task.source, task.inserts)


@dataclass(slots=True)
class _Group:
    """A row group of the base file, which begins at row number `start`."""

    task: MergeTask
    group: pa.Table
    start: int

    def portion(self) -> Portion:
        keep = np.ones(self.group.num_rows, dtype=bool)
        low, high = self._within(self.task.deletes)
        keep[self.task.deletes[low:high] - self.start] = False
        dropped = int(high - low)
        low, high = self._within(self.task.positions)
        if low == high:
            return Portion(self._kept(keep), deletes=dropped)
        changed, goes = self._changed(self.task.positions[low:high] - self.start, self.task.rows[low:high], keep)
        gone = int(goes.sum())
        given = changed.filter(pa.array(~goes)) if gone else changed
        return Portion(self._kept(keep), given, updates=len(goes) - gone, deletes=dropped + gone)

    def _within(self, numbers: Rows) -> tuple[int, int]:
        low, high = np.searchsorted(numbers, [self.start, self.start + self.group.num_rows])
        return int(low), int(high)

    def _kept(self, keep: Mask) -> pa.Table:
        return self.group if keep.all() else self.group.filter(pa.array(keep))

    def _changed(self, positions: Rows, rows: Rows, keep: Mask) -> tuple[pa.Table, Mask]:
        """The rows that change, as they are to be, and which of them delete; clears their old selves in `keep`."""
        merger, incoming = self.task.merger, self.task.source.take(rows)
        wins, goes = self._decide(positions, incoming)
        alive = ~self.task.marks.of(incoming)
        touched = goes | (alive if merger.losers_matter else wins & alive)
        if not touched.all():
            positions, wins, goes = positions[touched], wins[touched], goes[touched]
            incoming = incoming.filter(pa.array(touched))
        keep[positions] = False
        return (incoming if merger.whole_rows else _combined(merger, self.group, positions, incoming, wins)), goes

    def _decide(self, positions: Rows, incoming: pa.Table) -> tuple[Mask, Mask]:
        """For each pair: whether the incoming row wins, and whether it deletes the stored one."""
        task, everything = self.task, np.ones(len(positions), dtype=bool)
        compared = task.ordering if task.merger.compares_ordering else NO_ORDERING
        old, new = compared.values(self.group.select(compared.roots).take(pa.array(positions))), compared.values(incoming)
        wins = task.merger.wins(old, new)
        marked = task.marks.of(incoming)
        deletes = task.merger.deletes(old, new) if marked.any() else None
        return (everything if wins is None else wins), marked & (everything if deletes is None else deletes)


def _combined(merger: RecordMerger, group: pa.Table, positions: Rows, incoming: pa.Table, wins: Mask) -> pa.Table:
    user = [name for name in incoming.column_names if name not in (RECORD_KEY, PARTITION_PATH)]
    base = group.select(user).take(pa.array(positions))
    merged = merger.combine(base, incoming.select(user), None if wins.all() else wins)
    keys = [incoming.column(name) for name in (RECORD_KEY, PARTITION_PATH)]
    return pa.table([*keys, *merged.columns], names=[RECORD_KEY, PARTITION_PATH, *user])
