"""Commits of a table that were read, and what is known about archived ones: the input of a manifest from commits."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakehouse_engine.errors import FormatError, StoredFileNotFoundError
from lakehouse_engine.format.v6.layout import Layout
from lakehouse_engine.manifest.archived_files import ArchivedFiles, read_archived_files
from lakehouse_engine.manifest.decoded import DECODED, DecodedCommit
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.live_files import LiveFiles, WriteRecord
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.storage.base import Storage, StoredFile
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.checkpoints import SAVEPOINTED, LiveCheckpoints
from lakehouse_engine.timeline.history import History, history_of
from lakehouse_engine.timeline.timeline import Timeline

logger = logging.getLogger(__name__)

_Write = tuple[Instant, StoredFile | None]


@dataclass(frozen=True, slots=True)
class _Partitions:
    """Partition paths with files (`live`) after `writes` are added to what archived ones left."""

    archived: LiveFiles
    writes: tuple[_Write, ...]
    live: LiveFiles
    paths: tuple[str, ...]

    def are_of(self, archived: LiveFiles, writes: tuple[_Write, ...]) -> bool:
        return self.are_before(archived, writes) and len(self.writes) == len(writes)

    def are_before(self, archived: LiveFiles, writes: tuple[_Write, ...]) -> bool:
        """True if it starts with the same writes, after the same archived ones."""
        return (self.archived is archived or not (len(archived) or len(self.archived))) and self.writes == writes[: len(self.writes)]


@dataclass(slots=True)
class _Box:
    """Partitions of the latest state that was asked; shared by states that continue each other."""

    found: _Partitions | None = None


@dataclass(slots=True)
class Commits:
    """Decoded metadata of completed writes. It never changes, so a refreshed state reuses it."""

    active: ActiveTimeline
    files: Mapping[Instant, StoredFile]
    known: dict[Instant, DecodedCommit] = field(default_factory=dict)
    partitions: _Box = field(default_factory=_Box)

    def of(self, instant: Instant) -> HoodieCommitMetadata:
        return self._decoded(instant).metadata

    def record(self, instant: Instant) -> WriteRecord:
        """What the write left and removed."""
        return self._decoded(instant).record

    def named(self, instant: Instant) -> frozenset[str] | None:
        """Names of the files that the write left; None if it does not list all of them."""
        return self._decoded(instant).names

    def at(self, active: ActiveTimeline, files: Mapping[Instant, StoredFile]) -> Commits:
        """The same for instants that are still on the timeline, in the same files."""
        known = {one: decoded for one, decoded in self.known.items() if one in files and files[one] == self.files.get(one)}
        return Commits(active, files, known, self.partitions)

    def live_partitions(self, archived: LiveFiles, writes: Sequence[Instant]) -> tuple[str, ...] | None:
        """Partitions with files after these writes and `archived`, sorted; None if a write does not list all its files."""
        key = tuple((one, self.files.get(one)) for one in writes)
        found = self.partitions.found
        if found is None or not found.are_of(archived, key):
            if any(self.named(one) is None for one in writes):
                return None
            known = 0 if found is None or not found.are_before(archived, key) else len(found.writes)
            live = found.live if found is not None and known else archived
            live = live.after(self.record(one) for one in writes[known:])
            found = self.partitions.found = _Partitions(archived, key, live, tuple(sorted(live.partitions())))
        return found.paths

    def _decoded(self, instant: Instant) -> DecodedCommit:
        found = self.known.get(instant)
        if found is None:
            found = self.known[instant] = DECODED.get(self.active, instant, self.files.get(instant))
        return found


@dataclass(slots=True)
class Archived:
    """What archived writes left, read on demand."""

    storage: Storage
    config: TableConfig
    layout: Layout
    timeline: Timeline
    is_there: bool = True
    found: ArchivedFiles | None = None
    savepointed: dict[str, LiveFiles | None] = field(default_factory=dict)
    listing: list[StoredFile] | None = None

    def files(self) -> ArchivedFiles:
        if self.found is None:
            self.found = read_archived_files(self.storage, self.layout, self.archive, self.listed(), self.timeline)
        return self.found

    def listed(self) -> list[StoredFile]:
        """Files of the archive. There may be many, so the folder is listed once."""
        if self.listing is None:
            self.listing = self.archive.listed() if self.is_there else []
        return self.listing

    @property
    def archive(self) -> History:
        return history_of(self.storage, self.layout, self.config)

    def as_of(self, savepoint: str) -> LiveFiles | None:
        if savepoint not in self.savepointed:
            self.savepointed[savepoint] = self._kept(savepoint)
        return self.savepointed[savepoint]

    def _kept(self, savepoint: str) -> LiveFiles | None:
        try:
            return LiveCheckpoints(self.storage, SAVEPOINTED).read(savepoint).live
        except StoredFileNotFoundError:
            return None
        except FormatError as error:
            logger.warning("the savepoint %s of %s is read without it: %s", savepoint, self.storage.root, error.message)
            return None
