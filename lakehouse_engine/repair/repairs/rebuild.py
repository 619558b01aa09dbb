"""Makes state files again from other data with the same content: other state files of the instant, or the table's files.

Each function returns None if the content cannot be proven.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import Any, TypeVar

from lakehouse_engine.commit.begun_cleans import outcome_as_found
from lakehouse_engine.commit.rollback.execute import files_to_delete
from lakehouse_engine.errors import FormatError, InstantNotFoundError, LakehouseError, MetadataError
from lakehouse_engine.manifest.missing import lost_files
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.order import is_later, just_before
from lakehouse_engine.model.plans import (
    HoodieCleanerPlan,
    HoodieCleanFileInfo,
    HoodieCleanMetadata,
    HoodieCompactionPlan,
    HoodieInstantInfo,
    HoodieRequestedReplaceMetadata,
    HoodieRestoreMetadata,
    HoodieRestorePlan,
    HoodieRollbackMetadata,
    HoodieRollbackPartitionMetadata,
    HoodieRollbackPlan,
    HoodieRollbackRequest,
)
from lakehouse_engine.model.savepoint import HoodieSavepointMetadata
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.services.compact.plan import operation_of
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.restores import rollback_note
from lakehouse_engine.undo.savepoint import current_user, pins
from lakehouse_engine.view.table_state import TableState

_Kind = TypeVar("_Kind")


def noted(state: TableState, instant: Instant) -> str | None:
    """Note that belongs to it: that of the rollback's other file."""
    if instant.action is not Action.ROLLBACK:
        return None
    active = state.active
    try:
        return rollback_note(active, instant.at(State.REQUESTED if instant.is_completed else State.COMPLETED))
    except (InstantNotFoundError, MetadataError):
        return None


def rebuilt(state: TableState, instant: Instant) -> Any | None:
    """Record for the state file of `instant`, to be encoded."""
    build = _BUILD.get((instant.action, instant.state))
    return build(state, instant) if build is not None else None


def _other(state: TableState, kind: type[_Kind], instant: Instant, *states: State) -> _Kind | None:
    """Content of another state file of the instant, from the first complete one."""
    active = state.active
    return next((found for other in states if (found := _whole(active, kind, instant.at(other))) is not None), None)


def _whole(active: ActiveTimeline, kind: type[_Kind], instant: Instant) -> _Kind | None:
    try:
        return active.plan(kind, instant)
    except (FormatError, InstantNotFoundError):
        return None


def _savepoint(state: TableState, instant: Instant) -> HoodieSavepointMetadata | None:
    """The copy in the inflight file. Otherwise made as today, if all later writes are on the timeline and none says that a file as of the
    instant is gone.
    """
    time = instant.requested_time
    copy = _other(state, HoodieSavepointMetadata, instant, State.INFLIGHT)
    if copy is not None:
        return copy
    if not state.timeline.completed().writes().contains(time) or is_later(state.proven_since, time):
        return None
    try:
        moment = state.order.moment(time)
        slices = state.view.slices_as_of(moment)
        if lost_files(state.manifest, moment, slices, logs=True):
            return None
        kept = pins(state, time, slices)
    except LakehouseError:
        return None  # for example a commit that is damaged too
    return HoodieSavepointMetadata(
        savepointed_by=current_user(),
        savepointed_at=int(clock.time() * 1000),
        comments="made anew by repair: its file was damaged",
        partition_metadata=kept,
    )


def _clean_plan(state: TableState, instant: Instant) -> HoodieCleanerPlan | None:
    twin = State.INFLIGHT if instant.state is State.REQUESTED else State.REQUESTED
    plan = _other(state, HoodieCleanerPlan, instant, twin)
    if plan is not None:
        return plan
    done = _other(state, HoodieCleanMetadata, instant, State.COMPLETED)
    if done is None:
        return None
    policies = [partition.policy for partition in done.partition_metadata.values()]
    return HoodieCleanerPlan(
        policy=policies[0] if policies else "KEEP_LATEST_COMMITS",
        last_completed_commit_timestamp=done.last_completed_commit_timestamp,
        file_paths_to_be_deleted_per_partition={
            partition: tuple(
                HoodieCleanFileInfo(file_path=state.storage.uri(f"{partition}/{name}".lstrip("/")), is_bootstrap_base_file=False)
                for name in cleaned.success_delete_files
            )
            for partition, cleaned in done.partition_metadata.items()
        },
        extra_metadata=done.extra_metadata,
    )


def _clean(state: TableState, instant: Instant) -> HoodieCleanMetadata | None:
    """Made from its plan, and from which files are gone."""
    plan = _other(state, HoodieCleanerPlan, instant, State.REQUESTED, State.INFLIGHT)
    if plan is None:
        return None
    return outcome_as_found(state.storage, instant.requested_time, plan)


