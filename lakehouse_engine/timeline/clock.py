"""New instant times: strictly increasing, whatever the machine's clock does."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import TimelineError
from lakehouse_engine.model.instant import format_instant_time, parse_instant_time
from lakehouse_engine.model.order import is_later, latest
from lakehouse_engine.timeline.timeline import Timeline

logger = logging.getLogger(__name__)

_TOLERANCE = timedelta(days=1)
_WORTH_A_WARNING = timedelta(seconds=1)
_REMEMBERED = 64
"""Number of timelines ahead of the clock that one process is likely to write at a time."""


class LastInstant:
    """Newest instant times handed out, shared by threads.

    Times by the clock are kept per time zone; times that continue a timeline ahead of it, per newest instant there: one table's clock must
    not push others into the future.
    """

    def __init__(self) -> None:
        self.by_clock: dict[str, str] = {}
        self.by_timeline: OrderedDict[str, str] = OrderedDict()
        self.guard = threading.Lock()

    def after(self, newest: str, time: str) -> None:
        """Remember what was handed out for a timeline that ends with `newest`."""
        self.by_timeline[newest] = time
        while len(self.by_timeline) > _REMEMBERED:
            self.by_timeline.popitem(last=False)


_PROCESS = LastInstant()


def _utc_now() -> datetime:
    return datetime.now(UTC)


def is_in_the_future(moment: datetime, now: datetime) -> bool:
    """True if a moment is further ahead than differences of clocks or zones explain."""
    return moment - now > _TOLERANCE


@dataclass(frozen=True, slots=True)
class InstantClock:
    """Hands out instant times of one table.

    `timezone` is the table's (`TableConfig.timeline_timezone`): `UTC`, or `LOCAL` for this machine's zone, as in Hudi. `now` returns aware
    moments; `last` is what this process handed out before. `accept_future` lets times continue from any timeline more than a day ahead of
    the clock, `accepted` from that instant. `offset`: how far the digits of the table's writers are ahead of UTC, if not in this machine's
    zone.
    """

    timezone: str = "UTC"
    now: Callable[[], datetime] = _utc_now
    last: LastInstant = field(default=_PROCESS, repr=False, compare=False)
    accept_future: bool = False
    accepted: str = ""
    offset: timedelta | None = None

    def next(self, timeline: Timeline) -> str:
        """The current time, or a millisecond after the newest known instant if the clock is behind it.

        Raises `TimelineError` if the newest instant is more than a day ahead of the clock.
        """
        newest = timeline.newest_time
        with self.last.guard:
            moment = self.wall_clock()
            time = format_instant_time(moment)
            if not is_later(time, newest):
                time = format_instant_time(self._after(latest((newest, self.last.by_timeline.get(newest, ""))), moment))
                self.last.after(newest, time)
                return time
            zone = self.timezone if self.offset is None else str(self.offset)
            before = self.last.by_clock.get(zone, "")
            if not is_later(time, before):
                time = format_instant_time(self._after(before, moment))
            self.last.by_clock[zone] = time
        return time

    def wall_clock(self) -> datetime:
        """Now, with the digits of the table's zone (kept as if UTC, because instant times name no zone)."""
        moment = self.now()
        if self.offset is not None:
            return moment.astimezone(UTC) + self.offset
        return (moment.astimezone() if self.timezone == "LOCAL" else moment.astimezone(UTC)).replace(tzinfo=UTC)

    def _after(self, floor: str, moment: datetime) -> datetime:
        try:
            following = parse_instant_time(floor) + timedelta(milliseconds=1)
        except TimelineError as error:
            raise TimelineError(f"the newest instant {floor!r} is no point in time; no later one can be made") from error
        ahead = following - moment
        if is_in_the_future(following, moment) and not self.accepts(following):
            raise TimelineError(
                f"the newest instant {floor} is {ahead} ahead of this machine's clock. If the clock is wrong, correct it; if a writer with"
                " a wrong clock left that instant, restore the table to before it, or let it go on from there: both with"
                " accept_future (`lakehouse restore --accept-future`, `lakehouse repair --accept-future`)",
                instant=floor,
            )
        if ahead > _WORTH_A_WARNING:
            logger.warning("the newest instant %s is %s ahead of this machine's clock; going on from it", floor, ahead)
        return following

    def accepts(self, following: datetime) -> bool:
        """True if it is near the accepted instant: another jump is another accident."""
        if self.accept_future or not self.accepted:
            return self.accept_future
        return not is_in_the_future(following, parse_instant_time(self.accepted))
