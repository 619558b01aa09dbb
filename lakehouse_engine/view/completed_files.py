"""Checks that the files of completed writes can be what their writers made, as far as the listing of the timeline shows."""

from __future__ import annotations

from lakehouse_engine.errors import CorruptInstantError
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.view.table_state import TableState


def check_completed_files(state: TableState) -> None:
    """Raise `CorruptInstantError` for a completed write whose file is empty, or that was completed twice with different files: further
    writes would bury what it promised.

    Torn files show when they are read; an empty one would pass for a commit without files. Uses the listing that the state was loaded from.
    """
    for again in state.completed_again:
        check_completed_once(state, again)
    for instant, entry in state.timeline_files.items():
        if not entry.size and instant.is_completed and instant.action.is_write:
            raise CorruptInstantError(
                "a completed write has an empty file: it was torn, and what it wrote is unknown; put the file back from a backup, or"
                " restore the table to before it",
                instant=instant,
                path=entry.path,
                bytes=0,
                table=state.config.name,
            )


def check_completed_once(state: TableState, again: StoredFile) -> None:
    """Raise `CorruptInstantError` if `again`, of `TableState.completed_again`, belongs to a write and differs from its first file."""
    instant = state.format.parse_file_name(again.name)
    if instant is None or not instant.action.is_write:
        return
    first = state.timeline_files[instant]
    if state.storage.read(first.path) != state.storage.read(again.path):
        raise CorruptInstantError(
            f"the {instant.action} was completed twice, by {first.name} and {again.name}, as two processes do that have no lock in common;"
            " the first of them counts. Move the one whose rows are not wanted out of the table's directory",
            instant=instant,
            path=again.path,
            table=state.config.name,
        )
