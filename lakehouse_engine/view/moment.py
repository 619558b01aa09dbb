"""Answers that rest on one state of a table, while others go on changing it."""

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
"""What may be whole again since an earlier state of the table was listed."""


def at_one_moment(state: TableState, ask: Callable[[TableState], Answer]) -> Answer:
    """The answer of `ask` to `state`, or to the table as it is later.

    Between a listing and the reading of what it named, archiving and a change of the version move instants away, and restores and cleans
    remove what they take back: then the table is looked at anew, and so it is where a listing was kept that an earlier state made. Raises
    what `ask` raises where the table did not change meanwhile, for then the file is lost, and `TableNotFoundError` where the table is gone.
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
            if (newer.timeline, newer.layout) == (state.timeline, state.layout) and not state.view.rests_on_kept:
                raise
        state = newer
    return ask(state)
