"""Archived instants by table version: archive logs of version 6 (`ArchivedTimeline`), or history files of versions 8 and 9 (`LsmHistory`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Protocol

from lakehouse_engine.errors import CorruptFileError, FormatError, LakehouseError, StoredFileNotFoundError
from lakehouse_engine.format.table_format import TableFormat
from lakehouse_engine.format.v6.archived_record import archived_entry
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
    read_moments,
)
from lakehouse_engine.format.v8.properties import history_folder
from lakehouse_engine.model.archived import ArchivedEntry, HistoryForm
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.order import in_time_order, is_later
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.storage.base import Storage, StoredFile
from lakehouse_engine.timeline.archived import ArchivedTimeline, MergePlan, NewestFile
from lakehouse_engine.timeline.kept import KeptCommits

logger = logging.getLogger(__name__)


class History(Protocol):
    """Reads the instants that left a table's active timeline; each method reads again."""

    @property
    def folder(self) -> str:
        """Place of the history below the active timeline."""
        ...

    @property
    def path(self) -> str:
        """The folder, relative to the table."""
        ...

    def listed(self) -> list[StoredFile]:
        """All files in the folder."""
        ...

    def files(self, listed: Iterable[StoredFile] | None = None) -> list[StoredFile]:
        """Files with archived instants, oldest first. `listed`: an earlier result of `listed`."""
        ...

    def newer(self, number: int, files: Sequence[StoredFile]) -> list[StoredFile]:
        """Those of `files` that may hold what was archived since `newest_number` returned `number`."""
        ...

    def newest_number(self) -> int:
        """A number that grows with each archiving."""
        ...

    def next_number(self, counted: int = 0) -> int: ...

    def entries(self) -> Iterator[ArchivedEntry]:
        """Every stored state of every archived instant, newest file first."""
        ...

    def entries_of(self, files: Sequence[StoredFile]) -> Iterator[ArchivedEntry]: ...

    def entries_with(self, text: str) -> Iterator[ArchivedEntry]:
        """`entries` that contain `text` in stored form."""
        ...

    def instants(self) -> list[Instant]:
        """Archived instants in order of their requested times."""
        ...

    def readable_instants(self) -> list[Instant]:
        """Like `instants`, without damaged parts."""
        ...

    def lost(self, counted: int) -> tuple[str, ...]:
        """Names of files that must exist and do not."""
        ...

    def damaged(self) -> list[tuple[StoredFile, FormatError]]: ...

    def commit_of(self, instant_time: str) -> tuple[Instant, bytes] | None:
        """The completed write of that time with its file's content, as far as archived; None if absent. Damaged files are skipped."""
        ...

    def newest_file(self) -> NewestFile: ...

    def torn_name(self) -> str | None: ...

    def merge_plan(self) -> MergePlan | None: ...


def history_of(storage: Storage, table_format: TableFormat, config: TableConfig) -> History:
    """The history of a table."""
    if table_format.history is HistoryForm.LSM:
        return LsmHistory(storage, table_format, _folder(table_format, config))
    return ArchivedTimeline(storage, table_format, config.archive_folder)


def _folder(table_format: TableFormat, config: TableConfig) -> str:
    return history_folder(config).removeprefix(f"{table_format.timeline_folder}/")


def archived_moments(storage: Storage, table_format: TableFormat, config: TableConfig) -> Callable[[], Mapping[str, str]]:
    """When archived instants show, by requested times, read when first asked for; nothing where requested times count."""
    if table_format.history is not HistoryForm.LSM:
        return dict
    kept, history = KeptCommits(storage, table_format), LsmHistory(storage, table_format, _folder(table_format, config))
    return cache(partial(_ArchivedMoments, history, cache(kept.moments), cache(history.current)))


@dataclass(frozen=True, slots=True)
class _ArchivedMoments(Mapping[str, str]):
    """Reads the file of the history that an instant is in, and none for a commit that is kept for a savepoint."""

    history: LsmHistory
    kept: Callable[[], Mapping[str, str]]
    files: Callable[[], Sequence[HistoryFile]]
    read: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def __getitem__(self, time: str) -> str:
        if (kept := self.kept().get(time)) is not None:
            return kept
        for file in self.files():
            if not (is_later(file.first, time) or is_later(time, file.last)) and time in (found := self._of(file)):
                return found[time]
        raise KeyError(time)

    def _of(self, file: HistoryFile) -> Mapping[str, str]:
        if file.name not in self.read:
            try:
                self.read[file.name] = self.history.moments([file])
            except StoredFileNotFoundError:
                self.read[file.name] = self.history.moments()  # it was merged into another meanwhile
        return self.read[file.name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.history.moments())

    def __len__(self) -> int:
        return len(self.history.moments())


_LOOKS = 4
"""How often the manifest is read again if a listed file was merged into another meanwhile."""


