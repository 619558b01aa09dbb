"""Plans a copy-on-write table's file groups: a changed group gets a new base file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.index.bucket import BucketIndex
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.context import refuse_cdc
from lakehouse_engine.write.locate.numbered import FoundNumbers
from lakehouse_engine.write.locate.stored_once import check_stored_once
from lakehouse_engine.write.locate.target import Write
from lakehouse_engine.write.plan.assign import SizedFile
from lakehouse_engine.write.plan.buckets import place_in_bases
from lakehouse_engine.write.plan.cow_moves import Moves, part_of, winners
from lakehouse_engine.write.plan.placing import NewGroup, Placement, Places, alive, new_group_tasks, unplaced
from lakehouse_engine.write.plan.write_plan import WritePlan
from lakehouse_engine.write.source import Rows
from lakehouse_engine.write.tasks.base_changes import MergeTask
from lakehouse_engine.write.tasks.base_files import NO_ROWS


@dataclass(slots=True)
class FileChange:
    """Changes of one existing base file; parts are joined at the end."""

    base: BaseFile
    positions: Rows = field(default_factory=lambda: NO_ROWS)
    rows: Rows = field(default_factory=lambda: NO_ROWS)
    deletes: list[Rows] = field(default_factory=list)
    inserts: Rows = field(default_factory=lambda: NO_ROWS)


class CowPlan:
    """Collects changes of files and new groups; numbers the tasks. `moves` counts records that change partition, `left_out` inserted rows
    that are skipped because their key is stored.
    """

    def __init__(self, write: Write, batch: Batch) -> None:
        self.write, self.target, self.context, self.files, self.batch = write, write.target, write.context, write.files, batch
        self.changes: dict[str, FileChange] = {}
        self.creates: list[NewGroup] = []
        self.moves = self.left_out = 0

    def change(self, base: BaseFile) -> FileChange:
        refuse_cdc(self.context.config)
        return self.changes.setdefault(base.path, FileChange(base))

    def insert(self, indices: Rows) -> None:
        """New records by partition: to their bucket's group, else to small files first."""
        index = self.context.index
        if isinstance(index, BucketIndex):
            placement = place_in_bases(index.layout, self.batch, self.target.view, indices)
        elif self.target.is_part:
            placement = Placement(to_new=unplaced(self.batch, indices))
        else:
            placement = self.places.place(self.batch, indices)
        for base, rows in placement.to_files:
            self.change(base).inserts = rows
        self.creates += placement.to_new

    @property
    def places(self) -> Places:
        """Files that may take new records."""
        return Places(self.files, self._bases, self._open)

    def _bases(self, partition: str) -> list[BaseFile]:
        return [piece.base_file for piece in self.target.view.latest_slices(partition) if piece.base_file is not None]

    def _open(self, sized: Sequence[SizedFile]) -> list[SizedFile]:
        if self.context.config.cdc_enabled:
            return []
        return [file for file in sized if (file.base.partition_path, file.base.file_id) not in self.target.clustering]

    def finish(self, runner: TaskRunner, first_task: int = 0) -> WritePlan:
        """The tasks, numbered from `first_task`."""
        merges = [self._merge(number, change) for number, change in enumerate(self.changes.values(), first_task)]
        creates = new_group_tasks(self.files, self.creates, self.batch.source, first_task + len(merges))
        return WritePlan(tuple(merges), creates, moves=self.moves)

    def _merge(self, number: int, change: FileChange) -> MergeTask:
        deletes = np.unique(np.concatenate(change.deletes)) if change.deletes else NO_ROWS
        return MergeTask(
            context=self.files,
            task=number,
            base=change.base,
            source=self.batch.source,
            merger=self.context.merger,
            ordering=self.context.ordering,
            marks=self.context.marks,
            positions=change.positions,
            rows=change.rows,
            deletes=deletes,
            inserts=change.inserts,
        )


def plan_inserts(write: Write, batch: Batch, runner: TaskRunner) -> CowPlan:
    """Every row of the batch is new: small files first, then new groups. Nothing is looked up."""
    plan = CowPlan(write, batch)
    plan.insert(alive(batch, np.arange(len(batch.rows), dtype=np.int64), plan.context.marks))
    return plan


def plan_deletes(write: Write, batch: Batch, runner: TaskRunner) -> CowPlan:
    """Delete every stored row with a key of the batch."""
    plan = CowPlan(write, batch)
    found = write.tag(batch, runner)
    check_stored_once(write.context, batch, (tagged.rows for tagged in found))
    for tagged in found:
        plan.change(tagged.base).deletes.append(tagged.positions)
    return plan


def plan_upsert(write: Write, batch: Batch, deletes: Batch | None, runner: TaskRunner) -> CowPlan:
    """Known keys go to their place (or are deleted there, if they move), new ones to small files and new groups."""
    plan = CowPlan(write, batch)
    moves = Moves(write, batch)
    settled = np.zeros(len(batch.rows), dtype=bool)
    found = write.tag(batch, runner)
    check_stored_once(write.context, batch, (tagged.rows for tagged in found))
    for tagged in found:
        stays, goes = moves.split(tagged)
        if len(stays.rows):
            change = plan.change(stays.base)
            change.positions, change.rows = stays.positions, batch.rows[stays.rows]
        if len(goes.rows):
            plan.change(goes.base).deletes.append(goes.positions)
        # A record that stays somewhere, or loses there, is not inserted elsewhere, even if a second record of its key is stored.
        settled[np.setdiff1d(tagged.rows, goes.rows) if len(goes.rows) else tagged.rows] = True
    if deletes is not None:
        _add_deletes(plan, batch, deletes, runner)
    moved = moves.rows[~settled[moves.rows]]
    settled[moves.rows] = True
    plan.batch = moves.patched_batch()
    plan.insert(alive(plan.batch, np.union1d(np.flatnonzero(~settled), moved).astype(np.int64), plan.context.marks))
    plan.moves = len(alive(plan.batch, moved, plan.context.marks))
    return plan


def plan_replacement(write: Write, batch: Batch, gone: Sequence[FoundNumbers]) -> CowPlan:
    """Delete stored rows by position; every row of the batch is new."""
    plan = CowPlan(write, batch)
    for one in gone:
        assert one.piece.base_file is not None
        plan.change(one.piece.base_file).deletes.append(one.positions)
    plan.insert(alive(batch, np.arange(len(batch.rows), dtype=np.int64), plan.context.marks))
    return plan


def _add_deletes(plan: CowPlan, batch: Batch, deletes: Batch, runner: TaskRunner) -> None:
    """Keys to delete that are not also in the batch (that is an upsert), and are not older than the stored row."""
    context = plan.context
    rest = deletes.without(batch, is_global=context.is_global)
    found = plan.write.tag(rest, runner)
    check_stored_once(context, rest, (tagged.rows for tagged in found))
    for tagged in found:
        gone = part_of(tagged, winners(plan.write, rest, tagged))
        if len(gone.rows):
            plan.change(gone.base).deletes.append(gone.positions)
