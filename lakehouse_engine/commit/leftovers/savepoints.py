"""Savepoints whose completed file is gone (deleted, or left out of a copy): cleans would take what they keep.

Once a savepoint is complete, its inflight file gets the same content (`undo.savepoint`), and a deletion removes the inflight file first.
So an inflight file with content, without the completed one, is a copy of a lost savepoint. An empty one is of a savepoint that was never
completed, or that Hudi made.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from lakehouse_engine.commit.table_clock import completion_time
from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.timeline.plans_codec import decode_plan
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.savepoint import HoodieSavepointMetadata
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


def lost_savepoints(state: TableState) -> Mapping[Instant, bytes]:
    """What the completed file of each lost savepoint said. A write that was taken back keeps none."""
    active, found = state.active, {}
    for instant in state.timeline:
        file = state.timeline_files.get(instant) if instant.action is Action.SAVEPOINT and instant.state is State.INFLIGHT else None
        if file is not None and file.size and state.timeline.is_committed(instant.requested_time):
            content = active.read(instant)
            if _is_whole(content):
                found[instant.at(State.COMPLETED)] = content
    return found


def put_back_savepoints(state: TableState) -> TableState:
    """Complete lost savepoints again; the state after that. The table lock is held."""
    lost = lost_savepoints(state)
    for instant, content in lost.items():
        logger.warning("the completed file of the savepoint %s of %s was gone; it is put back", instant.requested_time, state.config.name)
        put_back_savepoint(state, instant, content)
    return state.refresh() if lost else state


def put_back_savepoint(state: TableState, instant: Instant, content: bytes) -> None:
    """Complete a lost savepoint again. The table lock is held."""
    state.active.complete(instant.at(State.INFLIGHT), content, completion_time(state, instant))


def _is_whole(content: bytes) -> bool:
    try:
        decode_plan(HoodieSavepointMetadata, content)
    except FormatError:
        return False
    return True
