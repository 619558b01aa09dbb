"""Archived instants, by the table's version: logs of version 6 (`ArchivedTimeline`), or the files of versions 8 and 9 (`LsmHistory`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from lakehouse_engine.errors import FormatError, LakehouseError, StoredFileNotFoundError, UnsupportedTableVersionError
from lakehouse_engine.format.timeline.archived_record import archived_entry
from lakehouse_engine.format.timeline.layout import Layout
from lakehouse_engine.format.v8.history import (
    VERSION_FILE,
    HistoryEntry,
    HistoryFile,
    current_manifest,
    manifest_name,
    manifest_number,
    parse_manifest,
    read_history,
    read_history_times,
)
from lakehouse_engine.model.archived import ArchivedEntry
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.order import in_time_order
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.model.table_version import READ_ONLY
from lakehouse_engine.storage.base import Storage, StoredFile
from lakehouse_engine.timeline.archived import ArchivedTimeline, MergePlan, NewestFile

logger = logging.getLogger(__name__)

class History(Protocol):
    """Reads the instants that left a table's active timeline; each method looks anew."""

    @property
    def path(self) -> str:
        """The folder, relative to the table."""
        ...

    def listed(self) -> list[StoredFile]:
        """All files in the folder."""
        ...

    def files(self, listed: Iterable[StoredFile] | None = None) -> list[StoredFile]:
        """Those that hold archived instants, oldest first. `listed`: what `listed` said before."""
        ...

    def newest_number(self) -> int:
        """A number that grows with each archiving."""
        ...

    def next_number(self, counted: int = 0) -> int: ...

    def entries(self) -> Iterator[ArchivedEntry]:
        """Every state that is kept of every archived instant, newest file first."""
        ...

    def entries_of(self, files: Sequence[StoredFile]) -> Iterator[ArchivedEntry]: ...

    def entries_with(self, text: str) -> Iterator[ArchivedEntry]:
        """As `entries`, where `text` stands in the stored form."""
        ...

    def instants(self) -> list[Instant]:
        """Archived instants in order of their requested times."""
        ...

    def readable_instants(self) -> list[Instant]:
        """As `instants`, without what is damaged."""
        ...

    def lost(self, counted: int) -> tuple[str, ...]:
        """Names of files that must be there and are not."""
        ...

    def damaged(self) -> list[tuple[StoredFile, FormatError]]: ...

    def newest_file(self) -> NewestFile: ...

    def torn_name(self) -> str | None: ...

    def merge_plan(self) -> MergePlan | None: ...


def history_of(storage: Storage, layout: Layout, config: TableConfig) -> History:
    """The history of a table."""
    if layout.orders_by_completion:
        return LsmHistory(storage, layout, config.history_folder)
    return ArchivedTimeline(storage, layout, config.archive_folder)


def log_archive(history: History) -> ArchivedTimeline:
    """The history of a table of version 6, to change it. Raises `UnsupportedTableVersionError` for that of another version."""
    if not isinstance(history, ArchivedTimeline):
        raise UnsupportedTableVersionError(READ_ONLY, path=history.path)
    return history


def archived_moments(history: History) -> Callable[[], Mapping[str, str]]:
    """Completion times of archived instants by requested times, read when first asked for; nothing where requested times count."""
    return cache(history.moments) if isinstance(history, LsmHistory) else dict


_LOOKS = 4
"""How often the manifest is read anew where a file that it lists was merged into another meanwhile."""


