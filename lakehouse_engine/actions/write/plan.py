"""Which file group does what: the plan of a write, made on the driver from keys alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.actions.pending import check_not_pending, pending_groups
from lakehouse_engine.actions.write.assign import SizedFile, assign_inserts, average_record_size, split_evenly
from lakehouse_engine.actions.write.bulk import ENCODED_SHARE
from lakehouse_engine.actions.write.context import WriteContext
from lakehouse_engine.actions.write.input import Batch
from lakehouse_engine.actions.write.moves import Moves, part_of, winners
from lakehouse_engine.actions.write.source import Rows
from lakehouse_engine.actions.write.tasks import NO_ROWS, CreateTask, FileContext, MergeTask
from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import UnsupportedTableError
from lakehouse_engine.format.file_names import new_file_id
from lakehouse_engine.index.base import KeyedRows, TaggedFile
from lakehouse_engine.index.simple import KeyColumnIndex, RowNumbers
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import IS_DELETED
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.read.footer import read_footer
from lakehouse_engine.view.table_state import TableState

_MOST_MEASURED = 32
"""Base files of a partition whose footers are read to fill the small ones and to learn the size of a record."""


@dataclass(frozen=True, slots=True)
class WritePlan:
    """Tasks of a commit. `moves` counts records that leave one partition for another."""

    merges: tuple[MergeTask, ...] = ()
    creates: tuple[CreateTask, ...] = ()
    moves: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.merges and not self.creates

    @property
    def tasks(self) -> list[MergeTask | CreateTask]:
        return [*self.merges, *self.creates]

    def profile(self) -> dict[str, tuple[HoodieWriteStat, ...]]:
        """The plan as Hudi's inflight commits hold it: planned inserts of each partition, then each group that is updated."""
        stats: dict[str, list[HoodieWriteStat]] = {}
        inserts: dict[str, int] = {}
        for create in self.creates:
            inserts[create.partition_path] = inserts.get(create.partition_path, 0) + _count(create)
        for merge in self.merges:
            path = merge.base.partition_path
            inserts[path] = inserts.get(path, 0) + len(merge.inserts)
        for path, count in inserts.items():
            stats[path] = [HoodieWriteStat(file_id="", path=None, num_inserts=count)]
        for merge in self.merges:
            updates = len(merge.positions) + len(merge.deletes)
            stat = HoodieWriteStat(file_id=merge.base.file_id, path=None, prev_commit=merge.base.instant_time, num_update_writes=updates)
            stats[merge.base.partition_path].append(stat)
        return {path: tuple(group) for path, group in stats.items()}


def _count(task: CreateTask) -> int:
    return task.source.num_rows if task.rows is None else len(task.rows)


@dataclass(slots=True)
class _Change:
    """What happens to one existing base file; parts are joined at the end."""

    base: BaseFile
    positions: Rows = field(default_factory=lambda: NO_ROWS)
    rows: Rows = field(default_factory=lambda: NO_ROWS)
    deletes: list[Rows] = field(default_factory=list)
    inserts: Rows = field(default_factory=lambda: NO_ROWS)


class _Plan:
    """Collects changes of files and new groups; numbers the tasks."""

    def __init__(self, state: TableState, context: WriteContext, files: FileContext, batch: Batch) -> None:
        self.state, self.context, self.files, self.batch = state, context, files, batch
        self.pending = pending_groups(state)
        self.changes: dict[str, _Change] = {}
        self.creates: list[tuple[str, Rows]] = []

    def change(self, base: BaseFile) -> _Change:
        check_not_pending(base, self.pending)
        if self.context.config.cdc_enabled:
            raise UnsupportedTableError(
                "changing files of a table with change data capture is not supported yet; new records can be inserted",
                table=self.context.config.name,
            )
        return self.changes.setdefault(base.path, _Change(base))

    def insert(self, indices: Rows) -> None:
        """New records, by partition: to small files first."""
        if not len(indices):
            return
        chosen = np.zeros(len(self.batch.rows), dtype=bool)
        chosen[indices] = True
        for partition, rows in self.batch.rows_by_partition().items():
            self._insert_into(partition, rows[chosen[rows]])

    def _insert_into(self, partition: str, indices: Rows) -> None:
        if not len(indices):
            return
        sized = self._sized_files(partition)
        size = average_record_size(sized, fallback=_bytes_per_row(self.batch))
        open_files = [file for file in sized if (partition, file.base.file_id) not in self.pending]
        if self.context.config.cdc_enabled:
            open_files = []
        assignment = assign_inserts(indices, open_files, size, self.files.options)
        for base, rows in assignment.to_files:
            self.change(base).inserts = self.batch.rows[rows]
        self.creates += [(partition, self.batch.rows[rows]) for rows in assignment.to_new]

    def _sized_files(self, partition: str) -> list[SizedFile]:
        bases = [piece.base_file for piece in self.state.view.latest_slices(partition) if piece.base_file is not None]
        bases.sort(key=lambda base: base.size)
        half = _MOST_MEASURED // 2
        measured = bases if len(bases) <= _MOST_MEASURED else bases[:half] + bases[-half:]
        return [self._measure(base) for base in measured]

    def _measure(self, base: BaseFile) -> SizedFile:
        footer = read_footer(self.files.storage, base.path)
        return SizedFile(base, footer.num_rows, max(0, base.size - len(footer.bloom or "")))

    def finish(self, moves: int = 0) -> WritePlan:
        merges = [self._merge(number, change) for number, change in enumerate(self.changes.values())]
        creates = [
            CreateTask(self.files, len(merges) + number, partition, new_file_id(), self.batch.source, rows)
            for number, (partition, rows) in enumerate(self.creates)
        ]
        return WritePlan(tuple(merges), tuple(creates), moves)

    def _merge(self, number: int, change: _Change) -> MergeTask:
        deletes = np.unique(np.concatenate(change.deletes)) if change.deletes else NO_ROWS
        return MergeTask(
            context=self.files,
            task=number,
            base=change.base,
            source=self.batch.source,
            merger=self.context.merger,
            ordering_fields=self.context.ordering_fields,
            positions=change.positions,
            rows=change.rows,
            deletes=deletes,
            inserts=change.inserts,
        )


