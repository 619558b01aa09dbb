"""Clock of a table's next instants: in the zone of existing ones, and never continuing from an unaccepted future (docs/adr/0018)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from lakehouse_engine.commit.concurrency.promised import promise_completion
from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import StorageError, TimelineError
from lakehouse_engine.format.file_names import TEMP_FOLDER
from lakehouse_engine.model.instant import Action, Instant, format_instant_time, parse_instant_time
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.os_errors import is_full
from lakehouse_engine.timeline.clock import InstantClock, is_in_the_future
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.timeline.writers_zone import WritersZone, writers_zone
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

ACCEPTED_FUTURE = "lakehouse.accepted.future"
"""Property: newest instant in the future from which writes may continue."""
SKEW_REFUSED = timedelta(minutes=5)
"""Between this machine's clock and that of the table's storage."""
PROBE = f"{TEMP_FOLDER}/lakehouse.clock"
"""File that is made to read the storage's clock; the next write removes one left by a crash."""

_TOLD: set[tuple[str, timedelta]] = set()
_LENT: dict[str, InstantClock] = {}
"""Clocks by the roots of tables that go by another table's clock."""


@contextmanager
def lent_clock(storage: Storage, clock: InstantClock) -> Iterator[None]:
    """Let a clock name the instants of the table in `storage` in this process meanwhile. The caller holds a lock that keeps out every other
    change of that table.
    """
    before = _LENT.get(storage.root)
    _LENT[storage.root] = clock
    try:
        yield
    finally:
        del _LENT[storage.root]
        if before is not None:
            _LENT[storage.root] = before


def table_clock(state: TableState) -> InstantClock:
    """Clock of the table's next instants: a `lent_clock`, or one of its own.

    With the zone LOCAL it uses the zone of the newest instants, whatever this process's zone.
    """
    lent = _LENT.get(state.storage.root)
    if lent is not None:
        return lent
    config = state.config
    zone = writers_zone(state.storage, state.format, state.timeline) if config.timeline_timezone == "LOCAL" else None
    offset = None if zone is None or _is_ours(zone) else zone.offset
    if zone is not None and offset is not None:
        _tell(state, zone)
    return InstantClock(config.timeline_timezone, offset=offset, accepted=config.properties.get(ACCEPTED_FUTURE, ""))


def completion_time(state: TableState, instant: Instant) -> str | None:
    """Completion time of an instant that is about to be completed: after every time on the timeline, or the promised one. None if the
    table's version records none. The table lock is held.
    """
    if not state.format.completes_with_time:
        return None
    time = table_clock(state).next(state.active.load())
    # A savepoint has the requested time of its write.
    return time if instant.action is Action.SAVEPOINT else promise_completion(state.storage, instant.requested_time, time)


def wall_time(state: TableState) -> str:
    """This moment as an instant, by the clock in the table's zone. Instants may be ahead of it, which would distort ages. Raises
    `TimelineError` as `InstantClock.next` if they are too far ahead to change anything.
    """
    clock = table_clock(state)
    clock.next(state.timeline)
    return format_instant_time(clock.wall_clock())


def check_skew(state: TableState, clock: InstantClock, path: str) -> None:
    """`path` is a file of the table that was just made. Raises `TimelineError` if its storage's clock differs too much.

    A clock that is ahead would hide the commits of all other writers until time has caught up.
    """
    entry = state.storage.head(path)
    if entry is None:
        return
    here, there = clock.now().astimezone(UTC), datetime.fromtimestamp(entry.modified_ms / 1000, UTC)
    if abs(here - there) > SKEW_REFUSED:
        raise TimelineError(
            f"this machine's clock says {here:%Y-%m-%d %H:%M:%S} UTC and that of the table's storage {there:%Y-%m-%d %H:%M:%S} UTC; correct"
            " the clock that is wrong: commits of other writers would not be seen behind one from the future",
            table=state.config.name,
            path=path,
        )


def claim(state: TableState, clock: InstantClock, requested: Instant, content: bytes = b"") -> Instant:
    """Put an instant of that clock on the timeline, and remove it if `check_skew` refuses it. Raises as both."""
    timeline = state.active
    timeline.create_requested(requested, content)
    try:
        check_skew(state, clock, f"{state.format.timeline_folder}/{state.format.file_name(requested)}")
    except TimelineError:
        timeline.delete_pending(requested)
        raise
    return requested


def check_clock(state: TableState) -> None:
    """Like `check_skew`, with a file made for it before readers see anything. Skipped on a full disk."""
    try:
        state.storage.overwrite(PROBE, b"1")
    except StorageError as error:
        if not is_full(error):
            raise
        logger.warning("the clock of %s cannot be looked at: %s", state.config.name, error.message)
        return
    try:
        check_skew(state, table_clock(state), PROBE)
    finally:
        state.storage.delete(PROBE)


def future_instants(state: TableState) -> tuple[Instant, ...]:
    """Instants more than a day ahead of the clock, oldest first, from which writes may not continue: a writer's clock was wrong."""
    clock = table_clock(state)
    now = clock.wall_clock()

    def is_ahead(instant: Instant) -> bool:
        try:
            moment = parse_instant_time(instant.requested_time)
        except TimelineError:
            return False
        return is_in_the_future(moment, now) and not clock.accepts(moment)

    return tuple(instant for instant in state.timeline if is_ahead(instant))


def accept_future(storage: Storage, *, lock_timeout_ms: int) -> str | None:
    """Let later changes continue from the newest instant, which is in the future; returns it, or None.

    The table stores it (`lakehouse.accepted.future`), and another jump is refused again. Raises `LockTimeoutError`.
    """
    with TableLock(storage, lock_timeout_ms):
        state = TableState.load(storage)
        ahead = future_instants(state)
        if not ahead:
            return None
        newest = ahead[-1].requested_time
        logger.warning("%s goes on from its newest instant %s, which is in the future", state.config.name, newest)
        ConfigStore(storage).update({ACCEPTED_FUTURE: newest})
        return newest


def _is_ours(zone: WritersZone) -> bool:
    """True if this process had that zone then, and so has the writers' rules of summer time."""
    return zone.moment.astimezone().utcoffset() == zone.offset


def _tell(state: TableState, zone: WritersZone) -> None:
    if (state.storage.root, zone.offset) not in _TOLD:
        _TOLD.add((state.storage.root, zone.offset))
        logger.warning(
            "the writers of %s make instants in a zone %s h from UTC (%s), and this process is in another; going on in theirs",
            state.config.name,
            zone.offset / timedelta(hours=1),
            zone.instant,
        )
