"""Savepoints whose completed file is lost (deleted, or not copied): cleans would delete what they keep.

Once a savepoint is complete, its inflight file gets the same content (`undo.savepoint`), and its deletion removes the inflight file first.
So an inflight file with content and without a completed file is a copy of a lost savepoint. An empty one belongs to an unfinished
savepoint, or to Hudi.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from lakehouse_engine.commit.completing import complete
from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.v6.plans_codec import decode_plan
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.savepoint import HoodieSavepointMetadata
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


def lost_savepoints(state: TableState) -> Mapping[Instant, bytes]:
    """Content of each lost savepoint's completed file. A write that was taken back has none."""
    active, found = state.active, {}
    for instant in state.timeline:
        file = state.timeline_files.get(instant) if instant.action is Action.SAVEPOINT and instant.state is State.INFLIGHT else None
        if file is not None and file.size and state.timeline.is_committed(instant.requested_time):
            content = active.read(instant)
            if _is_whole(content):
                found[instant.at(State.COMPLETED)] = content
    return found


def put_back_savepoints(state: TableState) -> TableState:
    """Complete lost savepoints again; returns the new state. The table lock is held."""
    lost = lost_savepoints(state)
    for instant, content in lost.items():
        logger.warning("the completed file of the savepoint %s of %s was gone; it is put back", instant.requested_time, state.config.name)
        put_back_savepoint(state, instant, content)
    return state.refresh() if lost else state


def put_back_savepoint(state: TableState, instant: Instant, content: bytes) -> None:
    """Complete a lost savepoint again. The table lock is held."""
    complete(state, instant.at(State.INFLIGHT), decode_plan(HoodieSavepointMetadata, content), content)


def _is_whole(content: bytes) -> bool:
    try:
        decode_plan(HoodieSavepointMetadata, content)
    except FormatError:
        return False
    return True
