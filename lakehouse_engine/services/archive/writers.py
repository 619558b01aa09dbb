"""What archiving writes, by the table's version: files of the archive of version 6, or of the history of versions 8 and 9."""

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
"""The state files of one instant, in order of state."""


@dataclass(frozen=True, slots=True)
class Written:
    """`paths` of files that archiving wrote. `number` is that of the archive from then on (`History.newest_number`)."""

    paths: tuple[str, ...]
    number: int


class ArchiveWriter(Protocol):
    """Adds to the archive of one table. The table lock is held."""

    def left_over(self) -> Sequence[Instant]:
        """Instants that the last archiving wrote, which may have died before they left the active timeline. Files that it had not finished
        with are seen to.
        """
        ...

    def read(self, instants: Sequence[States]) -> Callable[[ArchiveOptions], Written]:
        """Read the files of completed instants, and answer what writes them to the archive, durably. Raises `CorruptInstantError` for a
        completed file that is torn.
        """
        ...

    def tidy(self, written: Written) -> None:
        """Remove what nobody reads any more, when all is done."""
        ...


def archive_writer(state: TableState) -> ArchiveWriter:
    archive = state.archived_timeline
    return _LsmArchive(state, archive) if isinstance(archive, LsmHistory) else _LogArchive(state, _logs(archive))


def _logs(archive: object) -> ArchivedTimeline:
    if isinstance(archive, ArchivedTimeline):
        return archive
    raise TypeError(f"{type(archive).__name__} has no writer")


@dataclass(frozen=True, slots=True)
class _LogArchive:
    """Of version 6: one file with every state of every instant, after small files have become one."""

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
        """Merging removes what it merged."""

    def _write(self, entries: Sequence[Sequence[ArchivedEntry]], options: ArchiveOptions) -> Written:
        archive, counted = self.archive, self.state.archived_files().counted
        # A name that was lost is not taken again: it is named as the one before, and missed from then on.
        plan = archive.merge_plan()
        # What a merge of Hudi's writes may go again.
        before = [file.name for file in archive.files() if plan is None or file.name != plan.target][-1:]
        lost = [archive_file_name(counted)] if counted > max(map(_number, before), default=0) else []
        # The newest file is one of an archiving alone, and the checkpoint counts the merged one: so nothing that may fail is between.
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
            return archived_entry(self.state.layout, instant, data, time)
        except FormatError as error:
            if instant.is_completed:
                raise _told(self.state, instant, file, error) from error
            # Of a completed instant its plan is history only: nothing may hang on it.
            logger.warning("%s of %s is archived without its content: %s", instant, self.state.config.name, error)
            return archived_entry(self.state.layout, instant, b"", time)

    def _transition_time(self, file: StoredFile) -> str:
        moment = datetime.fromtimestamp(file.modified_ms / 1000, UTC)
        local = self.state.config.timeline_timezone == "LOCAL"
        return format_instant_time(moment.astimezone().replace(tzinfo=UTC) if local else moment)


@dataclass(frozen=True, slots=True)
class _LsmArchive:
    """Of versions 8 and 9: completed files as they are, with the plans of table services (Hudi `createLSMTimelineInstant`)."""

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
            # No manifest names what is gone, so the table's properties do.
            ConfigStore(self.state.storage).update(with_lost(self.state, *lost))
        # Before anything is added, so that the last manifest is one of an archiving alone.
        merged = self._merge(writer, options, counted)
        path = writer.append(entries, counted)
        return Written((*merged, *([path] if path else [])), self.archive.newest_number())

    def _merge(self, writer: LsmWriter, options: ArchiveOptions, counted: int) -> list[str]:
        """Archiving goes on without it: what fails is logged, and tried again by the next one."""
        try:
            return writer.merge(options.merged_files, counted) if options.merges else []
        except (StorageError, FormatError) as error:
            logger.warning("files of the history of %s were not merged: %s", self.state.storage.root, error)
            return []

    def _entry(self, states: States) -> HistoryEntry:
        completed, file = states[-1]
        data = self.state.storage.read(file.path)
        try:
            archived_entry(self.state.layout, completed, data, "")
        except FormatError as error:
            raise _told(self.state, completed, file, error) from error
        return HistoryEntry(completed, data or None, self._plan(states[:-1]) or None)

    def _plan(self, pending: States) -> bytes:
        """The requested file of a service; the inflight one of a replace commit where it says something."""
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