def _rollback_plan(state: TableState, instant: Instant) -> HoodieRollbackPlan | None:
    done = _other(state, HoodieRollbackMetadata, instant, State.COMPLETED)
    if done is None or not done.instants_rollback:
        return None
    requests = tuple(
        HoodieRollbackRequest(partition_path=partition, files_to_be_deleted=part.success_delete_files, log_blocks_to_be_deleted={})
        for partition, part in done.partition_metadata.items()
    )
    return HoodieRollbackPlan(instant_to_rollback=done.instants_rollback[0], rollback_requests=requests)


def _rollback(state: TableState, instant: Instant) -> HoodieRollbackMetadata | None:
    plan = _other(state, HoodieRollbackPlan, instant, State.REQUESTED)
    if plan is None or plan.instant_to_rollback is None:
        return None
    deleted = files_to_delete(plan)
    partitions = sorted({request.partition_path for request in plan.rollback_requests or ()})
    return HoodieRollbackMetadata(
        start_rollback_time=instant.requested_time,
        time_taken_in_millis=0,
        total_files_deleted=len(deleted),
        commits_rollback=(plan.instant_to_rollback.commit_time,),
        partition_metadata={
            partition: HoodieRollbackPartitionMetadata(
                partition_path=partition,
                success_delete_files=tuple(f"{state.storage.root}/{path}" for path in deleted if path.rpartition("/")[0] == partition),
            )
            for partition in partitions
        },
        instants_rollback=(plan.instant_to_rollback,),
    )


def _restore_plan(state: TableState, instant: Instant) -> HoodieRestorePlan | None:
    """The restored instant is the newest write before those taken back: there was none in between."""
    plan = _other(state, HoodieRestorePlan, instant, State.INFLIGHT)
    if plan is not None:
        return plan
    done = _other(state, HoodieRestoreMetadata, instant, State.COMPLETED)
    first = None if done is None else state.order.oldest(done.instants_to_rollback)
    if done is None or first is None:
        return None
    before = state.timeline.completed().writes().older_than(first).last()
    # If it is archived, the moment before stands for it: nothing was written in between.
    target = just_before(first) if before is None else before.requested_time
    action = str(Action.DELTA_COMMIT if state.config.table_type is TableType.MERGE_ON_READ else Action.COMMIT)
    infos = {info.commit_time: info for info in done.restore_instant_info or ()}
    taken = tuple(infos.get(time, HoodieInstantInfo(commit_time=time, action=action)) for time in done.instants_to_rollback)
    return HoodieRestorePlan(instants_to_rollback=taken, savepoint_to_restore_timestamp=target)


def _restore(state: TableState, instant: Instant) -> HoodieRestoreMetadata | None:
    plan = _other(state, HoodieRestorePlan, instant, State.REQUESTED, State.INFLIGHT)
    if plan is None:
        return None
    return HoodieRestoreMetadata(
        start_restore_time=instant.requested_time,
        time_taken_in_millis=0,
        instants_to_rollback=tuple(info.commit_time for info in plan.instants_to_rollback),
        hoodie_restore_metadata={},
        restore_instant_info=plan.instants_to_rollback,
    )


def _compaction_plan(state: TableState, instant: Instant) -> HoodieCompactionPlan | None:
    """Groups with logs on top of the compaction. Others may have been planned too, and the next plan has them."""
    if any(done.requested_time == instant.requested_time for done in state.timeline.completed().writes()):
        return None
    operations = []
    for partition in state.view.partitions():
        for group in state.view.file_groups(partition):
            newer = any(piece.base_instant == instant.requested_time and piece.log_files for piece in group.slices)
            before = next((piece for piece in group.slices if is_later(instant.requested_time, piece.base_instant)), None)
            if newer and before is not None:
                operations.append(operation_of(before))
    return HoodieCompactionPlan(operations=tuple(operations)) if operations else None


def _replace_plan(state: TableState, instant: Instant) -> HoodieRequestedReplaceMetadata:
    """As a write requests it. If it was a clustering plan, the next one is made again: nothing depends on an incomplete one."""
    return HoodieRequestedReplaceMetadata()


_BUILD: dict[tuple[Action, State], Callable[[TableState, Instant], Any | None]] = {
    (Action.SAVEPOINT, State.COMPLETED): _savepoint,
    (Action.CLEAN, State.REQUESTED): _clean_plan,
    (Action.CLEAN, State.INFLIGHT): _clean_plan,
    (Action.CLEAN, State.COMPLETED): _clean,
    (Action.ROLLBACK, State.REQUESTED): _rollback_plan,
    (Action.ROLLBACK, State.COMPLETED): _rollback,
    (Action.RESTORE, State.REQUESTED): _restore_plan,
    (Action.RESTORE, State.INFLIGHT): lambda state, instant: _other(state, HoodieRestorePlan, instant, State.REQUESTED),
    (Action.RESTORE, State.COMPLETED): _restore,
    (Action.COMPACTION, State.REQUESTED): _compaction_plan,
    (Action.REPLACE_COMMIT, State.REQUESTED): _replace_plan,
}
