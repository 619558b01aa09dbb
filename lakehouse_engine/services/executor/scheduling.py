"""Puts plans of services on the timeline, and finds them there."""

from __future__ import annotations

import logging
from typing import Any

from lakehouse_engine.commit.concurrency.foreign import live_writes
from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.commit.table_clock import claim, table_clock
from lakehouse_engine.errors import StoredFileExistsError, TimelineError
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.services.executor.service import Kind, Plan, Service
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.plans import is_plan
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

_ATTEMPTS = 10


def schedule(service: Service[Plan, Any], storage: Storage, *, lock_timeout_ms: int, alone_ms: int) -> tuple[Instant, Plan] | None:
    """Plan under the table lock, at an instant after every write; None if there is nothing to do.

    Never runs beside Hudi's writers, and waits up to `alone_ms` for them; this engine's writers look for new plans when they commit. Raises
    as `locked_table`, `Service.plan` and `request`.
    """
    with locked_table(storage, lock_timeout_ms=lock_timeout_ms, alone_ms=alone_ms, among_ours=True) as state:
        plan = service.plan(state)
        if plan is None:
            return None
        instant = request(service.kind, state, plan)
        logger.info("scheduled %s of %s", instant, state.config.name)
        return instant, plan


def request(kind: Kind, state: TableState, plan: object) -> Instant:
    """Put the plan on the timeline at a new time. Raises the kind's error while an older write is pending, and `TimelineError`."""
    timeline, clock = state.active, table_clock(state)
    content = encode_plan(plan)
    for _ in range(_ATTEMPTS):
        current = timeline.load()
        requested = Instant(clock.next(current), kind.action, State.REQUESTED)
        check_no_older_write(kind, state.refresh())
        try:
            return claim(state, clock, requested, content)
        except StoredFileExistsError:
            logger.info("instant %s is taken by another writer; trying the next", requested)
    raise TimelineError(f"no free instant time in {_ATTEMPTS} tries: too many writers without the table lock", table=state.config.name)


def check_no_older_write(kind: Kind, state: TableState) -> None:
    """Raise the kind's error while a write is pending: what it adds to a slice after planning would be lost with the slice.

    The table lock keeps out this engine's writers, or they look for new plans when they have the lock again; this check finds writes of
    programs that do not use the lock.
    """
    ours = {beat.instant_time for beat in live_writes(state) if beat.is_ours} if state.format.writers_at_once else set()
    for instant in state.timeline.pending().writes():
        if instant.requested_time not in ours and not is_plan(state, instant):
            raise kind.error(
                f"a {kind.name} cannot be scheduled while a write is going on; try again when it is done",
                instant=instant,
                table=state.config.name,
            )


def pending_plans(state: TableState, action: Action) -> list[Instant]:
    """Pending plans of `action`, oldest first."""
    return [instant for instant in state.timeline.pending() if instant.action is action and is_plan(state, instant)]


def choose(kind: Kind, state: TableState, time: str | None) -> Instant | None:
    """The pending plan of the instant `time`, or the oldest; None if there is none. Raises the kind's error for any other `time`."""
    pending = pending_plans(state, kind.action)
    if time is None:
        return pending[0] if pending else None
    found = next((instant for instant in pending if instant.requested_time == time), None)
    if found is None:
        known = ", ".join(instant.requested_time for instant in pending) or "none"
        raise kind.error(f"{time} is no pending {kind.action} of this table; pending: {known}", instant=time, table=state.config.name)
    return found
