"""Pending instants: plans of table services, and writes of rows."""

from __future__ import annotations

from lakehouse_engine.errors import InstantNotFoundError, StorageError
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieRequestedReplaceMetadata
from lakehouse_engine.timeline.heartbeats import live_heartbeat
from lakehouse_engine.timeline.locks.settings import lock_options
from lakehouse_engine.view.table_state import TableState


def clustering_groups(state: TableState, instant: Instant) -> list[tuple[str, str]]:
    """(partition path, file id) of the groups in a replace commit's clustering plan; empty for others.

    In versions 8 and 9 the plan's name says that it is a clustering.
    """
    planned = Instant(instant.requested_time, Action.CLUSTERING, State.REQUESTED)
    requested = planned if planned in state.timeline_files else Instant(instant.requested_time, Action.REPLACE_COMMIT, State.REQUESTED)
    timeline = state.active
    if not timeline.read(requested):
        return []
    plan = timeline.plan(HoodieRequestedReplaceMetadata, requested).clustering_plan
    groups = (plan.input_groups or ()) if plan else ()
    return [(piece.partition_path or "", piece.file_id or "") for group in groups for piece in group.slices or ()]


def is_plan(state: TableState, instant: Instant) -> bool:
    """True if a pending instant is the plan of a table service: it waits for an executor and is not a dead write.

    False for a plan that is gone since the timeline was listed: a restore, a rollback or a write may take it back at any moment.
    """
    if instant.action in (Action.COMPACTION, Action.LOG_COMPACTION):
        return True
    return may_cluster(instant) and _is_clustering(state, instant)


def may_cluster(instant: Instant) -> bool:
    """True for a clustering, or a replace commit, which may be one in version 6."""
    return instant.action.completes_as is Action.REPLACE_COMMIT


def _is_clustering(state: TableState, instant: Instant) -> bool:
    try:
        return bool(clustering_groups(state, instant))
    except InstantNotFoundError:
        return False


def oldest_overtaken(state: TableState) -> str | None:
    """Time of the oldest write that is pending although a later one is completed; None without one.

    This engine completes writes in the order of their instants; Hudi does not. Such a write adds to the past: no later checkpoint or state
    is settled until it is done.
    """
    last = state.timeline.completed().writes().last()
    if last is None:
        return None
    pending = state.timeline.pending().writes().older_than(last.requested_time)
    return next((one.requested_time for one in pending if not is_plan(state, one) and _may_be_done(state, one)), None)


def _may_be_done(state: TableState, instant: Instant) -> bool:
    try:
        return live_heartbeat(state.storage, instant.requested_time, lock_options(state.config)) is not None
    except StorageError:
        return True  # a process that may not write here cannot ask for the time
