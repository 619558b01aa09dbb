"""Timeline files that do not decode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakehouse_engine.errors import FormatError
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.state_records import STATE_RECORDS
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.verify.metadata import decode_state, needed_request
from lakehouse_engine.view.lost_commits import completed_path, lost_commits
from lakehouse_engine.view.table_state import TableState

_WRITES = (Action.COMMIT, Action.DELTA_COMMIT)
_MAY_BE_EMPTY = ((Action.CLEAN, State.INFLIGHT), (Action.RESTORE, State.INFLIGHT), (Action.REPLACE_COMMIT, State.REQUESTED))
"""Files that Hudi leaves empty."""


@dataclass(frozen=True, slots=True)
class DamagedState:
    """A state file of an instant. `reached` is the highest state for which the instant has a file."""

    instant: Instant
    path: str
    reached: State
    message: str


def damaged_states(active: ActiveTimeline) -> Iterator[DamagedState]:
    """Every state file of the active timeline that should decode and does not, oldest first; reads all of them.

    Then missing plans, without which something cannot be finished or explained.
    """
    found = [
        instant
        for entry in active.storage.list(active.format.timeline_folder)
        if not entry.is_directory and (instant := active.format.parse_file_name(entry.name)) is not None
    ]
    timeline = Timeline.of_states(found)
    highest = {(one.requested_time, one.action.completes_as): one.state for one in timeline}
    for instant in found:
        message = _damage(active, instant)
        reached = highest[instant.requested_time, instant.action.completes_as]
        # An incomplete write is taken back whatever its files say.
        if message is not None and (instant.is_completed or reached is State.COMPLETED or instant.action not in _WRITES):
            yield DamagedState(instant, _path(active, instant), reached, message)
    for instant in timeline:
        requested = needed_request(instant)
        if requested is not None and requested not in found and instant.action not in _WRITES:
            yield DamagedState(requested, _path(active, requested), instant.state, f"the plan of {instant} is not there")


def lost_files_of_commits(state: TableState) -> Iterator[DamagedState]:
    """Missing completed files of writes."""
    for instant in lost_commits(state):
        yield DamagedState(instant, completed_path(state, instant), State.COMPLETED, "the completed file of the write is gone")


def _path(active: ActiveTimeline, instant: Instant) -> str:
    return f"{active.format.timeline_folder}/{active.format.file_name(instant)}"


def _damage(active: ActiveTimeline, instant: Instant) -> str | None:
    key = instant.action, instant.state
    try:
        if key not in STATE_RECORDS:
            decode_state(active.format, instant, active.read(instant))
        elif key not in _MAY_BE_EMPTY or active.read(instant):
            active.plan(STATE_RECORDS[key], instant)
    except FormatError as error:
        # The message's remedies are for callers that have not run a repair.
        return error.message.partition("; `repair`")[0].partition(". Put it back")[0]
    return None
