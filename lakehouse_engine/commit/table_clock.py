"""The clock that makes a table's next instants: in the zone of those that are there, and not from a future that nobody knows of.

What is decided here, and why, is in docs/adr/0018.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from lakehouse_engine.commit.beside.promised import promise_completion
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
"""Property: the newest instant in the future from which writes may go on."""
SKEW_REFUSED = timedelta(minutes=5)
"""Between this machine's clock and that of the table's storage."""
PROBE = f"{TEMP_FOLDER}/lakehouse.clock"
"""Made to ask the storage for its time; the next write removes one that a crash left."""

_TOLD: set[tuple[str, timedelta]] = set()


def table_clock(state: TableState) -> InstantClock:
    """The clock of the table's next instants.

    In a table of the zone LOCAL it has the zone that the newest instants were made in, whatever the zone of this process is.
    """
    config = state.config
    zone = writers_zone(state.storage, state.layout, state.timeline) if config.timeline_timezone == "LOCAL" else None
    offset = None if zone is None or _is_ours(zone) else zone.offset
    if zone is not None and offset is not None:
        _tell(state, zone)
    return InstantClock(config.timeline_timezone, offset=offset, accepted=config.properties.get(ACCEPTED_FUTURE, ""))


def completion_time(state: TableState, instant: Instant) -> str | None:
    """The completion time of an instant that is about to be completed, after every time on the timeline, or the one that it was promised;
    None where the table's version records none. The table lock is held.
    """
    if not state.layout.completes_with_time:
        return None
    time = table_clock(state).next(state.active.load())
    # A savepoint has the requested time of its write.
    return time if instant.action is Action.SAVEPOINT else promise_completion(state.storage, instant.requested_time, time)


def wall_time(state: TableState) -> str:
    """The instant time of this moment, by the clock in the table's zone: instants may be ahead of it, and what is kept by age would age
    with them. Raises `TimelineError` as `InstantClock.next`, where they are so far ahead that nothing is to be changed.
    """
    clock = table_clock(state)
    clock.next(state.timeline)
    return format_instant_time(clock.wall_clock())


def check_skew(state: TableState, clock: InstantClock, path: str) -> None:
    """`path` is a file of the table that was made just now. Raises `TimelineError` where the clock of its storage tells another time.

    Instants of a clock that is ahead make the commits of all other writers invisible until time has caught up.
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
    """Put an instant of that clock on the timeline, and take it back where `check_skew` refuses it. Raises as both."""
    timeline = state.active
    timeline.create_requested(requested, content)
    try:
        check_skew(state, clock, f"{state.layout.timeline_folder}/{state.layout.file_name(requested)}")
    except TimelineError:
        timeline.delete_pending(requested)
        raise
    return requested


def check_clock(state: TableState) -> None:
    """As `check_skew`, before there is anything that readers see, by a file that is made for it. On a full disk it is not looked at."""
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
    """Instants more than a day ahead of the clock, oldest first, from which writes may not go on: left by a writer with a wrong clock."""
    clock = table_clock(state)
    now = clock.wall_clock()

    def is_ahead(instant: Instant) -> bool:
        try:
            moment = parse_instant_time(instant.requested_time)
        except (TimelineError, ValueError):
            return False
        return is_in_the_future(moment, now) and not clock.accepts(moment)

    return tuple(instant for instant in state.timeline if is_ahead(instant))


def accept_future(storage: Storage, *, lock_timeout_ms: int) -> str | None:
    """Let every later change of the table go on from its newest instant, which is in the future; that instant, or None where none is.

    It is kept in the table (`lakehouse.accepted.future`), and another jump of a clock is refused again. Raises `LockTimeoutError`.
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
    """Whether this process had that zone at that moment: then it has the writers' rules of summer time too."""
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
