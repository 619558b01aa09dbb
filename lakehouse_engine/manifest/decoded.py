"""Commits that this process has read: of a known table only those are read that it does not know yet."""

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


# Without slots, so that what is derived can be cached on the instance.
@dataclass(frozen=True)
class DecodedCommit:
    """The metadata of a completed write, and what follows from it."""

    instant: Instant
    metadata: HoodieCommitMetadata

    @cached_property
    def record(self) -> WriteRecord:
        """What the write left and took away."""
        return write_record(self.instant.requested_time, self.metadata, shown_at=self.instant.completed_at)

    @cached_property
    def names(self) -> frozenset[str] | None:
        """Names of the files that the write left, None where it does not tell all of them."""
        return named_files(self.instant.requested_time, self.metadata)


@dataclass(slots=True)
class DecodedCommits:
    """Commits whose files have at most `limit` bytes together.

    A commit is known by name and version (size, age, tag) of its file, so that one that was damaged, mended or put in the place of another
    is read. Those of storages in memory, of which two may have one name, are read each time.
    """

    limit: int
    kept: BoundedCache[tuple[DecodedCommit, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.kept = BoundedCache(self.limit, lambda found: found[1])

    def get(self, active: ActiveTimeline, instant: Instant, file: StoredFile | None) -> DecodedCommit:
        """The commit in `file`, as it was listed; raises as `ActiveTimeline.commit`."""
        identity = identity_of(active.storage)
        if file is None or identity is None:
            return DecodedCommit(instant, active.commit(instant))
        key, size = (identity, file.path, file.version), file.size
        return self.kept.find(key, lambda: (DecodedCommit(instant, active.commit(instant)), size))[0]


DECODED = DecodedCommits(limit=16 * 1024 * 1024)
"""Of all tables of this process."""