@dataclass(frozen=True, slots=True)
class LsmHistory:
    """Reads the history of one table. `folder` is the table's `hoodie.timeline.history.path`, below the active timeline."""

    storage: Storage
    layout: Layout
    folder: str = "history"

    @property
    def path(self) -> str:
        """The folder, relative to the table."""
        return f"{self.layout.timeline_folder}/{self.folder}"

    def listed(self) -> list[StoredFile]:
        """All files in the folder: manifests, files of earlier ones, and what names the current one."""
        return [entry for entry in self.storage.list(self.path) if not entry.is_directory]

    def files(self, listed: Iterable[StoredFile] | None = None) -> list[StoredFile]:
        """The files of the current manifest that are there, oldest first."""
        entries = {entry.name: entry for entry in (self.listed() if listed is None else listed)}
        return [entries[file.name] for file in self._current(entries) if file.name in entries]

    def newest_number(self) -> int:
        """The number of the newest manifest, 0 without one."""
        return max((number for entry in self.listed() if (number := manifest_number(entry.name)) is not None), default=0)

    def next_number(self, counted: int = 0) -> int:
        """The number of the next manifest, above `counted`."""
        return 1 + max(self.newest_number(), counted)

    def entries(self) -> Iterator[ArchivedEntry]:
        """Every archived instant, completed, newest file first.

        Raises `CorruptFileError` for a damaged file, `MetadataError` for a damaged manifest or instant.
        """
        for file, data in self._contents():
            for found in read_history(data, file):
                yield self._entry(found, file)

    def entries_of(self, files: Sequence[StoredFile]) -> Iterator[ArchivedEntry]:
        """As `entries`; nothing of no files."""
        if files:
            yield from self.entries()

    def entries_with(self, text: str) -> Iterator[ArchivedEntry]:
        """As `entries`, of the instants in whose content `text` stands, letter by letter."""
        sought = text.encode()
        for file, data in self._contents():
            for found in read_history(data, file):
                if sought in (found.metadata or b"") or sought in (found.plan or b""):
                    yield self._entry(found, file)

    def instants(self) -> list[Instant]:
        """Archived instants in order of their requested times; raises as `entries`."""
        found = [instant for file, data in self._contents() for instant in read_history_times(data, file)]
        return in_time_order(found, lambda instant: instant.requested_time)

    def readable_instants(self) -> list[Instant]:
        """As `instants`; nothing of damaged files."""
        found = [instant for file, data in self._contents() for instant in self._whole(file, data)]
        return in_time_order(found, lambda instant: instant.requested_time)

    def moments(self) -> Mapping[str, str]:
        """The completion time of each archived instant by its requested time; raises as `entries`."""
        return {one.requested_time: one.completed_at or one.requested_time for one in self.instants()}

    def lost(self, counted: int) -> tuple[str, ...]:
        """Names of files that the current manifest lists and that are not there."""
        there = {entry.name for entry in self.listed()}
        return tuple(file.name for file in self._current(there) if file.name not in there)

    def damaged(self) -> list[tuple[StoredFile, FormatError]]:
        """Files of the current manifest that do not decode, with what is wrong with each."""
        known = {entry.name: entry for entry in self.listed()}
        files = [file for file in self._current(known) if file.name in known]
        return [(known[file.name], error) for file in files if (error := self._damage(file)) is not None]

    def newest_file(self) -> NewestFile:
        """The instants of the last file of the current manifest."""
        for file, data in self._contents():
            return NewestFile(read_history_times(data, file))
        return NewestFile()

    def torn_name(self) -> str | None:
        """None: a file counts once a manifest lists it."""
        return None

    def merge_plan(self) -> MergePlan | None:
        """None: files are merged beside those that count."""
        return None

    def _current(self, names: Iterable[str]) -> tuple[HistoryFile, ...]:
        """The files that count, oldest first."""
        try:
            version: bytes | None = self.storage.read(f"{self.path}/{VERSION_FILE}")
        except StoredFileNotFoundError:
            version = None
        number = current_manifest(version, names)
        if number is None:
            return ()
        name = manifest_name(number)
        try:
            return tuple(sorted(parse_manifest(self.storage.read(f"{self.path}/{name}")), key=lambda file: file.name))
        except FormatError as error:
            raise self._told(error, name) from error

    def _contents(self) -> Iterator[tuple[HistoryFile, bytes]]:
        """The current files with their bytes, newest first. Raises `StoredFileNotFoundError` where one is lost."""
        for look in range(_LOOKS):
            try:
                found = [(file, self.storage.read(f"{self.path}/{file.name}")) for file in self._current(one.name for one in self.listed())]
            except StoredFileNotFoundError:
                if look == _LOOKS - 1:
                    raise
                continue  # it was merged into another, which a newer manifest lists
            yield from reversed(found)
            return

    def _whole(self, file: HistoryFile, data: bytes) -> list[Instant]:
        try:
            return read_history_times(data, file)
        except FormatError as error:
            logger.warning("archived instants are left out: %s", self._told(error, file.name))
            return []

    def _damage(self, file: HistoryFile) -> FormatError | None:
        try:
            read_history_times(self.storage.read(f"{self.path}/{file.name}"), file)
        except FormatError as error:
            return error
        return None

    def _entry(self, found: HistoryEntry, file: HistoryFile) -> ArchivedEntry:
        try:
            return archived_entry(self.layout, found.instant, found.metadata or b"", found.instant.completed_at or "")
        except FormatError as error:
            raise self._told(error, file.name) from error

    def _told(self, error: LakehouseError, name: str) -> LakehouseError:
        return type(error)(error.message, **{**error.context, "path": f"{self.path}/{name}", "table": self.storage.root})
