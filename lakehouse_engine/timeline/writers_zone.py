"""Time zone of a table's instants, inferred from the table.

With `hoodie.table.timeline.timezone=LOCAL` (Hudi's default) every writer uses its process's zone, which is not stored. But the file that
requests an instant is made at the moment of the instant's digits, so its modification time (UTC) reveals the zone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import TimelineError
from lakehouse_engine.format.table_format import TableFormat
from lakehouse_engine.model.instant import Action, Instant, State, parse_instant_time
from lakehouse_engine.model.order import digits_between
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.timeline import Timeline

_STEP = timedelta(minutes=15)
"""Zones differ from UTC by a multiple of this."""
_EASTMOST, _WESTMOST = timedelta(hours=14), timedelta(hours=-12)
_LATE, _EARLY = timedelta(seconds=10), timedelta(seconds=2)
"""How long after its instant a file may be made, and the resolution of modification times."""
_FOLLOWS = 5
"""Milliseconds. A clock behind the newest instant (end of summer time, or an earlier clock that ran ahead) continues from it in steps of
one. An instant this close to the one before it shows that one's clock, whose moment has passed; some in between may be gone.
"""
_LOOKED_AT = 8
_ENOUGH = 2
_REQUESTED_AS = {Action.COMMIT: (Action.COMMIT, Action.COMPACTION), Action.DELTA_COMMIT: (Action.DELTA_COMMIT, Action.LOG_COMPACTION)}


@dataclass(frozen=True, slots=True)
class WritersZone:
    """The newest instant that shows how far its digits are ahead of UTC, and the moment of its request."""

    instant: str
    offset: timedelta
    moment: datetime


def writers_zone(storage: Storage, table_format: TableFormat, timeline: Timeline) -> WritersZone | None:
    """What the newest instants tell; None where they tell nothing.

    That is the case for fewer than two, for differing ones, and for a table's copy with other modification times.
    """
    found: list[WritersZone] = []
    for time in _newest(timeline):
        zone = _told(storage, table_format, timeline, time)
        if zone is not None:
            found.append(zone)
            if len(found) == _ENOUGH:
                break
    agree = len(found) == _ENOUGH and found[0].offset == found[1].offset
    return found[0] if agree else None


def _newest(timeline: Timeline) -> Iterator[str]:
    times = list(dict.fromkeys(instant.requested_time for instant in timeline.instants if len(instant.requested_time) == 17))
    by_a_clock = [time for earlier, time in pairwise(["0", *times]) if digits_between(earlier, time) > _FOLLOWS]
    yield from reversed(by_a_clock[-_LOOKED_AT:])


def _told(storage: Storage, table_format: TableFormat, timeline: Timeline, time: str) -> WritersZone | None:
    requested = _requested_file(storage, table_format, timeline, time)
    if requested is None:
        return None
    moment = datetime.fromtimestamp(requested / 1000, UTC)
    try:
        ahead = parse_instant_time(time) - moment
    except TimelineError:
        return None
    offset = round(ahead / _STEP) * _STEP
    late = offset - ahead
    fits = -_EARLY <= late <= _LATE and _WESTMOST <= offset <= _EASTMOST
    return WritersZone(time, offset, moment) if fits else None


def _requested_file(storage: Storage, table_format: TableFormat, timeline: Timeline, time: str) -> int | None:
    """When it was made, in epoch milliseconds."""
    for instant in timeline:
        if instant.requested_time == time and instant.action is not Action.SAVEPOINT:
            for action in _REQUESTED_AS.get(instant.action, (instant.action,)):
                entry = storage.head(f"{table_format.timeline_folder}/{table_format.file_name(Instant(time, action, State.REQUESTED))}")
                if entry is not None:
                    return entry.modified_ms
    return None
