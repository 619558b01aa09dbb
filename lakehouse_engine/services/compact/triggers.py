"""When a compaction is due (Hudi `ScheduleCompactionActionExecutor.needCompact`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakehouse_engine.commit.table_clock import table_clock
from lakehouse_engine.model.instant import Action, parse_instant_time
from lakehouse_engine.model.order import is_later
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.options import CompactionOptions
from lakehouse_engine.view.table_state import TableState


@dataclass(frozen=True, slots=True)
class Backlog:
    """Completed delta commits since the last completed compaction, and since the last requested one.

    `seconds` have passed since the completed one or, before the first, since the first delta commit.
    """

    commits: int
    commits_since_request: int
    seconds: float


TRIGGERS: dict[str, Callable[[Backlog, CompactionOptions], bool]] = {
    "NUM_COMMITS": lambda backlog, options: backlog.commits >= options.delta_commits,
    "NUM_COMMITS_AFTER_LAST_REQUEST": lambda backlog, options: backlog.commits_since_request >= options.delta_commits,
    "TIME_ELAPSED": lambda backlog, options: backlog.seconds >= options.delta_seconds,
    "NUM_AND_TIME": lambda backlog, options: backlog.commits >= options.delta_commits and backlog.seconds >= options.delta_seconds,
    "NUM_OR_TIME": lambda backlog, options: backlog.commits >= options.delta_commits or backlog.seconds >= options.delta_seconds,
}
"""Triggers by the values of `hoodie.compact.inline.trigger.strategy`."""


def is_due(state: TableState, options: CompactionOptions) -> bool:
    """True if the trigger asks for a compaction now; never for a table without logs."""
    if state.config.table_type is not TableType.MERGE_ON_READ:
        return False
    backlog = backlog_of(state)
    return backlog is not None and backlog.commits > 0 and TRIGGERS[options.trigger](backlog, options)


def backlog_of(state: TableState) -> Backlog | None:
    """The backlog of a table; None if it has no delta commits."""
    written = [instant.requested_time for instant in state.timeline.completed() if instant.action is Action.DELTA_COMMIT]
    if not written:
        return None
    compactions = [instant for instant in state.timeline if instant.action.completes_as is Action.COMMIT]
    done = [instant.requested_time for instant in compactions if instant.is_completed]
    last = done[-1] if done else ""
    requested = compactions[-1].requested_time if compactions else ""
    now = table_clock(state).next(state.timeline)
    return Backlog(
        commits=sum(is_later(time, last) for time in written),
        commits_since_request=sum(is_later(time, requested) for time in written),
        seconds=(parse_instant_time(now) - parse_instant_time(last or written[0])).total_seconds(),
    )
