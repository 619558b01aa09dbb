"""Writes to file groups that a pending clustering has plans for.

By `hoodie.clustering.updates.strategy` such a write is refused, or it goes on. Then its groups leave the plan before they are changed: who
runs the plan, this engine or Hudi, reads only what is as the plan has it. An executor that runs it at the moment leaves them out when it
publishes (`services.cluster`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import replace

from lakehouse_engine.commit.concurrency.executors import lock_file
from lakehouse_engine.commit.concurrency.pending import check_group_not_pending, pending_groups
from lakehouse_engine.commit.fence_lost_commit import may_come, rule_out
from lakehouse_engine.commit.participants import take_back_all
from lakehouse_engine.commit.publish import take_back_files
from lakehouse_engine.commit.table_clock import completion_time
from lakehouse_engine.errors import CommitConflictError
from lakehouse_engine.format.file_names import marker_folder
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.instant import Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.plans import HoodieClusteringGroup, HoodieRequestedReplaceMetadata
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.options.clustering import REJECT, UPDATES_STRATEGY
from lakehouse_engine.timeline.lock import lock_holder
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


def take_over(state: TableState, changed: Collection[FileGroupId], strategy: str, *, whole: bool) -> None:
    """Take `changed` file groups out of the plans of pending clusterings, and with `whole` those plans from the timeline.

    Called under the table lock, before anything is written. By a strategy that rejects, and where another program runs the plan, raises
    `CommitConflictError` with nothing changed.
    """
    met = planned_among(state, changed)
    if not met:
        return
    if strategy == REJECT:
        check_group_not_pending(next(iter(met)), pending_groups(state))
    times = dict.fromkeys(met.values())
    instants = [instant for instant in state.timeline.pending() if instant.requested_time in times]
    for instant in instants:
        _check_not_foreign(state, instant, next(group for group, time in met.items() if time == instant.requested_time))
    for instant in instants:
        if may_come(state, instant):  # a run publishes under the table lock, so this one died, though its lock may hold for a while
            _rule_out(state, instant)
        else:
            _leave(state, instant, set(met), whole=whole)


def planned_among(state: TableState, changed: Collection[FileGroupId]) -> dict[FileGroupId, str]:
    """Those of the file groups that a pending clustering has plans for, with its instant."""
    pending = pending_groups(state)
    return {group: time for group in changed if (time := pending.get((group.partition_path, group.file_id))) is not None}


def _rule_out(state: TableState, instant: Instant) -> None:
    """Keep out the commit of a run that died, which has the groups as they were."""
    if not rule_out(state, instant, completion_time(state, instant), WriteOperationType.CLUSTER):
        raise CommitConflictError(
            "the clustering of a process that died was completed while this write was planned; nothing is written, try again",
            instant=instant,
            table=state.config.name,
        )


def _check_not_foreign(state: TableState, instant: Instant, group: FileGroupId) -> None:
    if instant.state is State.INFLIGHT and state.storage.head(lock_file(instant.requested_time)) is None:
        raise CommitConflictError(
            "another program is running a clustering of this file group, or died while it did; wait for it, or roll the clustering back"
            f" (`rollback`), then try again ({UPDATES_STRATEGY.key})",
            instant=instant,
            table=state.config.name,
            partition=group.partition_path,
            file_id=group.file_id,
        )


def _leave(state: TableState, instant: Instant, changed: Collection[FileGroupId], *, whole: bool) -> None:
    requested = Instant(instant.requested_time, instant.action, State.REQUESTED)
    stored = state.active.plan(HoodieRequestedReplaceMetadata, requested)
    plan = stored.clustering_plan
    groups = (plan.input_groups or ()) if plan else ()
    kept = () if whole else tuple(group for group in groups if not _has_one(group, changed))
    logger.info("a write changes file groups of %s of %s: %d of its %d groups stay", instant, state.config.name, len(kept), len(groups))
    if plan is not None and kept:
        state.active.replace_plan(requested, encode_plan(replace(stored, clustering_plan=replace(plan, input_groups=kept))), running=True)
    else:
        _remove(state, requested)


def _remove(state: TableState, requested: Instant) -> None:
    """Take the whole plan off the timeline. What a dead run wrote goes; one that is alive takes its files back itself, and participants
    know of none: they are told under the table lock. One that died a moment ago may look alive.
    """
    time, storage = requested.requested_time, state.storage
    is_running = lock_holder(storage, lock_file(time)) is not None
    state.active.delete_pending(requested)
    if is_running:
        take_back_all(state, [time])
        return
    take_back_files(state, time)
    storage.delete_tree(marker_folder(time))


def _has_one(group: HoodieClusteringGroup, changed: Collection[FileGroupId]) -> bool:
    return any(FileGroupId(one.partition_path or "", one.file_id or "") in changed for one in group.slices or ())


def file_groups(by_partition: Iterable[tuple[str, Iterable[str | None]]]) -> set[FileGroupId]:
    """File ids by their partitions, as groups; what is no file id is left out."""
    return {FileGroupId(path, file_id) for path, ids in by_partition for file_id in ids if file_id}
