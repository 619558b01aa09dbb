"""File groups in pending service plans, which may not change until the service is done."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse_engine.errors import CommitConflictError
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.plans import HoodieCompactionOperation, HoodieCompactionPlan
from lakehouse_engine.view.plans import clustering_groups, may_cluster
from lakehouse_engine.view.table_state import TableState


def pending_groups(state: TableState) -> dict[tuple[str, str], str]:
    """(partition path, file id) -> instant for every group in the plan of a pending clustering."""
    groups: dict[tuple[str, str], str] = {}
    for instant in state.timeline.pending():
        if may_cluster(instant):
            for group in clustering_groups(state, instant):
                groups[group] = instant.requested_time
    return groups


def check_group_not_pending(group: FileGroupId, pending: dict[tuple[str, str], str]) -> None:
    """Raise `CommitConflictError` for a file group under a pending clustering, as Hudi's default strategy does."""
    instant = pending.get((group.partition_path, group.file_id))
    if instant is not None:
        raise CommitConflictError(
            "a pending clustering plans to rewrite this file group; run or roll back the clustering first",
            instant=instant,
            partition=group.partition_path,
            file_id=group.file_id,
        )


def compacting_groups(state: TableState) -> dict[FileGroupId, str]:
    """Instant of the pending compaction of each group that is in one's plan: logs written now belong to the slice that the compaction will
    make.
    """
    return {group: instant for group, instant, _ in _planned(state)}


def compacted_logs(state: TableState) -> dict[FileGroupId, frozenset[str]]:
    """Names of the log files that a pending compaction will merge, of each group that is in one's plan."""
    return {group: frozenset(operation.delta_file_paths or ()) for group, _, operation in _planned(state)}


def _planned(state: TableState) -> Iterator[tuple[FileGroupId, str, HoodieCompactionOperation]]:
    for instant in state.timeline.pending():
        if instant.action is Action.COMPACTION:
            requested = Instant(instant.requested_time, Action.COMPACTION, State.REQUESTED)
            plan = state.active.plan(HoodieCompactionPlan, requested)
            for operation in plan.operations or ():
                yield FileGroupId(operation.partition_path or "", operation.file_id or ""), instant.requested_time, operation


def check_not_compacting(group: FileGroupId, compacting: dict[FileGroupId, str]) -> None:
    """Raise `CommitConflictError` for a group that a pending compaction will rewrite."""
    instant = compacting.get(group)
    if instant is not None:
        raise CommitConflictError(
            "this change needs the file group rewritten, and a pending compaction plans to rewrite it; run the compaction first",
            instant=instant,
            partition=group.partition_path,
            file_id=group.file_id,
        )
