"""Takes back pending instants of dead writers before a write.

A writer with a heartbeat is not dead: in table versions 8 and 9 writers of this engine make their files without the lock (docs/adr/0064).
If the table says that Hudi's writers write it too (optimistic concurrency control), what they have pending stays. So do young pending
instants without a heartbeat: their rollbacks, and writes that were refused for a conflict, which Hudi takes back with its next clean,
without the lock and without checking whether another process does so too.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from lakehouse_engine.commit.concurrency.attempts import close_to_attempts
from lakehouse_engine.commit.concurrency.foreign import left_by_hudi
from lakehouse_engine.commit.concurrency.promised import promised_completion
from lakehouse_engine.commit.fence_lost_commit import may_come, rule_out
from lakehouse_engine.commit.rollback.execute import execute_rollback, files_to_delete
from lakehouse_engine.commit.rollback.plan import plan_rollback
from lakehouse_engine.commit.table_clock import claim, table_clock
from lakehouse_engine.errors import CommitConflictError, FileNameError, MetadataError
from lakehouse_engine.format.file_names import is_base_file_name, parse_base_file
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieRollbackPlan
from lakehouse_engine.options import LockOptions
from lakehouse_engine.timeline.heartbeats import find_heartbeat
from lakehouse_engine.timeline.locks.settings import lock_options
from lakehouse_engine.timeline.restores import came_late
from lakehouse_engine.view.plans import is_plan
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


def roll_back_dead_writes(state: TableState, lost: Collection[Instant] = ()) -> TableState:
    """Finish pending rollbacks, then roll back every pending write of a dead writer, newest first; returns the state after that.

    `lost`: completed writes without their completed file. They are not dead writes, and stay.

    Raises `CommitConflictError` when a pending write of Hudi has a live heartbeat, unless the table is under optimistic concurrency
    control: then it is left to its writer, as one of this engine is in versions 8 and 9. The table lock is held.
    """
    changed, options = False, lock_options(state.config)
    being_taken_back: set[str] = set()
    for rollback in reversed(_pending(state, Action.ROLLBACK)):
        target = _of_another(state, rollback, options)
        if target is not None:
            being_taken_back.add(target)
            continue
        _resume(state, rollback)
        changed = True
    if changed:
        state = state.refresh()
    spared = {instant.requested_time for instant in lost}
    writes = (instant for instant in reversed(state.timeline.pending().writes().instants) if instant.requested_time not in spared)
    pending = [instant for instant in writes if not is_plan(state, instant)]
    dead = [instant for instant in pending if instant.requested_time not in being_taken_back and _is_dead(state, instant, options)]
    for instant in dead:
        state = state.refresh()
        if not state.timeline.pending().contains(instant.requested_time):
            continue  # its writer, who needs no lock for that, took it back and ended its heartbeat meanwhile
        if not (may_come(state, instant) and _is_ours(state, instant, options)):
            _roll_back(state, instant)
        elif not rule_out(state, instant, promised_completion(state.storage, instant.requested_time)):
            logger.warning("%s of %s was completed after its writer had died", instant, state.config.name)
        state = state.refresh()
    return state


def _pending(state: TableState, action: Action) -> list[Instant]:
    return [instant for instant in state.timeline.pending() if instant.action is action]


def _is_dead(state: TableState, instant: Instant, options: LockOptions) -> bool:
    heartbeat = find_heartbeat(state.storage, instant.requested_time, options)
    if heartbeat is None:
        return left_by_hudi(state, instant, options) is None
    if heartbeat.is_alive and not options.optimistic and not (heartbeat.is_ours and state.format.writers_at_once):
        raise CommitConflictError(
            f"another writer is at work on this table ({heartbeat}); try again when it is done (docs/concurrency.md: writing beside Hudi)",
            instant=instant,
            table=state.config.name,
        )
    return not heartbeat.is_alive


def _is_ours(state: TableState, instant: Instant, options: LockOptions) -> bool:
    heartbeat = find_heartbeat(state.storage, instant.requested_time, options)
    return heartbeat is not None and heartbeat.is_ours


def _of_another(state: TableState, rollback: Instant, options: LockOptions) -> str | None:
    """Target of a pending rollback that a Hudi writer may be working on; None if it is to be finished here.

    This engine's have a heartbeat, and under the lock pending ones belong to dead processes. Hudi's mostly have none: they are left alone
    while they have a live one, or for as long as one would count. A rollback of a published write is finished at once, because its files
    would be missed.
    """
    heartbeat = find_heartbeat(state.storage, rollback.requested_time, options)
    if heartbeat is not None and heartbeat.is_ours:
        return None
    if not (heartbeat is not None and heartbeat.is_alive) and left_by_hudi(state, rollback, options) is None:
        return None
    try:
        plan = state.active.plan(HoodieRollbackPlan, rollback.at(State.REQUESTED))
    except MetadataError:
        return ""  # it is being written
    target = plan.instant_to_rollback
    if target is None or state.timeline.completed().writes().contains(target.commit_time):
        return None
    return target.commit_time


def _roll_back(state: TableState, instant: Instant) -> None:
    logger.warning("rolling back %s of %s: its writer died before it committed", instant, state.config.name)
    close_to_attempts(state.storage, instant.requested_time)
    plan = plan_rollback(state, instant)
    timeline = state.active
    clock = table_clock(state)
    requested = claim(state, clock, Instant(clock.next(state.timeline), Action.ROLLBACK, State.REQUESTED), encode_plan(plan))
    if timeline.load().completed().writes().contains(instant.requested_time):
        # A writer without the lock committed during planning: its files are part of the table.
        timeline.delete_pending(requested)
        return
    execute_rollback(state, timeline.to_inflight(requested), plan)


def _check_names(plan: HoodieRollbackPlan) -> None:
    """Raise `FileNameError` if base files to delete do not belong to the instant: one of the two is not as planned."""
    target = plan.instant_to_rollback
    for path in files_to_delete(plan):
        partition, _, name = path.rpartition("/")
        if target is None or (is_base_file_name(name) and parse_base_file(partition, name).instant_time != target.commit_time):
            raise FileNameError(f"the plan takes back {target}, and deletes {path!r}", path=path)


def _resume(state: TableState, rollback: Instant) -> None:
    """Resume the plan of an interrupted rollback. If its target is still published (a rollback by name), that is undone first, or readers
    would look for files that are being deleted.

    A rollback without a whole plan (Hudi does not write it in one step) has not begun, and is dropped: a pending target is planned again.
    So is the plan of a rollback by name that reached an object store after later changes.
    """
    timeline = state.active
    try:
        plan = timeline.plan(HoodieRollbackPlan, Instant(rollback.requested_time, Action.ROLLBACK, State.REQUESTED))
        _check_names(plan)
    except (MetadataError, FileNameError) as error:
        logger.warning("the plan of %s of %s is damaged (%s); it is dropped", rollback, state.config.name, error)
        timeline.delete_pending(rollback)
        return
    target = plan.instant_to_rollback
    published = target is not None and state.timeline.completed().writes().contains(target.commit_time)
    if published and came_late(state.storage, state.timeline, rollback):
        logger.warning("the plan of %s of %s came when nobody waited for it any more; it is dropped", rollback, state.config.name)
        timeline.delete_pending(rollback)
        return
    logger.warning("finishing %s of %s: who began it died", rollback, state.config.name)
    if target is not None:
        timeline.delete(Instant(target.commit_time, Action(target.action), State.COMPLETED))
    execute_rollback(state, rollback, plan)
