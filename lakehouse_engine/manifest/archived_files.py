"""Files that archived writes left, so that required files stay known after archiving.

Uses the newest valid checkpoint, and what others archived since; without a checkpoint the whole archive, once per process. Nothing is
claimed without proof: if the archive is damaged beyond the checkpoint, nothing is known about archived writes, and `problems` says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.errors import FormatError, LakehouseError, StorageError, StoredFileNotFoundError
from lakehouse_engine.format.table_format import TableFormat
from lakehouse_engine.format.v6.archived_record import archived_commit
from lakehouse_engine.manifest.written import write_record
from lakehouse_engine.model.archived import ArchivedEntry
from lakehouse_engine.model.files import join_path
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.live_files import LiveFiles, WriteRecord
from lakehouse_engine.model.order import first_of, is_later, latest
from lakehouse_engine.storage.base import Storage, StoredFile
from lakehouse_engine.storage.locations import identity_of
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.checkpoints import LiveCheckpoints
from lakehouse_engine.timeline.history import History
from lakehouse_engine.timeline.restores import restores
from lakehouse_engine.timeline.timeline import Timeline

logger = logging.getLogger(__name__)

_KEPT = 16
"""Number of tables whose archived files a process remembers."""


@dataclass(frozen=True, slots=True)
class ArchivedFiles:
    """`live` counts every completed write up to the instant `boundary` ("": none is archived, or nothing is known).

    `is_known` is False if there is an archive whose writes are unknown. `problems` maps damaged files to the damage. `checkpoint` is the
    one used. All files of writes up to `told_to` ("": none) are known; `all_told` says whether that is every archived write. `counted` is
    the number of the newest archive file that the checkpoint includes.
    """

    live: LiveFiles
    boundary: str = ""
    is_known: bool = True
    problems: tuple[tuple[str, str], ...] = ()
    checkpoint: str | None = None
    told_to: str = ""
    all_told: bool = True
    counted: int = 0

    @property
    def marks(self) -> tuple[object, ...]:
        """Identity of this knowledge among others of the same table."""
        return self.boundary, self.is_known, self.checkpoint, self.told_to, self.all_told


@dataclass(frozen=True, slots=True)
class _Table:
    """One table at one moment."""

    storage: Storage
    archive: History
    checkpoints: LiveCheckpoints
    counts: Callable[[str], bool]


def read_archived_files(
    storage: Storage, table_format: TableFormat, archive: History, listing: Sequence[StoredFile], timeline: Timeline
) -> ArchivedFiles:
    """Files as of the archived writes that count for `timeline`, the whole active one. Damage is not raised. `listing` is the archive
    folder's.
    """
    checkpoints = LiveCheckpoints(storage)
    try:
        listed = archive.files(listing)
    except (FormatError, StoredFileNotFoundError) as error:
        problem = str(error.context.get("path", archive.path)), error.message
        logger.warning("what archived writes of %s left is not known: %s", storage.root, error)
        return ArchivedFiles(LiveFiles(), is_known=False, problems=(problem,), all_told=False)
    stored = [entry for entry in storage.list(checkpoints.folder) if not entry.is_directory]
    if not listed and not stored:
        return ArchivedFiles(LiveFiles())
    gone = _taken_back(storage, table_format, timeline)
    start = timeline.start
    # Instants that a dead archiving left on both timelines are not before the start, and count as active.
    before = "" if start is None else start.requested_time
    table = _Table(storage, archive, checkpoints, lambda time: is_later(before, time) and not _is_in(time, gone))
    key = (identity_of(storage) or id(storage), _marks(listed), _marks(stored), before, gone)
    return _remembered(key, lambda: _read(table, listed))


def _marks(entries: Sequence[StoredFile]) -> tuple[Hashable, ...]:
    return tuple((entry.name, entry.version) for entry in entries)


def _taken_back(storage: Storage, table_format: TableFormat, timeline: Timeline) -> tuple[tuple[str, str], ...]:
    """Time ranges that restores took back, exclusive at both ends. A restore without a readable target takes everything before it."""
    records = restores(ActiveTimeline(storage, table_format), timeline)
    spans = {record.instant.requested_time: record.target for record in records}
    return tuple((spans.get(time, ""), time) for time in (one.requested_time for one in timeline if one.action is Action.RESTORE))


def _is_in(time: str, spans: Sequence[tuple[str, str]]) -> bool:
    return any(is_later(time, begin) and is_later(end, time) for begin, end in spans)


def _read(table: _Table, listed: Sequence[StoredFile]) -> ArchivedFiles:
    problems: list[tuple[str, str]] = []
    for time in table.checkpoints.times():
        if table.counts(time):
            try:
                found = table.checkpoints.read(time)
            except StoredFileNotFoundError:
                continue  # a newer one has replaced it meanwhile
            except (FormatError, StorageError) as error:
                problems.append((table.checkpoints.path(time), error.message))
                continue
            newer = table.archive.newer(found.archive_number, listed)
            known = ArchivedFiles(found.live, time, checkpoint=time, told_to=first_of(found.told_to, time), counted=found.archive_number)
            return _with_archive(table, newer, known, problems)
    return _with_archive(table, listed, ArchivedFiles(LiveFiles()), problems)


def _with_archive(table: _Table, files: Sequence[StoredFile], known: ArchivedFiles, problems: list[tuple[str, str]]) -> ArchivedFiles:
    """`known`, plus later writes in the archive files."""
    writes: list[WriteRecord] = []
    cleaned: set[str] = set()
    all_told = known.told_to == known.boundary
    try:
        for entry in table.archive.entries_of(files):
            cleaned.update(cleaned_by(entry))
            all_told = all_told and not _is_newer_write(table, entry, known.boundary)
            record = _record(entry)
            if record is not None and is_later(record.instant_time, known.boundary) and table.counts(record.instant_time):
                writes.append(record)
    except LakehouseError as error:
        problems.append((str(error.context.get("path", table.archive.path)), error.message))
        logger.warning("what archived writes of %s left is not known: %s", table.storage.root, error)
        return ArchivedFiles(LiveFiles(), is_known=False, problems=tuple(problems), all_told=False, counted=known.counted)
    for path, problem in problems:
        logger.warning("%s of %s is passed over: %s", path, table.storage.root, problem)
    boundary = latest((known.boundary, *(write.instant_time for write in writes)))
    # Cleans take no current file: one that was taken had been replaced by something unknown here.
    live = known.live.after(writes).without(frozenset(cleaned)) if writes else known.live
    return ArchivedFiles(live, boundary, True, tuple(problems), known.checkpoint, known.told_to, all_told, known.counted)


def _is_newer_write(table: _Table, entry: ArchivedEntry, boundary: str) -> bool:
    """Archive entry of a write that only the archive has; None otherwise."""
    time = entry.instant.requested_time
    return entry.instant.action.is_write and entry.instant.is_completed and is_later(time, boundary) and table.counts(time)


def _record(entry: ArchivedEntry) -> WriteRecord | None:
    metadata = archived_commit(entry) if entry.instant.action.is_write else None
    return None if metadata is None else write_record(
        entry.instant.requested_time, metadata, archived=True, shown_at=entry.instant.completed_at
    )


def cleaned_by(entry: ArchivedEntry) -> Iterator[str]:
    """Paths that an archived clean deleted; empty for other actions."""
    clean = entry.record.get("hoodieCleanMetadata") or {}
    for partition, cleaned in (clean.get("partitionMetadata") or {}).items():
        yield from (join_path(partition, path.rpartition("/")[2]) for path in cleaned["successDeleteFiles"])


def _remembered(key: Hashable, read: Callable[[], ArchivedFiles]) -> ArchivedFiles:
    """Both kinds of files never change, so their names, sizes and ages are a key."""
    found = _REMEMBERED.get(key)
    if found is None:
        found = read()
        if not found.problems:  # which may be recent
            _REMEMBERED.put(key, found)
    return found


_REMEMBERED: BoundedCache[ArchivedFiles] = BoundedCache(_KEPT)
