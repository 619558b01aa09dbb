"""Finds the commit of a write by its id: a caller without an answer asks again with it, and nothing is written twice."""

from __future__ import annotations

import re
import uuid

from lakehouse_engine.errors import CorruptLogError, OptionError
from lakehouse_engine.format.v6.archived_record import archived_commit
from lakehouse_engine.model.commit_metadata import WRITE_ID_KEY, HoodieCommitMetadata
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.timeline.restores import restores
from lakehouse_engine.view.archive_gaps import unknown_parts
from lakehouse_engine.view.table_state import TableState

_WRITE_ID = re.compile(r"[!#-\[\]-~](?:[ !#-\[\]-~]{0,198}[!#-\[\]-~])?")
"""Characters that JSON and Avro store unchanged: archive files are searched for the id before they are decoded."""


def new_write_id() -> str:
    """Id for a write that was given none."""
    return uuid.uuid4().hex


def check_write_id(write_id: str) -> None:
    """Raises `OptionError` for an id that is empty, too long, or has characters that formats escape."""
    if not _WRITE_ID.fullmatch(write_id):
        raise OptionError(
            f"write_id={write_id!r} is not one: it has 1 to 200 printable ASCII characters, no quotes or backslashes, no space at its ends"
        )


def write_of(state: TableState, write_id: str, operation: WriteOperationType) -> tuple[Instant, HoodieCommitMetadata] | None:
    """The completed write that carries `write_id`, active or archived; None if there is none, or it was taken back.

    Raises `OptionError` if it was another operation, and `FormatError` if a commit is damaged or a part of the archive is lost, so that the
    answer is unknown.
    """
    found = _active(state, write_id) or _archived(state, write_id)
    if found is None:
        _check_archive_is_whole(state, write_id)
    if found is not None and found[1].operation_type is not operation:
        raise OptionError(
            f"write_id={write_id!r} is that of {found[0]}, which was an {found[1].operation_type}, no {operation}: an id is of one write",
            table=state.config.name,
            instant=found[0].requested_time,
        )
    return found


def _check_archive_is_whole(state: TableState, write_id: str) -> None:
    unknown = unknown_parts(state) if state.has_archive or state.archived_files().counted else ()
    if unknown:
        raise CorruptLogError(
            f"whether write_id={write_id!r} was written cannot be told, for a part of the archive is lost ({', '.join(unknown)});"
            " nothing was written. Put the files back from a backup, or look whether the rows are there; `repair --accept-lost-archive`"
            " lets every write_id that is not found count as new from then on",
            path=f"{state.archived_timeline.path}/{unknown[0]}",
            table=state.config.name,
        )


def _active(state: TableState, write_id: str) -> tuple[Instant, HoodieCommitMetadata] | None:
    for instant in reversed(state.timeline.completed().writes().instants):
        metadata = state.commit_metadata(instant)
        if metadata.extra_metadata.get(WRITE_ID_KEY) == write_id:
            return instant, metadata
    return None


def _archived(state: TableState, write_id: str) -> tuple[Instant, HoodieCommitMetadata] | None:
    archive = state.archived_timeline
    taken_back: set[str] | None = None
    for entry in archive.entries_with(write_id):
        metadata = archived_commit(entry) if entry.instant.is_completed and entry.instant.action.is_write else None
        if metadata is None or metadata.extra_metadata.get(WRITE_ID_KEY) != write_id:
            continue
        if taken_back is None:
            records = restores(state.active, state.timeline)
            taken_back = {instant for record in records for instant in record.rolled_back}
        if entry.instant.requested_time not in taken_back:
            return entry.instant, metadata
    return None