@dataclass(frozen=True, slots=True)
class LsmHistory:
    """Reads one table's history. `folder` is the table's `hoodie.timeline.history.path`, below the active timeline."""

    storage: Storage
    format: TableFormat
    folder: str = "history"

    @property
    def path(self) -> str:
        """The folder, relative to the table."""
        return f"{self.format.timeline_folder}/{self.folder}"

    def listed(self) -> list[StoredFile]:
        """All files in the folder: manifests, files of earlier ones, and the name of the current one."""
        return [entry for entry in self.storage.list(self.path) if not entry.is_directory]

    def files(self, listed: Iterable[StoredFile] | None = None) -> list[StoredFile]:
        """Existing files of the current manifest, oldest first."""
        entries = {entry.name: entry for entry in (self.listed() if listed is None else listed)}
        current = self.current(entries)
        if listed is not None and any(file.name not in entries for file in current):
            return self.files()  # the manifest is newer than the listing
        return [entries[file.name] for file in current if file.name in entries]

    def newer(self, number: int, files: Sequence[StoredFile]) -> list[StoredFile]:
        """Those of `files` that the manifest of that number does not list; all if it is gone."""
        if self.newest_number() <= number:
            return []
        try:
            known = {file.name for file in self.manifest(number)}
        except (StoredFileNotFoundError, FormatError):
            known = set()
        return [file for file in files if file.name not in known]

    def newest_number(self) -> int:
        """Number of the current manifest, 0 without one."""
        return self._number(entry.name for entry in self.listed()) or 0

    def next_number(self, counted: int = 0) -> int:
        """Number of the next manifest, above `counted`."""
        return 1 + max(self.newest_number(), counted)

    def entries(self) -> Iterator[ArchivedEntry]:
        """Every archived instant once, completed, newest file first.

        Raises `CorruptFileError` for a damaged file, `MetadataError` for a damaged manifest or instant.
        """
        yield from self._entries(None, b"")

    def entries_of(self, files: Sequence[StoredFile]) -> Iterator[ArchivedEntry]:
        """`entries` of some of `files`; of all files if one of them was merged meanwhile."""
        if files:
            yield from self._entries({file.name for file in files}, b"")

    def entries_with(self, text: str) -> Iterator[ArchivedEntry]:
        """`entries` whose content contains `text` literally."""
        yield from self._entries(None, text.encode())

    def instants(self) -> list[Instant]:
        """Archived instants in order of requested time; raises as `entries`."""
        return _once(instant for file, data in self._contents() for instant in self._times(file, data))

    def readable_instants(self) -> list[Instant]:
        """Like `instants`, without damaged files."""
        return _once(instant for file, data in self._contents() for instant in self._whole(file, data))

    def moments(self, files: Iterable[HistoryFile] | None = None) -> Mapping[str, str]:
        """When each archived instant, or each one of these files, shows, by its requested time (`Timeline.of_states`); raises as `entries`,
        and `StoredFileNotFoundError` where one of these files is gone.
        """
        found: dict[str, str] = {}
        for file, data in self._contents() if files is None else ((file, self.read(file)) for file in files):
            with self._naming(file.name):
                found |= read_moments(data, file)
        return found

    def lost(self, counted: int) -> tuple[str, ...]:
        """Names of files that the current manifest lists and that are missing, and of a known manifest that is missing."""
        there = {entry.name for entry in self.listed()}
        gone = tuple(file.name for file in self.current(there) if file.name not in there)
        return gone if counted <= (self._number(there) or 0) else (*gone, manifest_name(counted))

    def damaged(self) -> list[tuple[StoredFile, FormatError]]:
        """Files of the current manifest that do not decode, with the damage."""
        known = {entry.name: entry for entry in self.listed()}
        files = [file for file in self.current(known) if file.name in known]
        return [(known[file.name], error) for file in files if (error := self._damage(file)) is not None]

    def commit_of(self, instant_time: str) -> tuple[Instant, bytes] | None:
        """The completed write of that time with its file's content."""
        for file, data in self._contents():
            if any(one.requested_time == instant_time for one in self._whole(file, data)):
                for found in read_history(data, file):
                    if found.instant.requested_time == instant_time and found.instant.action.is_write and found.metadata:
                        return found.instant, found.metadata
        return None

    def newest_file(self) -> NewestFile:
        """Instants that the current manifest has and the previous one lacks, except in merged files: archiving publishes a manifest of its
        own. Empty if one of these files is damaged.
        """
        before = max((number for name in self._names() if (number := manifest_number(name) or 0) < self.newest_number()), default=0)
        try:
            earlier = {file.name for file in self.manifest(before)} if before else set()
            new = [file for file in self.current(self._names()) if file.level == 0 and file.name not in earlier]
            return NewestFile(_once(one for file in new for one in read_history_times(self.read(file), file)))
        except (FormatError, StoredFileNotFoundError) as error:
            logger.warning("whether instants of %s are archived already is not known: %s", self.storage.root, error)
            return NewestFile()

    def torn_name(self) -> str | None:
        """None: a file counts once a manifest lists it."""
        return None

    def merge_plan(self) -> MergePlan | None:
        """None: files are merged beside those that count."""
        return None

    def current(self, names: Iterable[str] | None = None) -> tuple[HistoryFile, ...]:
        """Current files, oldest first. `names` are those in the folder, if known."""
        known = self._names() if names is None else names
        for _ in range(_LOOKS):
            number = self._number(known)
            if number is None:
                return ()
            try:
                return self.manifest(number)
            except StoredFileNotFoundError as error:
                missing, known = error, self._names()  # several newer ones have replaced it meanwhile
        message = f"{missing.message}, and {self.path}/{VERSION_FILE} names it; `repair` sees to it"
        raise StoredFileNotFoundError(message, **missing.context) from missing

    def manifest(self, number: int) -> tuple[HistoryFile, ...]:
        """Files that a manifest lists, oldest first. Raises `StoredFileNotFoundError`, and `MetadataError` with its name."""
        name = manifest_name(number)
        with self._naming(name):
            return tuple(sorted(parse_manifest(self.storage.read(f"{self.path}/{name}")), key=lambda file: file.name))

    def _number(self, names: Iterable[str]) -> int | None:
        try:
            version: bytes | None = self.storage.read(f"{self.path}/{VERSION_FILE}")
        except StoredFileNotFoundError:
            version = None
        with self._naming(VERSION_FILE):
            return current_manifest(version, names)

    def _names(self) -> list[str]:
        return [entry.name for entry in self.listed()]

    def _contents(self, names: AbstractSet[str] | None = None) -> Iterator[tuple[HistoryFile, bytes]]:
        """Current files with their bytes, newest first, or only some; all if one of these is no longer current. Raises
        `StoredFileNotFoundError` if one is lost.
        """
        for look in range(_LOOKS):
            current = self.current()
            is_whole = names is None or not names <= {file.name for file in current}
            chosen = [file for file in current if is_whole or file.name in (names or ())]
            try:
                found = [(file, self.read(file)) for file in chosen]
            except StoredFileNotFoundError as error:
                if look == _LOOKS - 1:
                    listed = f"{error.message}, and {self.path}/{manifest_name(self.newest_number())} lists it; `repair` sees to it"
                    raise StoredFileNotFoundError(listed, **error.context) from error
                continue  # it was merged into another, which a newer manifest lists
            yield from reversed(found)
            return

    def read(self, file: HistoryFile) -> bytes:
        """The content of a file of the history. Raises `StoredFileNotFoundError`, and `CorruptFileError` for another size than its manifest
        says.
        """
        data = self.storage.read(f"{self.path}/{file.name}")
        if len(data) != file.size:
            said = f"{self.path}/{manifest_name(self.newest_number())} says {file.size}"
            raise self._told(CorruptFileError(f"{file.name} of the timeline's history has {len(data)} bytes, and {said}"), file.name)
        return data

    def stored(self) -> Iterator[HistoryEntry]:
        """Every archived instant once, with its stored record, newest file first; raises as `entries`."""
        seen: set[Instant] = set()
        for file, data in self._contents():
            with self._naming(file.name):
                for found in read_history(data, file):
                    if found.instant not in seen:
                        seen.add(found.instant)
                        yield found

    def _entries(self, names: AbstractSet[str] | None, sought: bytes) -> Iterator[ArchivedEntry]:
        seen: set[Instant] = set()
        for file, data in self._contents(names):
            with self._naming(file.name):
                for found in read_history(data, file):
                    is_sought = sought in (found.metadata or b"") or sought in (found.plan or b"")
                    if is_sought and found.instant not in seen:
                        seen.add(found.instant)
                        yield archived_entry(self.format, found.instant, found.metadata or b"", found.instant.completed_at or "")

    def _times(self, file: HistoryFile, data: bytes) -> list[Instant]:
        with self._naming(file.name):
            return read_history_times(data, file)

    def _whole(self, file: HistoryFile, data: bytes) -> list[Instant]:
        try:
            return read_history_times(data, file)
        except FormatError as error:
            logger.warning("archived instants are left out: %s", self._told(error, file.name))
            return []

    def _damage(self, file: HistoryFile) -> FormatError | None:
        try:
            for found in read_history(self.read(file), file):
                archived_entry(self.format, found.instant, found.metadata or b"", "")
        except FormatError as error:
            return error
        return None

    @contextmanager
    def _naming(self, name: str) -> Iterator[None]:
        """Add file and table to errors raised inside."""
        try:
            yield
        except FormatError as error:
            raise self._told(error, name) from error

    def _told(self, error: LakehouseError, name: str) -> LakehouseError:
        return type(error)(error.message, **{**error.context, "path": f"{self.path}/{name}", "table": self.storage.root})


def _once(instants: Iterable[Instant]) -> list[Instant]:
    """Each instant once, in order of the requested times."""
    return in_time_order(dict.fromkeys(instants), lambda instant: instant.requested_time)
