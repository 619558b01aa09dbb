"""Selects the versions of a file group that a clean keeps, by policy (hudi-format 10.4; Hudi `CleanPlanner`). Pure.

Whatever the policy, a clean also keeps the newest slice of a group, files pinned by a savepoint, and files that a pending table service
reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from lakehouse_engine.model.instant import Action, Instant, State, format_instant_time, parse_instant_time
from lakehouse_engine.model.order import Order, is_later
from lakehouse_engine.options import CleanOptions
from lakehouse_engine.timeline.timeline import Timeline

KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"
KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"


class CleanPolicy(Protocol):
    """Decides what stays of one group. Instant times of its slices come newest first."""

    def keeps(self, slices: Sequence[str]) -> frozenset[str]:
        """The slices that stay."""
        ...

    def drops_replaced(self, replaced_at: str) -> bool:
        """True if nothing stays of a group that was replaced at that time."""
        ...


@dataclass(frozen=True, slots=True)
class KeepSince:
    """Keeps everything that a query as of `earliest` or later reads: slices from then on, and the newest one before."""

    earliest: str
    order: Order

    def keeps(self, slices: Sequence[str]) -> frozenset[str]:
        before = [time for time in slices if self.order.is_after(self.earliest, time)]
        return frozenset(slices).difference(before[1:])

    def drops_replaced(self, replaced_at: str) -> bool:
        return self.order.is_after(self.earliest, replaced_at)


@dataclass(frozen=True, slots=True)
class KeepVersions:
    """Keeps the newest `retained` slices of each group."""

    retained: int

    def keeps(self, slices: Sequence[str]) -> frozenset[str]:
        return frozenset(slices[: self.retained])

    def drops_replaced(self, replaced_at: str) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Retention:
    """A policy for one moment. `earliest` is the oldest instant that stays readable (None: the policy knows none).

    `policy` is None if nothing may be deleted; `held_by` is the pending write that holds `earliest` back.
    """

    policy: CleanPolicy | None
    earliest: Instant | None = None
    held_by: Instant | None = None


def retention(timeline: Timeline, options: CleanOptions, now: str) -> Retention:
    """Retention by `options` for a table with that timeline at the instant time `now` (in the table's zone)."""
    return _POLICIES[options.policy](timeline, options, now)


def _by_commits(timeline: Timeline, options: CleanOptions, now: str) -> Retention:
    completed = _completed(timeline)
    if len(completed) <= options.commits_retained:
        return Retention(None)
    return _since(timeline, completed, completed[-options.commits_retained])


def _by_hours(timeline: Timeline, options: CleanOptions, now: str) -> Retention:
    completed = _completed(timeline)
    if not completed:
        return Retention(None)
    try:
        cutoff = format_instant_time(parse_instant_time(now) - timedelta(hours=options.hours_retained))
    except OverflowError:
        cutoff = ""  # before the first possible date: no instant is that old
    recent = [instant for instant in completed if not is_later(cutoff, timeline.order.moment(instant.requested_time))]
    return _since(timeline, completed, recent[0] if recent else completed[-1])


def _by_versions(timeline: Timeline, options: CleanOptions, now: str) -> Retention:
    return Retention(KeepVersions(options.versions_retained)) if _completed(timeline) else Retention(None)


_POLICIES: dict[str, Callable[[Timeline, CleanOptions, str], Retention]] = {
    KEEP_LATEST_COMMITS: _by_commits,
    KEEP_LATEST_BY_HOURS: _by_hours,
    KEEP_LATEST_FILE_VERSIONS: _by_versions,
}


def _completed(timeline: Timeline) -> list[Instant]:
    """Completed writes from the timeline's start on; savepointed commits that archiving passed by do not count."""
    start = timeline.start.requested_time if timeline.start else ""
    return [instant for instant in timeline.completed().writes() if not is_later(start, instant.requested_time)]


def _reads(instant: Instant) -> bool:
    return instant.action.is_write or (instant.action is Action.INDEXING and instant.state is State.INFLIGHT)


def _since(timeline: Timeline, completed: Sequence[Instant], earliest: Instant) -> Retention:
    """Retention from `earliest` on, but not past the oldest pending write, or index build that runs: they may still read what existed when
    they began.
    """
    order, pending = timeline.order, timeline.pending().filter(_reads).first()
    if pending is None or order.is_visible(earliest.requested_time, pending.requested_time):
        return Retention(KeepSince(earliest.requested_time, order), earliest)
    before = [instant for instant in completed if order.is_visible(instant.requested_time, pending.requested_time)]
    if not before:
        return Retention(None, None, pending)
    return Retention(KeepSince(before[-1].requested_time, order), before[-1], pending)
