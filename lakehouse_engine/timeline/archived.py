"""The archived timeline: instants that left the active one (hudi-format 8). Read only when somebody asks for history."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lakehouse_engine.errors import FormatError, LakehouseError, StoredFileNotFoundError
from lakehouse_engine.format.timeline.archived import MERGE_PLAN, archive_file_number, read_archive, read_archived_instants, salvage_archive
from lakehouse_engine.format.timeline.layout import Layout
from lakehouse_engine.format.timeline.metadata_avro import decode_record
from lakehouse_engine.model.archived import ArchivedEntry
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.storage.base import Storage, StoredFile

logger = logging.getLogger(__name__)

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class ArchivedTimeline:
    """Reads the archive of one table. `folder` is the table's `hoodie.archivelog.folder`, below the active timeline."""

    storage: Storage
    layout: Layout
    folder: str = "archived"

    @property
    def path(self) -> str:
        """The folder, relative to the table."""
        return f"{self.layout.timeline_folder}/{self.folder}"

    def files(self, listed: Iterable[StoredFile] | None = None) -> list[StoredFile]:
        """Archive files, oldest first. `listed`: what `listed` said before."""
        entries = self.listed() if listed is None else listed
        numbered = [(number, entry) for entry in entries if (number := archive_file_number(entry.name)) is not None]
        return [entry for _, entry in sorted(numbered, key=lambda pair: pair[0])]

    def next_number(self) -> int:
        """The number of the next archive file, above those of all there are and of one that a merge is about to write."""
        names = [entry.name for entry in self.files()] + [self.torn_name() or ""]
        return 1 + max((number for name in names if (number := archive_file_number(name)) is not None), default=0)

    def entries(self) -> Iterator[ArchivedEntry]:
        """Every state of every archived instant, newest archive file first and in stored order within; each once.

        Raises `CorruptLogError` for a damaged file, `MetadataError` for a record that is no archived instant.
        """
        yield from self.entries_of(self.files())

    def entries_of(self, files: Sequence[StoredFile]) -> Iterator[ArchivedEntry]:
        """As `entries`, of some of `files`."""
        seen: set[Instant] = set()
        for entry in self._read_all(read_archive, files):
            if entry.instant not in seen:
                seen.add(entry.instant)
                yield entry

    def entries_with(self, text: str) -> Iterator[ArchivedEntry]:
        """As `entries`, of the files in which `text` stands, letter by letter: the others are read and not decoded."""
        sought = text.encode()
        yield from self._read_all(lambda data: read_archive(data) if sought in data else [], self.files())

    def instants(self) -> list[Instant]:
        """Archived instants in order of time, each at the highest state that the archive has; raises as `entries`."""
        return _highest(self._read_all(read_archived_instants, self.files()))

    def readable_instants(self) -> list[Instant]:
        """As `instants`; of damaged files what is whole of them: for what does not hang on knowing all of them."""
        return _highest(instant for file in self.files() for instant in self._readable(file))

    def damaged(self) -> list[tuple[StoredFile, FormatError]]:
        """Archive files that do not decode, oldest first, with what is wrong with each."""
        return [(file, error) for file in self.files() if (error := self._damage(file)) is not None]

    def newest_file(self) -> list[Instant]:
        """What the last archive file has, in order of time: what a crash may have left on the active timeline too.

        Nothing where that file is damaged: what is on both timelines is archived once more then, and counts once.
        """
        files = self.files()
        try:
            return _highest(self._read(files[-1], read_archived_instants)) if files else []
        except FormatError as error:
            logger.warning("whether instants are archived already is not known: %s", error)
            return []

    def _readable(self, file: StoredFile) -> list[Instant]:
        try:
            return self._read(file, read_archived_instants, self.torn_name())
        except FormatError as error:
            logger.warning("archived instants are left out: %s", error)
            return [entry.instant for entry in salvage_archive(self.storage.read(file.path))]

    def _damage(self, file: StoredFile) -> FormatError | None:
        try:
            self._read(file, read_archive, self.torn_name())
        except FormatError as error:
            return error
        return None

    def _read_all(self, read: Callable[[bytes], list[_Read]], files: Sequence[StoredFile]) -> Iterator[_Read]:
        torn = self.torn_name()
        for file in reversed(files):
            yield from self._read(file, read, torn)

    def _read(self, file: StoredFile, read: Callable[[bytes], list[_Read]], torn: str | None = None) -> list[_Read]:
        try:
            return read(self.storage.read(file.path))
        except StoredFileNotFoundError:
            return []  # merged into a newer file meanwhile
        except LakehouseError as error:
            # Of a merge of archive files that is not finished, what it merges is still there.
            if isinstance(error, FormatError) and file.name == torn:
                return []
            raise type(error)(error.message, **{**error.context, "path": file.path, "table": self.storage.root}) from error

    def torn_name(self) -> str | None:
        """Name of the file that an unfinished merge writes (Hudi `HoodieMergeArchiveFilePlan`): it may be torn, without harm."""
        try:
            plan = self.storage.read(f"{self.path}/{MERGE_PLAN}")
        except StoredFileNotFoundError:
            return None
        try:
            name = decode_record("HoodieMergeArchiveFilePlan", plan)["mergedArchiveFileName"]
        except FormatError:
            return None  # a plan that is not whole has not begun
        return str(name).rpartition("/")[2] if name else None

    def listed(self) -> list[StoredFile]:
        """All files in the folder, archive files and what goes with them."""
        return [entry for entry in self.storage.list(self.path) if not entry.is_directory]


def _highest(instants: Iterable[Instant]) -> list[Instant]:
    highest: dict[tuple[str, str], Instant] = {}
    for instant in instants:
        key = (instant.requested_time, str(instant.action.completes_as))
        if key not in highest or instant.state.rank > highest[key].state.rank:
            highest[key] = instant
    return [highest[key] for key in sorted(highest)]
