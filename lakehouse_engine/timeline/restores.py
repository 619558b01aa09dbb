"""Restores and rollbacks on a timeline: where each goes back to, and what it takes back.

Restores stay on the active timeline, as in Hudi, so that incremental readers can be told. So do rollbacks that removed rows from the table;
rollbacks of dead writers do not, because their rows were never readable. Plans look the same; a note distinguishes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse_engine.errors import CorruptInstantError, InstantNotFoundError, MetadataError
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.order import earliest, is_later, just_before
from lakehouse_engine.model.plans import HoodieRestorePlan, HoodieRollbackMetadata, HoodieRollbackPlan
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import in_object_store
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.timeline import Timeline

WAS_PUBLISHED = "published"
"""Note of a rollback of a completed write that had changed rows (Hudi's rollbacks have none)."""


@dataclass(frozen=True, slots=True)
class RestoreRecord:
    """A restore, completed or not, from its plan, or a rollback of a completed write; `rolled_back` are instant times, newest first.

    `moment` is that of the target, an instant.
    """

    instant: Instant
    target: str
    rolled_back: tuple[str, ...]
    moment: str

    def took_back(self, moment: str) -> bool:
        """True if a reader up to that moment may have read something that this restore took back.

        Completion times of removed instants are unknown; they were later than the requests.
        """
        if not is_later(moment, self.moment) or not is_later(self.instant.requested_time, moment):
            return False
        first = earliest(self.rolled_back)
        return first is None or not is_later(first, moment)


def restores(active: ActiveTimeline, timeline: Timeline) -> list[RestoreRecord]:
    """Restores of a timeline whose plan names the target (Hudi's do since 0.13), oldest first.

    Raises `CorruptInstantError` if the plan of a begun one is damaged: what it took back is unknown.
    """
    asked = (instant for instant in timeline if instant.action is Action.RESTORE and not came_late(active.storage, timeline, instant))
    found = (_record(active, timeline, instant) for instant in asked)
    return [record for record in found if record is not None]


def rollbacks(active: ActiveTimeline, timeline: Timeline, since: str) -> list[RestoreRecord]:
    """Rollbacks after the moment `since` that removed rows, oldest first; each goes back to the write before its target.

    Raises `CorruptInstantError` if neither plan nor outcome of one is complete: what it took back is unknown.
    """
    noted = (one for one in timeline.after(since) if one.action is Action.ROLLBACK and took_rows(active, one))
    found = ((one, taken_by(active, one)) for one in noted)
    writes = timeline.completed().writes()
    gone = ((one, time) for one, time in found if time is not None and not writes.contains(time))
    return [_rollback(one, writes, time) for one, time in gone]


def took_rows(active: ActiveTimeline, rollback: Instant) -> bool:
    """True if a rollback, completed or not, targets a completed write that had changed rows. One without a whole plan has not begun.

    Raises `CorruptInstantError` if one has begun and that is unknown.
    """
    try:
        return rollback_note(active, rollback) == WAS_PUBLISHED
    except InstantNotFoundError:
        return False
    except MetadataError:
        if rollback.state is not State.REQUESTED:
            raise
        return False


def rollback_note(active: ActiveTimeline, rollback: Instant) -> str | None:
    """Note of a rollback, in its plan and its outcome, unless Hudi carried out our plan. Raises as `ActiveTimeline.plan`; for a completed
    one only if neither is complete.
    """
    plan = rollback.at(State.REQUESTED)
    if not rollback.is_completed:
        return active.note(HoodieRollbackPlan, plan)
    damage: MetadataError | None = None
    try:
        note = active.note(HoodieRollbackMetadata, rollback)
        if note is not None:
            return note
    except MetadataError as error:
        damage = error
    try:
        return active.note(HoodieRollbackPlan, plan)
    except (InstantNotFoundError, MetadataError):
        if damage is None:
            return None
        raise damage from damage.__cause__


def taken_by(active: ActiveTimeline, rollback: Instant) -> str | None:
    """Time of the instant that a rollback takes back. Raises as `ActiveTimeline.plan`."""
    try:
        target = active.plan(HoodieRollbackPlan, rollback.at(State.REQUESTED)).instant_to_rollback
    except (InstantNotFoundError, MetadataError):
        if not rollback.is_completed:
            raise
        return active.plan(HoodieRollbackMetadata, rollback).commits_rollback[0]
    return None if target is None else target.commit_time


def _rollback(rollback: Instant, writes: Timeline, time: str) -> RestoreRecord:
    last = writes.older_than(time).last()
    if last is None:
        return RestoreRecord(rollback, just_before(time), (time,), just_before(time))
    return RestoreRecord(rollback, last.requested_time, (time,), writes.order.moment(last.requested_time))


def pending_restore(active: ActiveTimeline, timeline: Timeline) -> RestoreRecord | None:
    """The unfinished restore; None if there is none, or its plan is incomplete (then it has not begun).

    Raises `CorruptInstantError` if it has begun and its plan is damaged.
    """
    pending = [instant for instant in timeline if instant.action is Action.RESTORE and not instant.is_completed]
    begun = [instant for instant in pending if not came_late(active.storage, timeline, instant)]
    return _record(active, timeline, begun[0]) if begun else None


def came_late(storage: Storage, timeline: Timeline, instant: Instant) -> bool:
    """True if a plan to go back reached an object store late: it was not answered, and its caller was told so.

    Whatever is requested after such a plan is requested once it was carried out. So instants after a plan that no process carries out were
    made without it, and must not lose what they build on.
    """
    if not in_object_store(storage) or instant.state is not State.REQUESTED:
        return False
    return any(is_later(other.requested_time, instant.requested_time) for other in timeline)


def restore_plan(active: ActiveTimeline, instant: Instant) -> HoodieRestorePlan:
    """Plan from the requested file, or from the inflight file if that is damaged or gone (Hudi's restores do not have it there).

    Raises `InstantNotFoundError`, and `MetadataError` with the requested file.
    """
    try:
        return active.plan(HoodieRestorePlan, Instant(instant.requested_time, Action.RESTORE, State.REQUESTED))
    except (InstantNotFoundError, MetadataError) as error:
        try:
            return active.plan(HoodieRestorePlan, Instant(instant.requested_time, Action.RESTORE, State.INFLIGHT))
        except (InstantNotFoundError, MetadataError):
            raise error from error.__cause__


def _record(active: ActiveTimeline, timeline: Timeline, instant: Instant) -> RestoreRecord | None:
    try:
        plan = restore_plan(active, instant)
    except InstantNotFoundError as error:
        if instant.state is not State.INFLIGHT:
            return None
        path = active.path(instant.at(State.REQUESTED))
        message = "a restore has begun and its plan is gone: what it takes back is not known; `repair` leads out"
        raise CorruptInstantError(message, instant=instant, path=path) from error
    except MetadataError:
        if instant.state is not State.REQUESTED:
            raise
        return None
    if plan.savepoint_to_restore_timestamp is None:
        return None
    target, gone = plan.savepoint_to_restore_timestamp, tuple(info.commit_time for info in plan.instants_to_rollback)
    return RestoreRecord(instant, target, gone, timeline.order.moment(target))
