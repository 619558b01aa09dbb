"""The archived timeline: instants that left the active one (hudi-format 8). Read only for history."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from lakehouse_engine.errors import FormatError, LakehouseError, StoredFileNotFoundError
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.table_format import TableFormat
from lakehouse_engine.format.v6.archived import (
    MERGE_PLAN,
    ArchiveLinks,
    archive_blocks,
    archive_file_name,
    archive_file_number,
    archive_links,
    merged_from,
    read_archive,
    read_archived_instants,
    salvage_archive,
)
from lakehouse_engine.format.v6.archived_record import archived_commit
from lakehouse_engine.format.v6.metadata_avro import decode_record
from lakehouse_engine.model.archived import ArchivedEntry
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.storage.base import Storage, StoredFile

logger = logging.getLogger(__name__)

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class MergePlan:
    """Names of archive files: sources of a merge, and the merged file."""

    target: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NewestFile:
    """The last archive file: its instants in time order, or the names of the files that it was merged from."""

    instants: Sequence[Instant] = ()
    merged_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ArchivedTimeline:
    """Reads one table's archive. `folder` is the table's `hoodie.archivelog.folder`, below the active timeline."""

    storage: Storage
    format: TableFormat
    folder: str = "archived"

    @property
    def path(self) -> str:
        """The folder, relative to the table."""
        return f"{self.format.timeline_folder}/{self.folder}"

    def files(self, listed: Iterable[StoredFile] | None = None) -> list[StoredFile]:
        """Archive files, oldest first. `listed`: an earlier result of `listed`."""
        entries = self.listed() if listed is None else listed
        numbered = [(number, entry) for entry in entries if (number := archive_file_number(entry.name)) is not None]
        return [entry for _, entry in sorted(numbered, key=lambda pair: pair[0])]

    def newer(self, number: int, files: Sequence[StoredFile]) -> list[StoredFile]:
        """Those of `files` with a higher number."""
        return [file for file in files if (archive_file_number(file.name) or 0) > number]

    def newest_number(self) -> int:
        """Number of the newest archive file, 0 without one. The target of an unfinished Hudi merge does not count: it may disappear, and
        its name be used again.
        """
        return self._newest_beside(self.merge_plan())

    def next_number(self, counted: int = 0) -> int:
        """Number of the next archive file, above all existing ones and the target of a pending merge. `counted`: number of the newest one
        so far.
        """
        plan = self.merge_plan()
        planned = None if plan is None else archive_file_number(plan.target)
        return 1 + max(self._newest_beside(plan), planned or 0, counted)

    def _newest_beside(self, plan: MergePlan | None) -> int:
        numbers = (archive_file_number(file.name) for file in self.files() if plan is None or file.name != plan.target)
        return max((number for number in numbers if number is not None), default=0)

    def entries(self) -> Iterator[ArchivedEntry]:
        """Every state of every archived instant, newest archive file first, in stored order within a file; each once.

        Raises `CorruptLogError` for a damaged file, `MetadataError` for a record that is not an archived instant.
        """
        yield from self.entries_of(self.files())

    def entries_of(self, files: Sequence[StoredFile]) -> Iterator[ArchivedEntry]:
        """`entries` of some of `files`."""
        seen: set[Instant] = set()
        for entry in self._read_all(read_archive, files):
            if entry.instant not in seen:
                seen.add(entry.instant)
                yield entry

    def entries_with(self, text: str) -> Iterator[ArchivedEntry]:
        """`entries`, possibly repeated, of the blocks that contain `text` literally: others are not decoded."""
        yield from self._read_all(partial(read_archive, sought=text.encode()), self.files())

    def lost(self, counted: int) -> tuple[str, ...]:
        """Missing archive files, as far as other files name them. `counted`: number of the newest one so far.

        Another program may have merged files older than its own: nothing is claimed about those.
        """
        files = self.files()
        links = list(self._read_all(_links, files, _links))
        numbers = {file.name: archive_file_number(file.name) or 0 for file in files}
        known = {*numbers, *(name for one in links for name in one.merged)}
        missing = dict.fromkeys(name for one in links for name in one.after if name not in known)
        if counted > max(numbers.values(), default=0):
            missing[archive_file_name(counted)] = None
        foreign = max((numbers[file.name] for file in files if self._is_foreign(file)), default=0) if missing else 0
        return tuple(name for name in missing if (archive_file_number(name) or 0) > foreign)

    def _is_foreign(self, file: StoredFile) -> bool:
        return not any(one.is_ours for one in self._read(file, _links, salvage=_links) or ())

    def instants(self) -> list[Instant]:
        """Archived instants in time order, each at its highest archived state; raises as `entries`."""
        return _highest(self._read_all(read_archived_instants, self.files()))

    def readable_instants(self) -> list[Instant]:
        """Like `instants`, with the intact parts of damaged files, if completeness is not needed."""
        return _highest(self._read_all(read_archived_instants, self.files(), _salvaged_instants))

    def damaged(self) -> list[tuple[StoredFile, FormatError]]:
        """Archive files that do not decode, oldest first, with the damage."""
        return [(file, error) for file in self.files() if (error := self._damage(file)) is not None]

    def commit_of(self, instant_time: str) -> tuple[Instant, bytes] | None:
        """A completed write with its file's content, as far as archived; None if absent. Reads the intact parts of damaged files."""
        for entry in self._read_all(salvage_archive, self.files()):
            metadata = archived_commit(entry) if entry.instant.requested_time == instant_time else None
            if metadata is not None:
                return entry.instant, self.format.encode_commit(metadata)
        return None

    def newest_file(self) -> NewestFile:
        """Content of the last archive file, which a crash may have left on the active timeline too.

        Empty if that file is damaged: instants on both timelines are then archived again, and count once. No instants if archive files were
        merged and nothing was archived since: archiving finishes leftovers before it merges.
        """
        files = self.files()
        try:
            found = self._read(files[-1], _newest) if files else None
            return found[0] if found else NewestFile()
        except FormatError as error:
            logger.warning("whether instants of %s are archived already is not known: %s", self.storage.root, error)
            return NewestFile()

    def _damage(self, file: StoredFile) -> FormatError | None:
        try:
            self._read(file, read_archive, self.torn_name())
        except FormatError as error:
            return error
        return None

    def _read_all(
        self, read: Callable[[bytes], list[_Read]], files: Sequence[StoredFile], salvage: Callable[[bytes], list[_Read]] | None = None
    ) -> Iterator[_Read]:
        """What `read` finds in `files`, newest first, and in files that some were merged into meanwhile; `salvage` reads damaged ones."""
        oldest, done = (archive_file_number(files[0].name) or 0 if files else 0), set[str]()
        while files:
            torn, missing = self.torn_name(), []
            for file in reversed(files):
                found = self._read(file, read, torn, salvage)
                if found is None:
                    missing.append(file.name)
                elif file.name != torn:
                    done.add(file.name)
                yield from found or ()
            files = self._since(oldest, done) if missing else ()
            if missing and not files:
                logger.warning("files of the archive of %s are gone, and were not merged: %s", self.storage.root, ", ".join(missing))

    def _since(self, number: int, done: AbstractSet[str]) -> list[StoredFile]:
        return [file for file in self.files() if (archive_file_number(file.name) or 0) >= number and file.name not in done]

    def _read(
        self,
        file: StoredFile,
        read: Callable[[bytes], list[_Read]],
        torn: str | None = None,
        salvage: Callable[[bytes], list[_Read]] | None = None,
    ) -> list[_Read] | None:
        """Content of an archive file; None if it is missing: it was merged into a newer one."""
        try:
            data = self.storage.read(file.path)
        except StoredFileNotFoundError:
            return None
        except LakehouseError as error:
            raise self._told(error, file) from error
        try:
            return read(data)
        except FormatError as error:
            if file.name == torn:
                return []  # its sources still exist
            if salvage is None:
                raise self._told(error, file) from error
            logger.warning("archived instants are left out: %s", self._told(error, file))
            return salvage(data)

    def _told(self, error: LakehouseError, file: StoredFile) -> LakehouseError:
        return type(error)(error.message, **{**error.context, "path": file.path, "table": self.storage.root})

    def torn_name(self) -> str | None:
        """Target file of an unfinished merge (Hudi `HoodieMergeArchiveFilePlan`): it may be torn, harmlessly.

        None once a source is gone, because the target was then complete.
        """
        plan = self.merge_plan()
        if plan is None or not {entry.name for entry in self.files()}.issuperset(plan.sources):
            return None
        return plan.target

    def merge_plan(self) -> MergePlan | None:
        """Hudi's unfinished merge, if one has begun; an incomplete plan has not."""
        try:
            plan = decode_record("HoodieMergeArchiveFilePlan", self.storage.read(f"{self.path}/{MERGE_PLAN}"))
        except (StoredFileNotFoundError, FormatError):
            return None
        target, *sources = (str(name or "").rpartition("/")[2] for name in (plan["mergedArchiveFileName"], *(plan["candidate"] or ())))
        return MergePlan(target, tuple(sources)) if target else None

    def listed(self) -> list[StoredFile]:
        """All files in the folder: archive files and their companions."""
        return [entry for entry in self.storage.list(self.path) if not entry.is_directory]


def _links(data: bytes) -> list[ArchiveLinks]:
    return [archive_links(read_blocks(data))]


def _salvaged_instants(data: bytes) -> list[Instant]:
    return [entry.instant for entry in salvage_archive(data)]


def _newest(data: bytes) -> list[NewestFile]:
    names = merged_from(read_blocks(data))
    if names:
        archive_blocks(data)
        return [NewestFile(merged_from=names)]
    return [NewestFile(_highest(read_archived_instants(data)))]


def _highest(instants: Iterable[Instant]) -> list[Instant]:
    highest: dict[tuple[str, str], Instant] = {}
    for instant in instants:
        key = (instant.requested_time, str(instant.action.completes_as))
        if key not in highest or instant.state.rank > highest[key].state.rank:
            highest[key] = instant
    return [highest[key] for key in sorted(highest)]
