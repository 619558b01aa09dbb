"""Plan of a write: tasks that together are its commit. Made from keys alone, by `plan.cow` or `plan.mor`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.plan.assign import split_evenly
from lakehouse_engine.write.plan.placing import NewGroup, bytes_per_row, new_group_tasks
from lakehouse_engine.write.tasks.append import AppendTask, append_logs
from lakehouse_engine.write.tasks.base_changes import CreateTask, MergeTask, create_file, merge_file
from lakehouse_engine.write.tasks.base_files import FileContext, WriteStatus
from lakehouse_engine.write.tasks.slice_merge import SliceMergeTask, merge_slice

FileTask = CreateTask | MergeTask | AppendTask | SliceMergeTask


@dataclass(frozen=True, slots=True)
class WritePlan:
    """Tasks of a commit: new base file versions, new groups, logs, and slices to rewrite with their logs.

    `moves` counts records that change partition.
    """

    merges: tuple[MergeTask, ...] = ()
    creates: tuple[CreateTask, ...] = ()
    appends: tuple[AppendTask, ...] = ()
    rewrites: tuple[SliceMergeTask, ...] = ()
    moves: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.tasks

    @property
    def tasks(self) -> list[FileTask]:
        return [*self.merges, *self.rewrites, *self.creates, *self.appends]

    def profile(self) -> dict[str, tuple[HoodieWriteStat, ...]]:
        """As `profile_of`."""
        inserts = [(create.partition_path, _count(create)) for create in self.creates]
        updates: list[Planned] = []
        for merge in self.merges:
            inserts.append((merge.base.partition_path, len(merge.inserts)))
            changed = len(merge.positions) + len(merge.deletes)
            updates.append(Planned(merge.base.partition_path, merge.base.file_id, merge.base.instant_time, changed))
        for rewrite in self.rewrites:
            inserts.append((rewrite.piece.slice.partition_path, len(rewrite.inserts)))
            piece, changed = rewrite.piece.slice, len(rewrite.rows) + len(rewrite.deletes) + len(rewrite.seqnos)
            updates.append(Planned(piece.partition_path, piece.file_id, piece.base_instant, changed))
        for group in (group for task in self.appends for group in task.groups):
            changed = len(group.rows) + len(group.deletes)
            updates.append(Planned(group.piece.partition_path, group.piece.file_id, group.base_instant, changed))
        return profile_of(inserts, updates)


@dataclass(frozen=True, slots=True)
class Planned:
    """A file group to change, and how many of its rows."""

    partition: str
    file_id: str
    base_instant: str
    changed: int


def profile_of(inserts: Iterable[tuple[str, int]], updates: Iterable[Planned]) -> dict[str, tuple[HoodieWriteStat, ...]]:
    """The plan in the form of Hudi's inflight commits: planned inserts per partition, then each updated group."""
    new: dict[str, int] = defaultdict(int)
    for path, count in inserts:
        new[path] += count
    changed = list(updates)
    stats: dict[str, list[HoodieWriteStat]] = {}
    for path in dict.fromkeys([*new, *(one.partition for one in changed)]):
        stats[path] = [HoodieWriteStat(file_id="", path=None, num_inserts=new.get(path, 0))]
    for one in changed:
        stat = HoodieWriteStat(file_id=one.file_id, path=None, prev_commit=one.base_instant, num_update_writes=one.changed)
        stats[one.partition].append(stat)
    return {path: tuple(group) for path, group in stats.items()}


def _count(task: CreateTask) -> int:
    return task.source.num_rows if task.rows is None else len(task.rows)


def run_task(task: FileTask) -> list[WriteStatus]:
    """Any task of a plan, for a runner that gets them all."""
    if isinstance(task, AppendTask):
        return append_logs(task)
    if isinstance(task, SliceMergeTask):
        return [merge_slice(task)]
    return [merge_file(task) if isinstance(task, MergeTask) else create_file(task)]


def plan_new_groups(files: FileContext, batch: Batch) -> WritePlan:
    """Every row of the batch to new file groups of the target size."""
    most = max(1, int(files.options.max_file_size / max(1.0, bytes_per_row(batch))))
    groups = [
        NewGroup(partition, batch.rows[part])
        for partition, indices in batch.rows_by_partition().items()
        for part in split_evenly(indices, most)
    ]
    return WritePlan(creates=new_group_tasks(files, groups, batch.source, 0))
