"""The archived timeline: instants that left the active one (hudi-format 8). Read only when somebody asks for history."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from lakehouse_engine.errors import FormatError, LakehouseError, StoredFileNotFoundError
from lakehouse_engine.format.timeline.archived import (
    MERGE_PLAN,
    archive_file_number,
    is_merged_archive,
    read_archive,
    read_archived_instants,
    salvage_archive,
)
from lakehouse_engine.format.timeline.layout import Layout
from lakehouse_engine.format.timeline.metadata_avro import decode_record, encode_record
from lakehouse_engine.model.archived import ArchivedEntry
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.storage.base import Storage, StoredFile

logger = logging.getLogger(__name__)

_Read = TypeVar("_Read")
_PLAN = "HoodieMergeArchiveFilePlan"


@dataclass(frozen=True, slots=True)
class ArchiveMerge:
    """Names of files of the archive: what is merged, oldest first, into what."""

    target: str
    sources: tuple[str, ...]


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
        plan = self.merge_plan()
        names = [entry.name for entry in self.files()] + ([] if plan is None else [plan.target])
        return 1 + max((number for name in names if (number := archive_file_number(name)) is not None), default=0)

    def entries(self) -> Iterator[ArchivedEntry]:
        """Every state of every archived instant, newest archive file first and in stored order within; each once.

        Raises `CorruptLogError` for a damaged file, `MetadataError` for a record that is no archived instant.
        """
        yield from self.entries_of(self.files())

    def entries_of(self, files: Sequence[StoredFile]) -> Iterator[ArchivedEntry]:
        """As `entries`, of some of `files`."""
        seen: set[Instant] = set()
        for entry in self._read_all(self._with(read_archive), files):
            if entry.instant not in seen:
                seen.add(entry.instant)
                yield entry

    def entries_with(self, text: str) -> Iterator[ArchivedEntry]:
        """As `entries`, and maybe more than once, of the blocks in which `text` stands, letter by letter: others are not decoded."""
        yield from self._read_all(self._with(partial(read_archive, sought=text.encode())), self.files())

    def instants(self) -> list[Instant]:
        """Archived instants in order of time, each at the highest state that the archive has; raises as `entries`."""
        return _highest(self._read_all(self._with(read_archived_instants), self.files()))

    def readable_instants(self) -> list[Instant]:
        """As `instants`; of damaged files what is whole of them: for what does not hang on knowing all of them."""
        return _highest(self._read_all(self._readable, self.files()))

    def damaged(self) -> list[tuple[StoredFile, FormatError]]:
        """Archive files that do not decode, oldest first, with what is wrong with each."""
        return [(file, error) for file in self.files() if (error := self._damage(file)) is not None]

    def newest_file(self) -> list[Instant]:
        """What the last archive file has, in order of time: what a crash may have left on the active timeline too.

        Nothing where that file is damaged: what is on both timelines is archived once more then, and counts once. Nothing either where
        archiving has merged files of the archive and got no further: before that it finishes what was left.
        """
        files = self.files()
        try:
            return _highest(self._read(files[-1], _unmerged) or ()) if files else []
        except FormatError as error:
            logger.warning("whether instants are archived already is not known: %s", error)
            return []

    def _readable(self, file: StoredFile) -> list[Instant] | None:
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

    def _read_all(self, read: Callable[[StoredFile], list[_Read] | None], files: Sequence[StoredFile]) -> Iterator[_Read]:
        """What `read` finds in `files`, newest first, and in those that some of them were merged into meanwhile."""
        while files:
            lacks_some = False
            for file in reversed(files):
                found = read(file)
                lacks_some = lacks_some or found is None
                yield from found or ()
            newest = archive_file_number(files[-1].name) or 0
            files = [file for file in self.files() if (archive_file_number(file.name) or 0) > newest] if lacks_some else ()

    def _with(self, read: Callable[[bytes], list[_Read]]) -> Callable[[StoredFile], list[_Read] | None]:
        return partial(self._read, read=read, torn=self.torn_name())

    def _read(self, file: StoredFile, read: Callable[[bytes], list[_Read]], torn: str | None = None) -> list[_Read] | None:
        """None for a file that is gone: it was merged into a newer one."""
        try:
            return read(self.storage.read(file.path))
        except StoredFileNotFoundError:
            return None
        except LakehouseError as error:
            # Of a merge of archive files that is not finished, what it merges is still there.
            if isinstance(error, FormatError) and file.name == torn:
                return []
            raise type(error)(error.message, **{**error.context, "path": file.path, "table": self.storage.root}) from error

    def torn_name(self) -> str | None:
        """Name of the file that an unfinished merge writes (Hudi `HoodieMergeArchiveFilePlan`): it may be torn, without harm.

        None once something of what it merges is gone, for then it was whole.
        """
        plan = self.merge_plan()
        if plan is None or not {entry.name for entry in self.files()}.issuperset(plan.sources):
            return None
        return plan.target

    def merge_plan(self) -> ArchiveMerge | None:
        """The merge that is not finished, if there is one that has begun: a plan that is not whole has not."""
        try:
            plan = decode_record(_PLAN, self.storage.read(f"{self.path}/{MERGE_PLAN}"))
        except (StoredFileNotFoundError, FormatError):
            return None
        names = [str(name).rpartition("/")[2] for name in (plan["mergedArchiveFileName"], *(plan["candidate"] or ())) if name]
        return ArchiveMerge(names[0], tuple(names[1:])) if plan["mergedArchiveFileName"] else None

    def plan_merge(self, merge: ArchiveMerge) -> None:
        """Write the plan of a merge, for Hudi with whole paths. Durable on return."""
        plan = {"candidate": [self.storage.uri(f"{self.path}/{name}") for name in merge.sources], "mergedArchiveFileName": merge.target}
        self.storage.create(f"{self.path}/{MERGE_PLAN}", encode_record(_PLAN, plan))

    def forget_merge(self) -> None:
        """Remove the plan of a merge."""
        self.storage.delete(f"{self.path}/{MERGE_PLAN}")

    def listed(self) -> list[StoredFile]:
        """All files in the folder, archive files and what goes with them."""
        return [entry for entry in self.storage.list(self.path) if not entry.is_directory]


def _unmerged(data: bytes) -> list[Instant]:
    return [] if is_merged_archive(data) else read_archived_instants(data)


def _highest(instants: Iterable[Instant]) -> list[Instant]:
    highest: dict[tuple[str, str], Instant] = {}
    for instant in instants:
        key = (instant.requested_time, str(instant.action.completes_as))
        if key not in highest or instant.state.rank > highest[key].state.rank:
            highest[key] = instant
    return [highest[key] for key in sorted(highest)]
