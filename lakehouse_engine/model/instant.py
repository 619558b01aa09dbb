"""Instants: what happened to a table, when, and in which state it is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, datetime

from lakehouse_engine.compat import UTC, StrEnum
from lakehouse_engine.errors import OptionError, TimelineError

_INSTANT_TIME = re.compile(r"^\d{14}(\d{3})?(\d{3})?$")


class Action(StrEnum):
    """What an instant does. The value is the word in file names (Hudi `HoodieTimeline`)."""

    COMMIT = "commit"
    DELTA_COMMIT = "deltacommit"
    REPLACE_COMMIT = "replacecommit"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    RESTORE = "restore"
    COMPACTION = "compaction"
    LOG_COMPACTION = "logcompaction"
    INDEXING = "indexing"
    CLUSTERING = "clustering"
    """A pending clustering of table version 8 and later; version 6 has it as a pending `replacecommit`."""

    @property
    def completes_as(self) -> Action:
        """Action of the instant once it is completed (`commit` for a compaction)."""
        return _COMPLETES_AS.get(self, self)

    @property
    def is_write(self) -> bool:
        """True if it adds data files: `commit`, `deltacommit`, `replacecommit`, and compactions."""
        return self.completes_as in _WRITE_ACTIONS


# Constants, because a timeline of thousands of instants looks them up several times for each.
_COMPLETES_AS = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}
_WRITE_ACTIONS = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})


class State(StrEnum):
    """State of an instant; each has a file on the timeline."""

    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"

    @property
    def rank(self) -> int:
        return _RANKS[self]


_RANKS = {state: number for number, state in enumerate((State.REQUESTED, State.INFLIGHT, State.COMPLETED))}


@dataclass(frozen=True, slots=True)
class Instant:
    """One action at one time in one state. `requested_time` is `yyyyMMddHHmmssSSS` (17 digits; 14 in old tables).

    `completed_at` is the completion time in the same form, if the table's version records it (8 and later). It does not count for equality:
    an instant known from a file's name, or from a row, equals the one on the timeline.
    """

    requested_time: str
    action: Action
    state: State
    completed_at: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.requested_time.isdigit():
            raise TimelineError(f"an instant time has digits only, not {self.requested_time!r}")
        if self.completed_at is None:
            return
        if self.state is not State.COMPLETED or not self.completed_at.isdigit():
            raise TimelineError(f"{self} cannot have the completion time {self.completed_at!r}")

    @property
    def is_completed(self) -> bool:
        return self.state is State.COMPLETED

    def at(self, state: State) -> Instant:
        """The same instant in another state; completing a compaction makes it a commit. Only the completed state has a completion time."""
        if state is not State.COMPLETED:
            return Instant(self.requested_time, self.action, state)
        return Instant(self.requested_time, self.action.completes_as, state, self.completed_at)

    def __str__(self) -> str:
        return f"{self.requested_time}.{self.action}.{self.state}"


@dataclass(frozen=True, slots=True)
class InstantRange:
    """Moments `begin < t <= end`, as in Hudi's incremental queries; `None` leaves an end open.

    `times` are the requested times of the timeline's instants that show within the range, if requested times are not the moments (table
    versions 8 and 9; Hudi `InstantRange.RangeType.EXACT_MATCH`). Instants requested before `start` are archived: their requested times
    count.
    """

    begin: str | None = None
    end: str | None = None
    times: frozenset[str] | None = None
    start: str | None = None


def format_instant_time(moment: datetime) -> str:
    """`moment` (aware, or naive meaning UTC) as a 17-digit instant time."""
    try:
        utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError as error:
        raise OptionError(f"{moment!r} lies before or after all points in time in UTC") from error
    return f"{utc.year:04d}{utc:%m%d%H%M%S}{utc.microsecond // 1000:03d}"


def parse_instant_time(text: str) -> datetime:
    """Aware UTC moment of an instant time; a text of 14 digits gets 999 milliseconds, as in Hudi. Raises `TimelineError`."""
    if not _INSTANT_TIME.match(text):
        raise TimelineError(f"{text!r} is no instant time: expected yyyyMMddHHmmssSSS")
    millis = int(text[14:17]) if len(text) >= 17 else 999
    try:
        return datetime.strptime(text[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC, microsecond=millis * 1000)
    except ValueError as error:
        raise TimelineError(f"{text!r} is no instant time: no moment has these digits") from error


def as_of_instant_time(value: str | date | datetime) -> str:
    """Instant time for a time-travel argument: an instant, a timestamp or date text, a `datetime` or a `date`.

    A date or a second means its first millisecond, as in Hudi's `as.of.instant` (`HoodieSqlCommonUtils.formatQueryInstant`). Raises
    `OptionError` for anything else.
    """
    if isinstance(value, datetime):
        return format_instant_time(value)
    if isinstance(value, date):
        return f"{value.year:04d}{value:%m%d}000000000"
    if not isinstance(value, str):
        raise OptionError(f"a point in time is text, a date or a datetime, not {type(value).__name__} {value!r}")
    text = value.strip()
    if text.isascii() and text.isdigit() and len(text) in (14, 17, 20):
        return text
    try:
        return format_instant_time(datetime.fromisoformat(text))
    except ValueError as error:
        raise OptionError(
            f"{value!r} is no point in time: give an instant (yyyyMMddHHmmssSSS), 'yyyy-MM-dd' or 'yyyy-MM-dd HH:mm:ss[.SSS]'"
        ) from error
