"""New instant times: strictly increasing, whatever the machine's clock does."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import TimelineError
from lakehouse_engine.model.instant import format_instant_time, parse_instant_time
from lakehouse_engine.timeline.timeline import Timeline

logger = logging.getLogger(__name__)

_TOLERANCE = timedelta(days=1)
_WORTH_A_WARNING = timedelta(seconds=1)


class LastInstant:
    """The newest instant time handed out, shared by threads."""

    def __init__(self) -> None:
        self.time = ""
        self.guard = threading.Lock()


_PROCESS = LastInstant()


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class InstantClock:
    """Hands out instant times of one table.

    `timezone` is the table's (`TableConfig.timeline_timezone`): `UTC`, or `LOCAL` for the zone of this machine, as Hudi reads it.
    `now` gives aware moments; `last` is what this process handed out before. `accept_future` lets times go on from a timeline that is
    more than a day ahead of the clock.
    """

    timezone: str = "UTC"
    now: Callable[[], datetime] = _utc_now
    last: LastInstant = field(default=_PROCESS, repr=False, compare=False)
    accept_future: bool = False

    def next(self, timeline: Timeline) -> str:
        """The time now, or a millisecond after the newest known instant if the clock is behind that.

        Raises `TimelineError` when the newest instant is more than a day ahead of the clock.
        """
        newest = timeline.last()
        with self.last.guard:
            floor = max(newest.requested_time if newest else "", self.last.time)
            moment = self._wall_clock()
            time = format_instant_time(moment)
            if time <= floor:
                time = format_instant_time(self._after(floor, moment))
            self.last.time = time
        return time

    def _wall_clock(self) -> datetime:
        """Now, with the digits of the table's zone (kept as if they were UTC, as instant times name no zone)."""
        moment = self.now()
        return (moment.astimezone() if self.timezone == "LOCAL" else moment.astimezone(UTC)).replace(tzinfo=UTC)

    def _after(self, floor: str, moment: datetime) -> datetime:
        try:
            following = parse_instant_time(floor) + timedelta(milliseconds=1)
        except ValueError as error:
            raise TimelineError(f"the newest instant {floor!r} is no point in time; no later one can be made") from error
        ahead = following - moment
        if ahead > _TOLERANCE and not self.accept_future:
            raise TimelineError(
                f"the newest instant {floor} is {ahead} ahead of this machine's clock: correct the clock, or accept instants in the future",
                instant=floor,
            )
        if ahead > _WORTH_A_WARNING:
            logger.warning("the newest instant %s is %s ahead of this machine's clock; going on from it", floor, ahead)
        return following
