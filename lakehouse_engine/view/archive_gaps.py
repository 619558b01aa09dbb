"""Lost parts of the archive: what was written in them is unknown.

`repair` records in the table's properties which archive files are incomplete or missing. Missing files that are not recorded yet are found
through other files that name them (`timeline.archived`).
"""

from __future__ import annotations

from lakehouse_engine.view.table_state import TableState

LOST_ARCHIVE = "lakehouse.archive.lost"
"""Property: names of lost archive files, or of files with lost blocks, separated by spaces."""
ACCEPTED_ARCHIVE = "lakehouse.archive.lost.accepted"
"""Property: losses that were accepted: an unknown write_id counts as new."""


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
