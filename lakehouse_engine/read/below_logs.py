"""Finds the base file below logs that a savepoint pins without it."""

from __future__ import annotations

from dataclasses import replace

from lakehouse_engine.files.base_file import missing_file
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.order import is_between, latest
from lakehouse_engine.view.slicing import slice_of
from lakehouse_engine.view.table_state import TableState


def with_base(state: TableState, piece: FileSlice) -> FileSlice:
    """A slice that a savepoint pins, with its base file.

    For a group with a pending compaction Hudi pins only the logs on top of it, and below them is the compaction's file. Raises
    `MissingFileError` if that is gone.
    """
    if piece.base_file is not None:
        return piece
    group = next((one for one in state.view.file_groups(piece.partition_path) if one.group == piece.group), None)
    bases = {one.base_instant: one.base_file for one in group.slices if one.base_file is not None} if group else {}
    begun = slice_of(piece.log_files[0], bases, state.order)
    lost = _lost_compaction(state, piece, begun) if begun not in bases or state.order.goes_by_completion else None
    if lost is not None:
        path = f"the base file of {piece.file_id} written by {lost}"
        raise missing_file(path, "logs that a savepoint keeps are on top of it", instant=lost)
    return replace(piece, base_file=bases.get(begun))


def _lost_compaction(state: TableState, piece: FileSlice, begun: str) -> str | None:
    """The compaction that made the slice below the logs, if its file is not that of `begun`; None if there is no other."""
    if not state.order.goes_by_completion:
        return begun if _is_compaction(state, begun) else None
    least, shown = begun if begun != piece.base_instant else "", state.order.moment(piece.base_instant)
    known = [*state.archived_timeline.instants(), *state.timeline.completed()]
    made = (one for one in known if one.action is Action.COMMIT and is_between(one.requested_time, least, shown))
    return latest(one.requested_time for one in made if _wrote_to(state, one, piece.group)) or None


def _wrote_to(state: TableState, instant: Instant, group: FileGroupId) -> bool:
    if state.timeline.contains(instant.requested_time):
        return any(one == group for one, _ in state.write_record(instant).files)
    found = state.archived_timeline.commit_of(instant.requested_time)
    stats = state.format.decode_commit(found[1]).write_stats() if found is not None else ()
    return any(FileGroupId(stat.partition_path or "", stat.file_id or "") == group for stat in stats)


def _is_compaction(state: TableState, instant_time: str) -> bool:
    """True if the instant made base files from logs; writes that only log begin slices as well."""
    found = state.timeline.find(instant_time)
    archived = () if found else state.archived_timeline.instants()
    known = [found] if found else [instant for instant in archived if instant.requested_time == instant_time]
    return any(instant.is_completed and instant.action is Action.COMMIT for instant in known)
