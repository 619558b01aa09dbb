"""Bring a table to order before a write: whatever a dead writer left pending is taken back (Hudi's EAGER policy)."""

from __future__ import annotations

import logging
import time

from lakehouse_engine.commit.attempts import close_to_attempts
from lakehouse_engine.commit.pending import clustering_groups
from lakehouse_engine.commit.rollback.execute import execute_rollback, files_to_delete
from lakehouse_engine.commit.rollback.plan import plan_rollback
from lakehouse_engine.commit.table_clock import claim, table_clock
from lakehouse_engine.errors import CommitConflictError, FileNameError, MetadataError
from lakehouse_engine.format.file_names import is_base_file_name, parse_base_file
from lakehouse_engine.format.plans_codec import encode_plan
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieRollbackPlan
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

_HEARTBEATS = ".hoodie/.heartbeat"
_HEARTBEAT_EXPIRES_MS = 120_000
"""Hudi's default: an interval of 60 s, two of which may be missed."""


def roll_back_dead_writes(state: TableState) -> TableState:
    """Finish pending rollbacks, then roll every pending write back, newest first; the state after that.

    Raises `CommitConflictError` when a pending write has a live heartbeat: its (Hudi) writer is at work. The table lock is held.
    """
    changed = False
    for rollback in reversed(_pending(state, Action.ROLLBACK)):
        _resume(state, rollback)
        changed = True
    if changed:
        state = state.refresh()
    dead = [instant for instant in reversed(state.timeline.pending().writes().instants) if _is_dead(state, instant)]
    for instant in dead:
        _roll_back(state, instant)
        state = state.refresh()
    return state


def _pending(state: TableState, action: Action) -> list[Instant]:
    return [instant for instant in state.timeline.pending() if instant.action is action]


def _is_dead(state: TableState, instant: Instant) -> bool:
    """Plans of table services are not dead writes: they wait for whoever runs them."""
    if instant.action in (Action.COMPACTION, Action.LOG_COMPACTION):
        return False
    if instant.action is Action.REPLACE_COMMIT and _is_clustering(state, instant):
        return False
    age = live_heartbeat(state, instant)
    if age is not None:
        raise CommitConflictError(
            f"another writer is at work on this table (its heartbeat is {age / 1000:.0f} s old); try again when it is done",
            instant=instant,
            table=state.config.name,
        )
    return True


def live_heartbeat(state: TableState, instant: Instant) -> float | None:
    """Age in milliseconds of the heartbeat of a (Hudi) writer that is at work on `instant`; None where there is none that lives."""
    heartbeat = state.storage.head(f"{_HEARTBEATS}/{instant.requested_time}")
    age = time.time() * 1000 - heartbeat.modified_ms if heartbeat else _HEARTBEAT_EXPIRES_MS
    return age if age < _HEARTBEAT_EXPIRES_MS else None


def _is_clustering(state: TableState, instant: Instant) -> bool:
    requested = Instant(instant.requested_time, instant.action, State.REQUESTED)
    if state.storage.head(f"{state.layout.timeline_folder}/{state.layout.file_name(requested)}") is None:
        return False
    return bool(clustering_groups(state, instant))


def _roll_back(state: TableState, instant: Instant) -> None:
    logger.warning("rolling back %s of %s: its writer died before it committed", instant, state.config.name)
    close_to_attempts(state.storage, instant.requested_time)
    plan = plan_rollback(state, instant)
    timeline = ActiveTimeline(state.storage, state.layout)
    clock = table_clock(state)
    requested = claim(state, clock, Instant(clock.next(state.timeline), Action.ROLLBACK, State.REQUESTED), encode_plan(plan))
    if timeline.load().completed().writes().contains(instant.requested_time):
        # A writer that does not know the lock committed while this was planned: its files are part of the table.
        timeline.delete_pending(requested)
        return
    execute_rollback(state, timeline.to_inflight(requested), plan)


def _check_names(plan: HoodieRollbackPlan) -> None:
    """Raise `FileNameError` where base files to delete are not of the instant to take back: one of the two is not as it was planned."""
    target = plan.instant_to_rollback
    for path in files_to_delete(plan):
        partition, _, name = path.rpartition("/")
        if target is None or (is_base_file_name(name) and parse_base_file(partition, name).instant_time != target.commit_time):
            raise FileNameError(f"the plan takes back {target}, and deletes {path!r}", path=path)


def _resume(state: TableState, rollback: Instant) -> None:
    """A rollback whose own process died goes on from its plan. What it takes back may still be published (a rollback asked for by
    name): that ends first, or readers would look for files that are being deleted.

    A rollback without a whole plan (Hudi does not write it in one step) has not begun, and is forgotten: a target that is pending is
    planned again.
    """
    timeline = ActiveTimeline(state.storage, state.layout)
    try:
        plan = timeline.plan(HoodieRollbackPlan, Instant(rollback.requested_time, Action.ROLLBACK, State.REQUESTED))
        _check_names(plan)
    except (MetadataError, FileNameError) as error:
        logger.warning("the plan of %s of %s is damaged (%s); it is dropped", rollback, state.config.name, error)
        timeline.delete_pending(rollback)
        return
    target = plan.instant_to_rollback
    if target is not None:
        timeline.delete(Instant(target.commit_time, Action(target.action), State.COMPLETED))
    execute_rollback(state, rollback, plan)
