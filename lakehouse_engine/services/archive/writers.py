"""Writes archived instants, by the table's version: to the archive of version 6, or to the history of versions 8 and 9."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import FormatError, StorageError
from lakehouse_engine.format.v6.archived import archive_file_name, archive_file_number, render_archive
from lakehouse_engine.format.v6.archived_record import archived_entry
from lakehouse_engine.format.v8.history import HistoryEntry
from lakehouse_engine.model.archived import ArchivedEntry
from lakehouse_engine.model.instant import Action, Instant, State, format_instant_time
from lakehouse_engine.options import ArchiveOptions
from lakehouse_engine.services.archive.merge import merge_archive_files, remove_merged
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.timeline.archived import ArchivedTimeline
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.history import LsmHistory
from lakehouse_engine.timeline.lsm_writer import LsmWriter
from lakehouse_engine.view.archive_gaps import missed_files, with_lost
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

States = Sequence[tuple[Instant, StoredFile]]
"""State files of one instant, in order of state."""


@dataclass(frozen=True, slots=True)
class Written:
    """`paths` are the files that archiving wrote. `number` is the archive's number from then on (`History.newest_number`)."""

    paths: tuple[str, ...]
    number: int


class ArchiveWriter(Protocol):
    """Writes to the archive of one table. The table lock is held."""

    def left_over(self) -> Sequence[Instant]:
        """Instants of the last archiving, which may have died before they left the active timeline. Also settles files that it left
        unfinished.
        """
        ...

    def read(self, instants: Sequence[States]) -> Callable[[ArchiveOptions], Written]:
        """Read the files of completed instants; returns a function that writes them to the archive, durably.

        Raises `CorruptInstantError` for a damaged completed file.
        """
        ...

    def tidy(self, written: Written) -> None:
        """Remove files that are no longer read, when all is done."""
        ...


def archive_writer(state: TableState) -> ArchiveWriter:
    """Writer of the table's archive: LSM files in versions 8 and 9, log files in older ones."""
    archive = state.archived_timeline
    return _LsmArchive(state, archive) if isinstance(archive, LsmHistory) else _LogArchive(state, _logs(archive))


def _logs(archive: object) -> ArchivedTimeline:
    if isinstance(archive, ArchivedTimeline):
        return archive
    raise TypeError(f"{type(archive).__name__} has no writer")


@dataclass(frozen=True, slots=True)
class _LogArchive:
    """Archive of version 6: merges small files, then writes one file with every state of every instant."""

    state: TableState
    archive: ArchivedTimeline

    def left_over(self) -> Sequence[Instant]:
        newest = self.archive.newest_file()
        remove_merged(self.archive, newest.merged_from)
        return newest.instants

    def read(self, instants: Sequence[States]) -> Callable[[ArchiveOptions], Written]:
        entries = [[self._entry(instant, file) for instant, file in states] for states in instants]
        return lambda options: self._write(entries, options)

    def tidy(self, written: Written) -> None:
        """Does nothing: merging removes its sources."""

    def _write(self, entries: Sequence[Sequence[ArchivedEntry]], options: ArchiveOptions) -> Written:
        archive, counted = self.archive, self.state.archived_files().counted
        # The name of a lost file is not reused: the new file names it as its predecessor, so that it is reported as missing.
        plan = archive.merge_plan()
        # The target of Hudi's merge may be deleted again.
        before = [file.name for file in archive.files() if plan is None or file.name != plan.target][-1:]
        lost = [archive_file_name(counted)] if counted > max(map(_number, before), default=0) else []
        # The newest file must come from an archiving alone, and the checkpoint counts the merged one: so nothing in between may fail.
        merged = merge_archive_files(archive, options, counted)
        number = archive.next_number(counted)
        path = f"{archive.path}/{archive_file_name(number)}"
        newest = before if merged is None else [merged.rpartition("/")[2]]
        archive.storage.create(path, render_archive(entries, options.batch, after=[*newest, *lost]))
        return Written((path,) if merged is None else (merged, path), number)

    def _entry(self, instant: Instant, file: StoredFile) -> ArchivedEntry:
        time = self._transition_time(file)
        data = self.state.storage.read(file.path)
        try:
            return archived_entry(self.state.format, instant, data, time)
        except FormatError as error:
            if instant.is_completed:
                raise _told(self.state, instant, file, error) from error
            # The plan of a completed instant is only history, so a damaged one must not block archiving.
            logger.warning("%s of %s is archived without its content: %s", instant, self.state.config.name, error)
            return archived_entry(self.state.format, instant, b"", time)

    def _transition_time(self, file: StoredFile) -> str:
        moment = datetime.fromtimestamp(file.modified_ms / 1000, UTC)
        local = self.state.config.timeline_timezone == "LOCAL"
        return format_instant_time(moment.astimezone().replace(tzinfo=UTC) if local else moment)


