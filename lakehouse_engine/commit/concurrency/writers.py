"""Processes at work on a table, and who waits for whom. Locks and changes nothing, except for probes of the storage's clock."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse_engine.commit.concurrency.executors import lock_file
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.writers import Writer
from lakehouse_engine.timeline.heartbeats import Heartbeat, find_heartbeat
from lakehouse_engine.timeline.lock import LOCK_FILE, find_lock_holder
from lakehouse_engine.timeline.locks.holder import Holder
from lakehouse_engine.timeline.locks.settings import lock_options
from lakehouse_engine.timeline.locks.waiting import waiting_for
from lakehouse_engine.view.plans import is_plan
from lakehouse_engine.view.table_state import TableState


def find_writers(state: TableState) -> list[Writer]:
    """Writes by instant, then the lock's holder if it does something else, then those who wait for it."""
    holder = find_lock_holder(state.storage)
    found = [*_writes(state), *_services(state)]
    if holder is not None and not any((one.pid, one.thread) == (holder.pid, holder.thread) for one in found if one.pid):
        found.append(_named("holding", holder))
    waits_for = None if holder is None else str(holder)
    return [*found, *(_named("waiting", one, waits_for=waits_for) for one in waiting_for(state.storage, LOCK_FILE))]


def _writes(state: TableState) -> Iterator[Writer]:
    options = lock_options(state.config)
    for instant in state.timeline.pending().writes():
        if not is_plan(state, instant):
            yield _of_heartbeat(instant, find_heartbeat(state.storage, instant.requested_time, options))


def _of_heartbeat(instant: Instant, beat: Heartbeat | None) -> Writer:
    if beat is None:
        return Writer("dead", instant.requested_time, str(instant.action))
    return Writer(
        "writing" if beat.is_alive else "dead",
        instant.requested_time,
        str(instant.action),
        program="lakehouse" if beat.is_ours else "hudi",
        host=beat.host or None,
        pid=beat.pid or None,
        thread=beat.thread or None,
        since=beat.since or None,
        heartbeat_seconds=None if beat.age_ms is None else round(beat.age_ms / 1000, 1),
    )


def _services(state: TableState) -> Iterator[Writer]:
    """Planned compactions that a process runs; waiting plans have no writer."""
    for instant in state.timeline.pending().writes():
        holder = find_lock_holder(state.storage, lock_file(instant.requested_time)) if is_plan(state, instant) else None
        if holder is not None:
            yield _named("running", holder, instant)


def _named(state: str, holder: Holder, instant: Instant | None = None, *, waits_for: str | None = None) -> Writer:
    return Writer(
        state,
        instant=None if instant is None else instant.requested_time,
        action=None if instant is None else str(instant.action),
        program="hudi" if holder.is_hudi else "lakehouse",
        host=holder.host,
        pid=holder.pid,
        thread=holder.thread or None,
        since=holder.since or None,
        waits_for=waits_for,
    )
