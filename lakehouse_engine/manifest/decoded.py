"""Commits that this process has read, so that only unknown ones of a known table are read."""

from __future__ import annotations

from dataclasses import dataclass, field

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.compat import cached_property
from lakehouse_engine.manifest.written import named_files, write_record
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.live_files import WriteRecord
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.storage.locations import identity_of
from lakehouse_engine.timeline.active import ActiveTimeline


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
