"""Results of table services: one frozen record each, of what was done or, on a dry run, would be done.

Instants are None if nothing was done. Paths are relative to the table; bytes are those of the named files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakehouse_engine.model.plans import HoodieClusteringGroup, HoodieCompactionOperation


@dataclass(frozen=True, slots=True, kw_only=True)
class Savepoint:
    """A completed savepoint. `instant` is the commit that it keeps; `created_at` in epoch milliseconds."""

    instant: str
    name: str | None
    comment: str
    user: str
    created_at: int
    partitions: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """`instant` is the plan's; `operations` are the slices of the plan, counts are rows of the written base files."""

    instant: str | None
    operation: str
    state: str
    operations: tuple[HoodieCompactionOperation, ...] = ()
    files_created: int = 0
    rows_written: int = 0
    bytes_written: int = 0
    log_files_compacted: int = 0
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringResult:
    """`instant` is the plan's; `groups` are those that are (to be) rewritten together.

    `bytes_read` counts the files that they replace, `groups_left` groups beyond the limit of one clustering, `groups_lost` those that
    writers changed while it ran. `opened_before` and `opened_after` give for each sort column the share of these files, 0 to 1, that a
    filter for one value opens by their bounds, if the files have them; `opened_after` is known once it has run.
    """

    instant: str | None
    state: str
    groups: tuple[HoodieClusteringGroup, ...] = ()
    bytes_read: int = 0
    files_replaced: int = 0
    files_created: int = 0
    rows_written: int = 0
    bytes_written: int = 0
    groups_left: int = 0
    groups_lost: int = 0
    opened_before: dict[str, float] = field(default_factory=dict)
    opened_after: dict[str, float] = field(default_factory=dict)
    dry_run: bool = False

    @property
    def files_planned(self) -> int:
        """Number of file groups in the plan."""
        return sum(len(group.slices or ()) for group in self.groups)


@dataclass(frozen=True, slots=True)
class VersionChange:
    """A change of the table's version. `steps` were done, in that order; `notes` say what changes for the table's users.

    `instants` and `archived` count the rewritten instants of the timeline; `compacted` are the compactions that ran before.
    """

    from_version: int
    to_version: int
    steps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    instants: int = 0
    archived: int = 0
    compacted: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataTableChange:
    """What was done to a metadata table. `partitions` are there now; some may be `dropped` first and then `built`."""

    partitions: tuple[str, ...]
    built: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableIndex:
    """An index of a table: a `partition` of its metadata table. `columns` are those that it is about.

    Of an expression index, `stored_as` is `column_stats` or `bloom_filters`, and `options` has the function, `expr`, and what it is given.
    `planned` is the instant of the pending build of an index that is not there yet; None of one that is.
    """

    name: str
    type: str
    columns: tuple[str, ...]
    partition: str
    stored_as: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    planned: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexChange:
    """What was done for an index. `built`, `planned` and `dropped` are partitions of the metadata table; none has any if all was so
    already. `instant` is that of the build, or its plan.
    """

    index: str
    instant: str | None = None
    planned: tuple[str, ...] = ()
    built: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HBaseIndexChange:
    """The HBASE index of a table was put again: `entries` rows of the HBase table `hbase_table`."""

    hbase_table: str
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackResult:
    """`instant` is the rollback, `rolled_back` the removed instant."""

    instant: str | None
    rolled_back: str
    action: str
    files_deleted: tuple[str, ...] = ()
    rollback_blocks: tuple[str, ...] = ()
    bytes_deleted: int = 0
    rows_taken_back: int = 0
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    """`instant` is the restore, `restored_to` the table's instant after it; `rolled_back` newest first.

    `savepoints_deleted` are instants of later savepoints that `cascade` deleted. Rows are those that the commits taken back had written
    (inserts, updates and deletes).
    """

    instant: str | None
    restored_to: str
    savepoint: str | None
    rolled_back: tuple[str, ...] = ()
    savepoints_deleted: tuple[str, ...] = ()
    files_deleted: tuple[str, ...] = ()
    bytes_deleted: int = 0
    rows_taken_back: int = 0
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanResult:
    """`earliest_retained` is the oldest instant readable after the clean. `kept` says what was kept and why."""

    instant: str | None
    policy: str
    earliest_retained: str | None
    files_deleted: tuple[str, ...] = ()
    partitions: int = 0
    bytes_deleted: int = 0
    kept: tuple[str, ...] = field(default=())
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveResult:
    """`archived` are the instants that left the active timeline, oldest first; `kept` says why it stopped where it did.

    `files_written` has the archive file with them, after the file into which older small ones were merged, if any.
    """

    archived: tuple[str, ...] = ()
    files_written: tuple[str, ...] = ()
    kept: tuple[str, ...] = field(default=())
    dry_run: bool = False
