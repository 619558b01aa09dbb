"""Carries a clean out. New or resumed after a crash, the steps are the same, and each may have happened already.

1. delete the files that the plan names, if nothing needs them by now
2. delete the partitions that the plan expects to be empty then, if they are
3. complete the clean instant with what was deleted
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from lakehouse_engine.commit.begun_cleans import partition_outcome, planned_files, stored_plan
from lakehouse_engine.commit.completing import complete
from lakehouse_engine.commit.deletion import delete_cleaned
from lakehouse_engine.commit.versions import needed_files
from lakehouse_engine.errors import StorageError
from lakehouse_engine.format.file_names import PARTITION_METAFILE
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.instant import Instant, State
from lakehouse_engine.model.plans import HoodieCleanerPlan, HoodieCleanMetadata
from lakehouse_engine.services.clean.plan import savepoints_seen
from lakehouse_engine.services.clean.scope import SAVEPOINTED
from lakehouse_engine.storage.os_errors import is_full
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.view.protected import protected_files
from lakehouse_engine.view.table_state import TableState


@dataclass(frozen=True, slots=True)
class ExecutedClean:
    """`deleted`: paths named by the plan that are gone. `kept`: what turned out to be needed, and why."""

    instant: Instant
    deleted: tuple[str, ...]
    kept: tuple[str, ...] = ()


def execute_clean(state: TableState, clean: Instant, plan: HoodieCleanerPlan) -> ExecutedClean:
    """Carry out a plan made from `state` under the lock that is still held."""
    return _execute(state, clean, plan, {})


def resume_clean(state: TableState, clean: Instant) -> ExecutedClean:
    """Continue the pending clean of a dead process; keeps what a savepoint or a restore has needed since its plan.

    Raises `MetadataError` if no state file has the whole plan.
    """
    plan = stored_plan(state.active, clean)
    paths = {path for paths in planned_files(plan).values() for path in paths}
    needed = needed_files(state, paths)
    pinned = {path: f"it is pinned by the savepoint of {time}" for path, time in protected_files(state).items()}
    return _execute(state, clean, plan, {path: reason for path, reason in (needed | pinned).items() if path in paths})


def _begin(timeline: ActiveTimeline, clean: Instant, plan: HoodieCleanerPlan) -> Instant:
    """Move the clean to inflight. On a full disk without its plan, as in Hudi 1.x: an empty file needs no space, and deletions follow."""
    try:
        return timeline.to_inflight(clean, encode_plan(plan))
    except StorageError as error:
        if not is_full(error):
            raise
        return timeline.to_inflight(clean)


def _execute(state: TableState, clean: Instant, plan: HoodieCleanerPlan, held: Mapping[str, str]) -> ExecutedClean:
    began = time.monotonic()
    timeline = state.active
    inflight = clean if clean.state is State.INFLIGHT else _begin(timeline, clean, plan)
    files = {partition: [path for path in paths if path not in held] for partition, paths in planned_files(plan).items()}
    delete_cleaned(state, [path for paths in files.values() for path in paths])
    emptied = [partition for partition in plan.partitions_to_be_deleted or () if _delete_partition(state, partition)]
    metadata = HoodieCleanMetadata(
        start_clean_time=clean.requested_time,
        time_taken_in_millis=int((time.monotonic() - began) * 1000),
        total_files_deleted=sum(len(paths) for paths in files.values()),
        earliest_commit_to_retain=plan.earliest_instant_to_retain.timestamp if plan.earliest_instant_to_retain else "",
        last_completed_commit_timestamp=plan.last_completed_commit_timestamp,
        partition_metadata={
            partition: partition_outcome(partition, plan.policy, paths, is_deleted=partition in emptied)
            for partition, paths in files.items()
        },
        bootstrap_partition_metadata={},
        extra_metadata={key: text for key, text in (plan.extra_metadata or {}).items() if key != SAVEPOINTED} | savepoints_seen(state),
    )
    complete(state, inflight, metadata)
    kept = tuple(f"{path} is kept: {reason}" for path, reason in sorted(held.items()))
    return ExecutedClean(inflight.at(State.COMPLETED), tuple(path for paths in files.values() for path in paths), kept)


def _delete_partition(state: TableState, partition: str) -> bool:
    """Remove a partition's directory if nothing but its metafile is left; True if it is gone."""
    left = state.storage.list(partition) if partition else []
    if not partition or any(entry.is_directory or not entry.name.startswith(PARTITION_METAFILE) for entry in left):
        return False
    state.storage.delete_tree(partition)
    return True