@dataclass(frozen=True, slots=True)
class _LsmArchive:
    """History of versions 8 and 9: completed files as they are, with the plans of table services (Hudi `createLSMTimelineInstant`)."""

    state: TableState
    archive: LsmHistory

    def left_over(self) -> Sequence[Instant]:
        LsmWriter(self.archive).settle()
        return self.archive.newest_file().instants

    def read(self, instants: Sequence[States]) -> Callable[[ArchiveOptions], Written]:
        entries = [self._entry(states) for states in instants]
        return lambda options: self._write(entries, options)

    def tidy(self, written: Written) -> None:
        LsmWriter(self.archive).tidy(merged=max(0, len(written.paths) - 1))

    def _write(self, entries: Sequence[HistoryEntry], options: ArchiveOptions) -> Written:
        counted, writer = self.state.archived_files().counted, LsmWriter(self.archive)
        lost = missed_files(self.state) if self.state.has_archive or counted else ()
        if lost:
            # No manifest names the lost files, so the table's properties do.
            ConfigStore(self.state.storage).update(with_lost(self.state, *lost))
        # Merges before anything is added, so that the last manifest comes from an archiving alone.
        merged = self._merge(writer, options, counted)
        path = writer.append(entries, counted)
        return Written((*merged, *([path] if path else [])), self.archive.newest_number())

    def _merge(self, writer: LsmWriter, options: ArchiveOptions, counted: int) -> list[str]:
        """Merge files of the history. On failure archiving continues: it is logged, and the next archiving tries again."""
        try:
            return writer.merge(options.merged_files, counted) if options.merges else []
        except (StorageError, FormatError) as error:
            logger.warning("files of the history of %s were not merged: %s", self.state.storage.root, error)
            return []

    def _entry(self, states: States) -> HistoryEntry:
        completed, file = states[-1]
        data = self.state.storage.read(file.path)
        try:
            archived_entry(self.state.format, completed, data, "")
        except FormatError as error:
            raise _told(self.state, completed, file, error) from error
        return HistoryEntry(completed, data or None, self._plan(states[:-1]) or None)

    def _plan(self, pending: States) -> bytes:
        """Plan of a table service: its requested file, or the inflight one of a replace commit if that is not empty."""
        kept = {one.state: (one, file) for one, file in pending if one.action in _PLANNED}
        requested, inflight = kept.get(State.REQUESTED), kept.get(State.INFLIGHT)
        if inflight is not None and inflight[0].action.completes_as is not Action.REPLACE_COMMIT:
            inflight = None
        contents = (self.state.storage.read(found[1].path) for found in (inflight, requested) if found is not None)
        return next((content for content in contents if content), b"")


_PLANNED = frozenset({Action.CLEAN, Action.COMPACTION, Action.LOG_COMPACTION, Action.REPLACE_COMMIT, Action.CLUSTERING})


def _told(state: TableState, instant: Instant, file: StoredFile, error: FormatError) -> FormatError:
    where = {"instant": str(instant), "path": file.path, "table": state.config.name}
    return type(error)(error.message, **{**error.context, **where})


def _number(name: str) -> int:
    return archive_file_number(name) or 0
