"""The work done for a file group, on an executor or in a thread: create a base file, or merge changes into one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lakehouse_engine.files.base_file import RowGroups, opened_groups
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import FILE_NAME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
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
    cut,
    given_portions,
    inherited_keys,
    is_large,
    next_version,
    write_base_file,
)
from lakehouse_engine.write.tasks.copying import KEPT_META, Copying, unchanged
from lakehouse_engine.write.tasks.dictionaries import values_at


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

    `positions` (ascending row numbers in the base file) meet `rows` of `source`, one to one; `deletes` are base rows to drop; `inserts` are
    rows of `source` to add. Ordering values decide who wins through `merger`; `marks` finds the rows that delete.
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
    """Write the next version of a base file. No stat if every change lost against what is stored."""
    context, base = task.context, task.base
    file = next_version(context, base.partition_path, base.file_id, task.task)
    inherited = inherited_keys(context, context.storage, base)
    with opened_groups(context.storage, base, context.schema, meta_columns=META_COLUMNS, whole=True) as groups:
        copying = Copying.of(context, groups, inherited, joined=len(task.inserts) > 0)
        portions, pattern = _merged(task, groups, copying), None if copying is None else copying.pattern
        written = write_base_file(context, file, task.task, portions, merges=True, inherited=inherited, pattern=pattern)
    return written.changed(base.instant_time)


def _merged(task: MergeTask, groups: RowGroups, copying: Copying | None) -> Iterator[Portion]:
    """Portions of the row groups, each changed row in its place, then the new rows."""
    start = 0
    for number in range(groups.file.num_row_groups):
        yield from _Group(task, groups, number, start, copying if copying is not None and copying.takes(number) else None).portions()
        start += groups.num_rows(number)
    yield from given_portions(task.context, task.source, task.inserts)


@dataclass(frozen=True, slots=True)
class _Changed:
    """Changed rows of a row group: their `places` (ascending), their new values, and the places of deleted rows."""

    places: Rows
    given: pa.Table
    gone: Rows


@dataclass(frozen=True, slots=True)
class _Group:
    """A row group of the base file, which begins at row number `start`. `copying` is given if its chunks may be copied."""

    task: MergeTask
    groups: RowGroups
    number: int
    start: int
    copying: Copying | None

    def portions(self) -> Iterator[Portion]:
        deletes, met = self._within(self.task.deletes), self._within(self.task.positions)
        dropped, places = self.task.deletes[deletes] - self.start, self.task.positions[met] - self.start
        if not len(places):  # rows that only name keys have nothing to compare
            yield from self._rewritten(self._read(None), None, dropped) if len(dropped) else [self._as_it_is()]
            return
        copying = None if len(dropped) else self.copying
        stored = self._read(copying)
        change = self._changed(stored, places, self.task.rows[met])
        if copying is None or len(change.gone) or is_large(stored, change.given):
            yield from self._rewritten(stored if copying is None else self._read(None), change, dropped)
        elif not len(change.places):
            yield self._as_it_is()
        else:
            yield self._beside_copied(stored, change, copying)

    def _beside_copied(self, stored: pa.Table, change: _Changed, copying: Copying) -> Portion:
        same = KEPT_META.union(unchanged(stored, change.given, change.places))
        # Arrow drops columns one by one, and copies the list of all columns each time.
        rest = stored.select([name for name in stored.column_names if name not in same])
        return Portion(rest, change.given, change.places, copied=copying.chunks(self.number, same), updates=len(change.places))

    def _within(self, numbers: Rows) -> slice:
        low, high = np.searchsorted(numbers, [self.start, self.start + self.groups.num_rows(self.number)])
        return slice(int(low), int(high))

    def _read(self, copying: Copying | None) -> pa.Table:
        """Stored rows, without the columns that are always copied."""
        if copying is None:
            return self.groups.read(self.number)
        return copying.repeating.read(self.number, columns={name for name in self.groups.wanted.names if name not in KEPT_META})

    def _as_it_is(self) -> Portion:
        if self.copying is None:
            return Portion(self._read(None))
        return Portion(self.groups.read(self.number, columns=[FILE_NAME]), copied=self.copying.all_chunks(self.number))

    def _rewritten(self, stored: pa.Table, change: _Changed | None, dropped: Rows) -> Iterator[Portion]:
        if change is None:
            given, met, gone, counted = None, NO_ROWS, dropped, Portion(deletes=len(dropped))
        else:
            given, met, gone = change.given, change.places, np.setdiff1d(np.union1d(dropped, change.gone), change.places)
            counted = Portion(updates=len(met), deletes=len(dropped) + len(change.gone))
        for rows, incoming, places, lost in cut(stored, given, met, gone):
            yield replace(counted, stored=rows, given=incoming, places=places, gone=lost)
            counted = Portion()

    def _changed(self, stored: pa.Table, places: Rows, rows: Rows) -> _Changed:
        merger, incoming = self.task.merger, self.task.source.take(rows)
        wins, goes = self._decide(stored, places, incoming)
        alive = ~self.task.marks.of(incoming)
        stays = ~goes & (alive if merger.losers_matter else wins & alive)
        gone = places[goes]
        if not stays.all():
            places, wins, incoming = places[stays], wins[stays], incoming.filter(pa.array(stays))
        return _Changed(places, incoming if merger.whole_rows else _combined(merger, stored, places, incoming, wins), gone)

    def _decide(self, stored: pa.Table, places: Rows, incoming: pa.Table) -> tuple[Mask, Mask]:
        """For each pair: whether the incoming row wins, and whether it deletes the stored one."""
        task, everything = self.task, np.ones(len(places), dtype=bool)
        compared = task.ordering if task.merger.compares_ordering else NO_ORDERING
        old, new = compared.values(values_at(stored, compared.roots, places)), compared.values(incoming)
        wins = task.merger.wins(old, new)
        marked = task.marks.of(incoming)
        deletes = task.merger.deletes(old, new) if marked.any() else None
        return (everything if wins is None else wins), marked & (everything if deletes is None else deletes)


def _combined(merger: RecordMerger, group: pa.Table, positions: Rows, incoming: pa.Table, wins: Mask) -> pa.Table:
    user = [name for name in incoming.column_names if name not in (RECORD_KEY, PARTITION_PATH)]
    base = values_at(group, user, positions)
    merged = merger.combine(base, incoming.select(user), None if wins.all() else wins)
    keys = [incoming.column(name) for name in (RECORD_KEY, PARTITION_PATH)]
    return pa.table([*keys, *merged.columns], names=[RECORD_KEY, PARTITION_PATH, *user])
