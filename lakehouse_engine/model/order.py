"""The order of instants: the only place that compares them.

Version 6 orders instants by requested time, versions 8 and 9 by completion time (hudi-format II.2). What a user gives as "as of" or "since"
is a *moment*: a point in that order. `Order.moment` is the moment at which an instant shows; in version 6 it is the requested time.

Base files of a group, archive boundaries and clocks go by requested times in every version: use the functions of this module for those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from lakehouse_engine.model.instant import InstantRange

Item = TypeVar("Item")

NEVER = "9" * 17
"""Moment of an incomplete instant: after all others."""


@dataclass(frozen=True, slots=True)
class Order:
    """Order of a table's instants. Made by `by_request` or `by_completion`."""

    _moments: Mapping[str, str] | None = field(default=None, compare=False)
    _archived: Callable[[], Mapping[str, str]] = field(default=dict, compare=False)
    _logs_by_writer: str = field(default="", compare=False)

    @classmethod
    def by_request(cls, logs_by_writer: str = "") -> Order:
        """Order of version 6: an instant shows at its requested time.

        If the table came from a later version, logs of instants up to `logs_by_writer` are named by their writers.
        """
        return cls(_logs_by_writer=logs_by_writer)

    @classmethod
    def by_completion(cls, moments: Mapping[str, str], archived: Callable[[], Mapping[str, str]] = dict) -> Order:
        """Order of versions 8 and 9. `moments` maps requested times to completion times, `NEVER` for pending instants.

        `archived` does the same for instants that are not on the timeline, and is called only when one is needed. An instant unknown to
        both shows at its requested time, as in Hudi (`CompletionTimeQueryView.getCompletionTime`).
        """
        return cls(moments, archived)

    @property
    def goes_by_completion(self) -> bool:
        return self._moments is not None

    def names_writer(self, instant_time: str) -> bool:
        """True if the time in a log's name is its writer's instant, False if it is the slice's."""
        return self._moments is not None or instant_time <= self._logs_by_writer

    def moment(self, instant_time: str) -> str:
        """Moment at which an instant shows."""
        if self._moments is None:
            return instant_time
        known = self._moments.get(instant_time)
        return known if known is not None else self._archived().get(instant_time, instant_time)

    def place(self, instant_time: str) -> str:
        """`moment` for an instant on the timeline. Any other instant is older, and is not looked up in the archive."""
        return instant_time if self._moments is None else self._moments.get(instant_time, instant_time)

    def is_after(self, instant_time: str, other: str) -> bool:
        """True if an instant shows later than another one."""
        return self.moment(instant_time) > self.moment(other)

    def is_visible(self, instant_time: str, as_of: str | None) -> bool:
        """True if an instant shows at the moment `as_of` (None: now)."""
        return as_of is None or self.moment(instant_time) <= as_of

    def is_within(self, instant_time: str, window: InstantRange) -> bool:
        """True if an instant shows within a range of moments."""
        return is_between(self.moment(instant_time), window.begin, window.end)

    def newest(self, instant_times: Iterable[str]) -> str | None:
        """The instant that shows last; None if there are none."""
        return max(instant_times, key=self.moment, default=None)

    def oldest(self, instant_times: Iterable[str]) -> str | None:
        """The instant that shows first; None if there are none."""
        return min(instant_times, key=self.moment, default=None)

    def sorted(self, instant_times: Iterable[str], *, newest_first: bool = False) -> list[str]:
        """The instants in the order in which they show."""
        return sorted(instant_times, key=self.moment, reverse=newest_first)


def is_between(moment: str, begin: str | None, end: str | None) -> bool:
    """True if `begin < moment <= end`, as in Hudi's incremental queries; None leaves an end open."""
    return (begin is None or moment > begin) and (end is None or moment <= end)


def is_later(time: str, other: str) -> bool:
    """True if one time (both moments, or both requested times) is after another; "" is before all."""
    return time > other


def latest(times: Iterable[str]) -> str:
    """The last of some times; "" if there are none."""
    return max(times, default="")


def first_of(time: str, other: str) -> str:
    """The earlier one of two times."""
    return min(time, other)


def age(time: str) -> str:
    """Sort key of a time: oldest first."""
    return time


def earliest(times: Iterable[str]) -> str | None:
    """The first of some times; None if there are none."""
    return min(times, default=None)


def digits_between(earlier: str, later: str) -> int:
    """Difference of two times, as whole numbers."""
    return int(later) - int(earlier)


def last_digits(time: str, count: int) -> int:
    """The number in the last digits of a time, where instants have a suffix."""
    return int(time[-count:])


def just_before(time: str) -> str:
    """Last possible time before `time`, as a bound."""
    return f"{int(time) - 1:0{len(time)}d}"


def just_after(time: str) -> str:
    """First possible time after `time`, as a bound: no instant has it."""
    return f"{time}0"


def in_time_order(items: Iterable[Item], time: Callable[[Item], str], *, newest_first: bool = False) -> list[Item]:
    """Sort items by time; stable for equal times."""
    return sorted(items, key=time, reverse=newest_first)
