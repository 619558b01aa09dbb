"""Answers from one state of a table while others change it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lakehouse_engine.errors import (
    CorruptFileError,
    CorruptLogError,
    InstantCleanedError,
    InstantNotFoundError,
    MissingFileError,
    StoredFileNotFoundError,
    TimelineRestoredError,
)
from lakehouse_engine.timeline.presence import told_if_gone
from lakehouse_engine.view.table_state import TableState

Answer = TypeVar("Answer")
_ATTEMPTS = 8
_GONE = (InstantNotFoundError, MissingFileError, StoredFileNotFoundError, TimelineRestoredError)
_MENDED = (CorruptFileError, CorruptLogError, InstantCleanedError)
"""Errors that may not occur again after a new listing."""


def at_one_moment(state: TableState, ask: Callable[[TableState], Answer]) -> Answer:
    """Answer of `ask` for `state`, or for the table's later state.

    Between a listing and the reading of a listed file, archiving and version changes move instants, and restores and cleans delete files:
    then the table is read again, and also if a listing came from an earlier state. Raises what `ask` raises if the table has not changed,
    because the file is then lost, and `TableNotFoundError` if the table is gone.
    """
    with told_if_gone(state.storage):
        return _asked(state, ask)


def _asked(state: TableState, ask: Callable[[TableState], Answer]) -> Answer:
    for _ in range(_ATTEMPTS - 1):
        try:
            return ask(state)
        except (*_GONE, *_MENDED) as error:
            if isinstance(error, _MENDED) and not state.view.rests_on_kept:
                raise
            newer = state.refresh()
            if (newer.timeline, newer.format) == (state.timeline, state.format) and not state.view.rests_on_kept:
                raise
        state = newer
    return ask(state)
