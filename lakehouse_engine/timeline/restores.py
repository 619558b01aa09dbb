"""Restores and rollbacks on a timeline: which instant each goes back to, and what it takes back.

Restores stay on the active timeline: archiving leaves them, as in Hudi, so that incremental readers can be told. So do rollbacks that took
rows from the table, which those of dead writers do not: nobody can have read those. Plans look the same; a note with them tells.
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
"""The note of a rollback of a completed write that had changed rows (Hudi's rollbacks have none)."""


@dataclass(frozen=True, slots=True)
class RestoreRecord:
    """A restore, completed or not, from its plan; `rolled_back` are instant times, newest first. Or a rollback of a completed write.

    `moment` is that of the target, an instant.
    """

    instant: Instant
    target: str
    rolled_back: tuple[str, ...]
    moment: str

    def took_back(self, moment: str) -> bool:
        """Whether somebody who had read up to that moment may have read something that this restore took back.

        When the instants that are gone were completed, nobody knows any more; they were so after they were requested.
        """
        if not is_later(moment, self.moment) or not is_later(self.instant.requested_time, moment):
            return False
        first = earliest(self.rolled_back)
        return first is None or not is_later(first, moment)


def restores(active: ActiveTimeline, timeline: Timeline) -> list[RestoreRecord]:
    """The restores of a timeline with a plan that says where to (Hudi's do since 0.13), oldest first.

    Raises `CorruptInstantError` where the plan of one that has begun is damaged: what it took back cannot be told.
    """
    asked = (instant for instant in timeline if instant.action is Action.RESTORE and not came_late(active.storage, timeline, instant))
    found = (_record(active, timeline, instant) for instant in asked)
    return [record for record in found if record is not None]


def rollbacks(active: ActiveTimeline, timeline: Timeline, since: str) -> list[RestoreRecord]:
    """The rollbacks after the moment `since` that took rows from the table, oldest first; each goes back to the write before the
    one that it took.

    Raises `CorruptInstantError` where neither plan nor outcome of one is whole: what it took back cannot be told.
    """
    noted = (one for one in timeline.after(since) if one.action is Action.ROLLBACK and took_rows(active, one))
    found = ((one, taken_by(active, one)) for one in noted)
    writes = timeline.completed().writes()
    gone = ((one, time) for one, time in found if time is not None and not writes.contains(time))
    return [_rollback(one, writes, time) for one, time in gone]


def took_rows(active: ActiveTimeline, rollback: Instant) -> bool:
    """Whether a rollback, completed or not, is of a completed write that had changed rows. One without a whole plan has not begun.

    Raises `CorruptInstantError` where one has begun and that cannot be told.
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
    """What was noted with a rollback, which its plan and its outcome both have, but where Hudi carried our plan out. Raises as
    `ActiveTimeline.plan`, of what is completed only where neither is whole.
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
    """The time of the instant that a rollback takes back, or took back. Raises as `ActiveTimeline.plan`."""
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
    """The restore that is not finished, None where there is none or its plan is not whole (then it has not begun).

    Raises `CorruptInstantError` where it has begun and its plan is damaged.
    """
    pending = [instant for instant in timeline if instant.action is Action.RESTORE and not instant.is_completed]
    begun = [instant for instant in pending if not came_late(active.storage, timeline, instant)]
    return _record(active, timeline, begun[0]) if begun else None


def came_late(storage: Storage, timeline: Timeline, instant: Instant) -> bool:
    """Whether a plan to go back reached an object store when nobody waited for it any more: it was not answered, and who asked was told so.

    Whatever is requested after such a plan is requested once it is carried out. What there is after one that nobody carries out was
    therefore made without it, and is not to be built upon what it takes away.
    """
    if not in_object_store(storage) or instant.state is not State.REQUESTED:
        return False
    return any(is_later(other.requested_time, instant.requested_time) for other in timeline)


def restore_plan(active: ActiveTimeline, instant: Instant) -> HoodieRestorePlan:
    """The plan from the requested file; where that is damaged or gone, from the inflight file, which has it too (not in Hudi's restores).

    Raises `InstantNotFoundError`, and `MetadataError` naming the requested file.
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
