"""Lost parts of the archive: what was written in them is unknown.

`repair` records in the table's properties which archive files are incomplete or missing. Missing files that are not recorded yet are found
through other files that name them (`timeline.archived`).
"""

from __future__ import annotations

from contextlib import suppress

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.timeline.checkpoints import LiveCheckpoints
from lakehouse_engine.timeline.history import LsmHistory
from lakehouse_engine.timeline.history_head import head_damage
from lakehouse_engine.view.table_state import TableState

LOST_ARCHIVE = "lakehouse.archive.lost"
"""Property: names of lost archive files, or of files with lost blocks, separated by spaces."""
ACCEPTED_ARCHIVE = "lakehouse.archive.lost.accepted"
"""Property: losses that were accepted: an unknown write_id counts as new."""


def damaged_head(state: TableState) -> tuple[str, str] | None:
    """The path of the file that should say which files of the history of versions 8 and 9 count, and does not, with what is wrong with it;
    None where all is well, or the table has no such history.
    """
    history = state.archived_timeline
    found = head_damage(history, _counted(state)) if isinstance(history, LsmHistory) else None
    return None if found is None else (f"{history.path}/{found[0]}", found[1])


def _counted(state: TableState) -> int:
    """The number of the newest manifest that a checkpoint of live files counts."""
    checkpoints = LiveCheckpoints(state.storage)
    for time in checkpoints.times():
        with suppress(LakehouseError):  # one that is damaged is told by itself
            return checkpoints.read(time).archive_number
    return 0


A_PART = ":part"
"""Suffix of a file name that has lost some blocks; the rest of the file keeps its name."""


def missed_files(state: TableState) -> tuple[str, ...]:
    """Missing archive files that are not in the table's properties yet. Reads each archive file."""
    known = _names(state, LOST_ARCHIVE)
    return tuple(name for name in state.archived_timeline.lost(state.archived_files().counted) if name not in known)


def unknown_parts(state: TableState) -> tuple[str, ...]:
    """Archive files with lost content, unless the loss was accepted. Reads archive files like `missed_files`."""
    settled = {*_names(state, ACCEPTED_ARCHIVE), *(file.name for file in state.archived_timeline.files())}
    return tuple(name for name in (*_names(state, LOST_ARCHIVE), *missed_files(state)) if name not in settled)


def with_lost(state: TableState, *names: str) -> dict[str, str | None]:
    """The property with these archive files added. Earlier acceptance does not cover them."""
    return {LOST_ARCHIVE: " ".join(dict.fromkeys([*_names(state, LOST_ARCHIVE), *names]))}


def _names(state: TableState, key: str) -> list[str]:
    return state.config.properties.get(key, "").split()
