"""The plan of a write: tasks that together are its commit. Made on the driver from keys alone, by `plan_cow` or `plan_mor`."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.write.append import AppendTask, append_logs
from lakehouse_engine.write.assign import split_evenly
from lakehouse_engine.write.input import Batch
from lakehouse_engine.write.placing import NewGroup, bytes_per_row, new_group_tasks
from lakehouse_engine.write.slice_merge import SliceMergeTask, merge_slice
from lakehouse_engine.write.tasks import CreateTask, FileContext, MergeTask, WriteStatus, create_file, merge_file

FileTask = CreateTask | MergeTask | AppendTask | SliceMergeTask


@dataclass(frozen=True, slots=True)
class WritePlan:
    """Tasks of a commit: new versions of base files, new groups, logs, and slices to be rewritten with their logs.

    `moves` counts records that leave one partition for another.
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
        """The plan as Hudi's inflight commits hold it: planned inserts of each partition, then each group that is updated."""
        inserts: dict[str, int] = defaultdict(int)
        updates: list[tuple[str, HoodieWriteStat]] = []
        for create in self.creates:
            inserts[create.partition_path] += _count(create)
        for merge in self.merges:
            inserts[merge.base.partition_path] += len(merge.inserts)
            changed = len(merge.positions) + len(merge.deletes)
            updates.append(_planned(merge.base.partition_path, merge.base.file_id, merge.base.instant_time, changed))
        for rewrite in self.rewrites:
            piece, changed = rewrite.piece.slice, len(rewrite.rows) + len(rewrite.deletes) + len(rewrite.seqnos)
            updates.append(_planned(piece.partition_path, piece.file_id, piece.base_instant, changed))
        for group in (group for task in self.appends for group in task.groups):
            changed = len(group.rows) + len(group.deletes)
            updates.append(_planned(group.piece.partition_path, group.piece.file_id, group.base_instant, changed))
        stats: dict[str, list[HoodieWriteStat]] = {}
        for path in dict.fromkeys([*inserts, *(path for path, _ in updates)]):
            stats[path] = [HoodieWriteStat(file_id="", path=None, num_inserts=inserts.get(path, 0))]
        for path, stat in updates:
            stats[path].append(stat)
        return {path: tuple(group) for path, group in stats.items()}


def _count(task: CreateTask) -> int:
    return task.source.num_rows if task.rows is None else len(task.rows)


def _planned(path: str, file_id: str, instant_time: str, changed: int) -> tuple[str, HoodieWriteStat]:
    return path, HoodieWriteStat(file_id=file_id, path=None, prev_commit=instant_time, num_update_writes=changed)


def run_task(task: FileTask) -> list[WriteStatus]:
    """Any task of a plan, for a runner that is given them all."""
    if isinstance(task, AppendTask):
        return append_logs(task)
    if isinstance(task, SliceMergeTask):
        return [merge_slice(task)]
    return [merge_file(task) if isinstance(task, MergeTask) else create_file(task)]


def plan_new_groups(files: FileContext, batch: Batch) -> WritePlan:
    """Every row of the batch into new file groups of the target size."""
    most = max(1, int(files.options.max_file_size / max(1.0, bytes_per_row(batch))))
    groups = [
        NewGroup(partition, batch.rows[part])
        for partition, indices in batch.rows_by_partition().items()
        for part in split_evenly(indices, most)
    ]
    return WritePlan(creates=new_group_tasks(files, groups, batch.source, 0))
