"""Commits of a table that were read, and what is known about archived ones: the input of a manifest from commits."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.compat import cached_property
from lakehouse_engine.errors import FormatError, StoredFileNotFoundError
from lakehouse_engine.format.table_format import TableFormat
from lakehouse_engine.manifest.archived_files import ArchivedFiles, read_archived_files
from lakehouse_engine.manifest.written import named_files, write_record
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.live_files import LiveFiles, WriteRecord
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.storage.base import Storage, StoredFile
from lakehouse_engine.storage.locations import identity_of
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.checkpoints import SAVEPOINTED, LiveCheckpoints
from lakehouse_engine.timeline.history import History, history_of
from lakehouse_engine.timeline.timeline import Timeline

logger = logging.getLogger(__name__)


# No slots, so that derived values can be cached on the instance.
@dataclass(frozen=True)
class DecodedCommit:
    """Metadata of a completed write, and derived values."""

    instant: Instant
    metadata: HoodieCommitMetadata

    @cached_property
    def record(self) -> WriteRecord:
        """What the write left and removed."""
        return write_record(self.instant.requested_time, self.metadata, shown_at=self.instant.completed_at)

    @cached_property
    def names(self) -> frozenset[str] | None:
        """Names of the files that the write left; None if it does not list all of them."""
        return named_files(self.instant.requested_time, self.metadata)


@dataclass(slots=True)
class DecodedCommits:
    """Commits whose files have at most `limit` bytes together.

    Keyed by name and version (size, age, tag) of the file, so that a damaged, repaired or replaced one is read again. Commits of storages
    in memory, which may share a name, are always read.
    """

    limit: int
    kept: BoundedCache[tuple[DecodedCommit, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.kept = BoundedCache(self.limit, lambda found: found[1])

    def get(self, active: ActiveTimeline, instant: Instant, file: StoredFile | None) -> DecodedCommit:
        """The commit in `file`, as listed; raises as `ActiveTimeline.commit`."""
        identity = identity_of(active.storage)
        if file is None or identity is None:
            return DecodedCommit(instant, active.commit(instant))
        key, size = (identity, file.path, file.version), file.size
        return self.kept.find(key, lambda: (DecodedCommit(instant, active.commit(instant)), size))[0]


DECODED = DecodedCommits(limit=16 * 1024 * 1024)
"""Shared by all tables of this process."""


@dataclass(slots=True)
class Commits:
    """Decoded metadata of completed writes. It never changes, so a refreshed state reuses it."""

    active: ActiveTimeline
    files: Mapping[Instant, StoredFile]
    known: dict[Instant, DecodedCommit] = field(default_factory=dict)

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
        return Commits(active, files, known)

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
    format: TableFormat
    timeline: Timeline
    is_there: bool = True
    found: ArchivedFiles | None = None
    savepointed: dict[str, LiveFiles | None] = field(default_factory=dict)
    listing: list[StoredFile] | None = None

    def files(self) -> ArchivedFiles:
        if self.found is None:
            self.found = read_archived_files(self.storage, self.format, self.archive, self.listed(), self.timeline)
        return self.found

    def listed(self) -> list[StoredFile]:
        """Files of the archive. There may be many, so the folder is listed once."""
        if self.listing is None:
            self.listing = self.archive.listed() if self.is_there else []
        return self.listing

    @property
    def archive(self) -> History:
        return history_of(self.storage, self.format, self.config)

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
