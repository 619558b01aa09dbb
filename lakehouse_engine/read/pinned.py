"""Finds the slices that a savepoint keeps, and the clean that deleted a file."""

from __future__ import annotations

from typing import Any

from lakehouse_engine.files.base_file import missing_file
from lakehouse_engine.format.v6.metadata_avro import decode_record
from lakehouse_engine.model.files import FileSlice, join_path
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.read.below_logs import with_base
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.view.protected import is_of_later_write
from lakehouse_engine.view.slicing import whole_slices
from lakehouse_engine.view.table_state import TableState


def pinned_slices(state: TableState, moment: str) -> list[FileSlice] | None:
    """Slices kept by a savepoint of the write at exactly this moment: the table as of it. None without such a savepoint.

    Later compactions do not matter: a group is its newest pinned base file with every pinned log on top of it. Raises `MissingFileError` if
    a pinned file is gone.
    """
    instant_time = state.timeline.savepoint_at(moment)
    if instant_time is None:
        return None
    record = _record(state, Instant(instant_time, Action.SAVEPOINT, State.COMPLETED), "HoodieSavepointMetadata")
    slices: list[FileSlice] = []
    for partition, pins in record["partitionMetadata"].items():
        names = [name for name in pins["savepointDataFile"] if not is_of_later_write(state, instant_time, name)]
        found = [_pinned(state, join_path(partition, name)) for name in names]
        slices += [with_base(state, piece) for piece in whole_slices(partition, found)]
    return slices


def _pinned(state: TableState, path: str) -> StoredFile:
    entry = state.storage.head(path)
    if entry is None:
        raise missing_file(path, "a savepoint should have kept it")
    return entry


def removed_by(state: TableState, path: str) -> str | None:
    """Time of the clean on the active timeline that deleted the file at `path`; None if none did."""
    partition, _, name = path.rpartition("/")
    for instant in reversed(state.timeline.completed().instants):
        if instant.action is Action.CLEAN:
            cleaned = _record(state, instant, "HoodieCleanMetadata")["partitionMetadata"].get(partition)
            if cleaned is not None and name in (deleted.rpartition("/")[2] for deleted in cleaned["successDeleteFiles"]):
                return instant.requested_time
    return None


def _record(state: TableState, instant: Instant, schema_name: str) -> dict[str, Any]:
    return decode_record(schema_name, state.storage.read(state.active.path(instant)))
