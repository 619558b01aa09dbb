"""Checkpoint of live files, written when instants are archived: required files stay known (docs/adr/0014)."""

from __future__ import annotations

import logging

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.v6.plans_codec import decode_plan
from lakehouse_engine.manifest.archived_files import ArchivedFiles
from lakehouse_engine.model.files import join_path
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.live_files import LiveCheckpoint, LiveFiles, LiveGroup, WrittenFile
from lakehouse_engine.model.order import is_between, is_later, just_before, latest
from lakehouse_engine.model.savepoint import HoodieSavepointMetadata
from lakehouse_engine.timeline.checkpoints import SAVEPOINTED, LiveCheckpoints
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

def write_checkpoint(state: TableState, until: str, archive_number: int) -> str:
    """Write the checkpoint of what all writes up to `until` left; returns its instant, "" if there is nothing to record.

    Called under the table lock, once the archive file of that number is durable and before an instant leaves the active timeline. If the
    files of archived writes are unknown, existing base files are recorded: an earlier loss stays unknown.
    """
    archived = state.archived_files()
    boundary = latest((until, archived.boundary))
    if not boundary:
        return ""
    known = archived.live if archived.is_known else _listed(state)
    counted_to, writes = _counted_to(state, archived), state.timeline.completed().writes()
    active = [state.write_record(one) for one in writes if is_between(one.requested_time, counted_to, boundary)]
    told_to = _told_to(state, archived, boundary)
    LiveCheckpoints(state.storage).write(boundary, LiveCheckpoint(known.after(active), archive_number, told_to))
    return boundary


def _told_to(state: TableState, archived: ArchivedFiles, boundary: str) -> str:
    """Instant up to which all files of writes are known. Others may archive incompletely, which ends it.

    Before its start, only the files tell a table without an archive from one that lost it.
    """
    if not archived.all_told or (not archived.boundary and not _is_all_active(state)):
        return archived.told_to
    writes = [one for one in state.timeline.completed().writes() if is_between(one.requested_time, archived.boundary, boundary)]
    return boundary if all(state.named_files(one) is not None for one in writes) else archived.told_to


def _is_all_active(state: TableState) -> bool:
    """True if every current file comes from a write of the active timeline."""
    active = {one.requested_time for one in state.timeline.completed().writes()}
    logged = {file.path for write in state.active_writes() for _, file in write.files if file.is_log}
    return all(
        (piece.base_file is None or piece.base_file.instant_time in active) and all(log.path in logged for log in piece.log_files)
        for piece in state.view.latest_slices()
    )


def keep_savepointed(state: TableState) -> None:
    """Before the first archiving after each savepoint: record what commits say about its pinned files. Durable on return.

    A compaction that was pending at the savepoint may be archived later, and then its inputs are not live any more.
    """
    checkpoints, archived = LiveCheckpoints(state.storage, SAVEPOINTED), state.archived_files()
    if not archived.is_known:
        return
    for time in state.order.sorted(state.timeline.savepointed - set(checkpoints.times())):
        if not is_later(archived.boundary, time):
            checkpoints.write(time, LiveCheckpoint(_pinned(state, time, archived)))


def _pinned(state: TableState, time: str, archived: ArchivedFiles) -> LiveFiles:
    try:
        metadata = decode_plan(
            HoodieSavepointMetadata,
            state.active.read(Instant(time, Action.SAVEPOINT, State.COMPLETED)),
        )
    except FormatError as error:
        logger.warning("the savepoint %s of %s does not parse: %s", time, state.config.name, error)
        return LiveFiles()
    pinned = {join_path(partition, name) for partition, names in metadata.pinned_files().items() for name in names}
    found: dict[FileGroupId, LiveGroup] = {}
    for group, file in [*archived.live.files(), *(pair for write in state.active_writes(state.order.moment(time)) for pair in write.files)]:
        if file.path in pinned:
            known = found.get(group, LiveGroup())
            found[group] = LiveGroup(known.base, (*known.logs, file)) if file.is_log else LiveGroup(file, known.logs)
    return LiveFiles(found)


def lacks_checkpoint(state: TableState) -> bool:
    """True if reads lack a complete checkpoint: they then read the archive, or do not know which files are required."""
    archived = state.archived_files()
    if state.timeline.start is None:
        return False
    return not archived.is_known or bool(archived.boundary and (archived.checkpoint != archived.boundary or archived.problems))


def renew_checkpoint(state: TableState) -> str | None:
    """Write a checkpoint if reads lack one, as in tables that others archived; returns its instant, None if none is needed.

    Called under the table lock. Changes nothing that a reader sees, except its knowledge of lost files.
    """
    archived = state.archived_files()
    start = state.timeline.start
    if start is None or not lacks_checkpoint(state):
        return None
    until = archived.boundary
    if not archived.is_known:
        # The last archived instant is not known either; nothing is between it and the start.
        until = just_before(start.requested_time)
    time = write_checkpoint(state, until, state.archived_timeline.newest_number())
    LiveCheckpoints(state.storage).forget_before(time)
    return time or None


def _counted_to(state: TableState, archived: ArchivedFiles) -> str:
    """Instant up to which writes count, or say nothing about the current table."""
    if archived.is_known:
        return archived.boundary
    since = state.proven_since
    return just_before(since) if since else ""


def _listed(state: TableState) -> LiveFiles:
    since = state.proven_since
    bases = [piece.base_file for piece in state.view.latest_slices() if piece.base_file is not None]
    return LiveFiles(
        {
            FileGroupId(base.partition_path, base.file_id): LiveGroup(
                WrittenFile(base.path, base.instant_time, base.instant_time, size=base.size)
            )
            for base in bases
            if is_later(since, base.instant_time)
        }
    )