def _bytes_per_row(batch: Batch) -> float:
    sample = batch.source.take(batch.rows[:1000])
    return float(sample.nbytes / max(1, sample.num_rows) * ENCODED_SHARE)


def plan_new_groups(files: FileContext, batch: Batch) -> WritePlan:
    """Every row of the batch into new file groups of the target size."""
    most = max(1, int(files.options.max_file_size / max(1.0, _bytes_per_row(batch))))
    creates: list[CreateTask] = []
    for partition, indices in batch.rows_by_partition().items():
        for part in split_evenly(indices, most):
            creates.append(CreateTask(files, len(creates), partition, new_file_id(), batch.source, batch.rows[part]))
    return WritePlan(creates=tuple(creates))


def plan_inserts(state: TableState, context: WriteContext, files: FileContext, batch: Batch) -> WritePlan:
    """Every row of the batch is new: small files first, then new groups. Nothing is looked up."""
    plan = _Plan(state, context, files, batch)
    plan.insert(_alive(batch, np.arange(len(batch.rows), dtype=np.int64)))
    return plan.finish()


def plan_deletes(state: TableState, context: WriteContext, files: FileContext, batch: Batch, runner: TaskRunner) -> WritePlan:
    """Drop every stored row with a key of the batch."""
    plan = _Plan(state, context, files, batch)
    for tagged in _tag(state, context, batch, runner):
        plan.change(tagged.base).deletes.append(tagged.positions)
    return plan.finish()


def plan_upsert(
    state: TableState, context: WriteContext, files: FileContext, batch: Batch, deletes: Batch | None, runner: TaskRunner
) -> WritePlan:
    """Known keys to where they are (or away from there, when they move), new ones to small files and new groups."""
    plan = _Plan(state, context, files, batch)
    moves = Moves(context, files, batch)
    settled = np.zeros(len(batch.rows), dtype=bool)
    for tagged in _tag(state, context, batch, runner):
        stays, goes = moves.split(tagged)
        if len(stays.rows):
            change = plan.change(stays.base)
            change.positions, change.rows = stays.positions, batch.rows[stays.rows]
        if len(goes.rows):
            plan.change(goes.base).deletes.append(goes.positions)
        # What stays somewhere, or loses there, is not inserted elsewhere, even if a second record of its key is stored.
        settled[np.setdiff1d(tagged.rows, goes.rows)] = True
    if deletes is not None:
        _add_deletes(plan, state, context, batch, deletes, runner)
    moved = moves.rows[~settled[moves.rows]]
    settled[moves.rows] = True
    plan.batch = moves.patched_batch()
    plan.insert(_alive(plan.batch, np.union1d(np.flatnonzero(~settled), moved).astype(np.int64)))
    return plan.finish(moves=len(_alive(plan.batch, moved)))


def plan_replacement(
    state: TableState, context: WriteContext, files: FileContext, batch: Batch, replaced: Batch, runner: TaskRunner
) -> WritePlan:
    """Drop the stored rows whose numbers are the keys of `replaced`; every row of the batch is new."""
    plan = _Plan(state, context, files, batch)
    numbers = KeyedRows(replaced.keys, replaced.rows_by_partition())
    for tagged in KeyColumnIndex(is_global=True, use_bloom=False).tag(state.storage, state.view, numbers, RowNumbers(), runner):
        plan.change(tagged.base).deletes.append(tagged.positions)
    plan.insert(_alive(batch, np.arange(len(batch.rows), dtype=np.int64)))
    return plan.finish()


def _tag(state: TableState, context: WriteContext, batch: Batch, runner: TaskRunner) -> list[TaggedFile]:
    keyed = KeyedRows(batch.keys, batch.rows_by_partition())
    return context.index.tag(state.storage, state.view, keyed, context.stored_keys, runner)


def _add_deletes(
    plan: _Plan, state: TableState, context: WriteContext, batch: Batch, deletes: Batch, runner: TaskRunner
) -> None:
    """Keys to delete that are not also in the batch (a row that is there is an upsert), and not older than what is stored."""
    both = pc.is_in(deletes.identity(context.is_global), value_set=batch.identity(context.is_global))
    only = np.flatnonzero(~both.to_numpy(zero_copy_only=False)).astype(np.int64)
    chosen = pa.array(only)
    rest = Batch(deletes.source, deletes.rows[only], deletes.keys.take(chosen), deletes.partitions.take(chosen), 0)
    for tagged in _tag(state, context, rest, runner):
        gone = part_of(tagged, winners(context, plan.files, rest, tagged))
        if len(gone.rows):
            plan.change(gone.base).deletes.append(gone.positions)


def _alive(batch: Batch, indices: Rows) -> Rows:
    """Rows that `_hoodie_is_deleted` does not mark: deleting what is not there does nothing."""
    if not len(indices) or IS_DELETED not in batch.source.take(batch.rows[:1]).column_names:
        return indices
    marks = batch.source.columns([IS_DELETED]).column(0).take(pa.array(batch.rows[indices]))
    return np.asarray(indices[~np.asarray(pc.fill_null(marks, False))], dtype=np.int64)
