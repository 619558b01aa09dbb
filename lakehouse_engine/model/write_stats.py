"""Statistics of a write: per file for the commit's metadata, in total for the caller."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lakehouse_engine.compat import StrEnum


class WriteOperationType(StrEnum):
    """Hudi's `WriteOperationType` constants, as in commit metadata."""

    INSERT = "INSERT"
    INSERT_PREPPED = "INSERT_PREPPED"
    UPSERT = "UPSERT"
    UPSERT_PREPPED = "UPSERT_PREPPED"
    BULK_INSERT = "BULK_INSERT"
    BULK_INSERT_PREPPED = "BULK_INSERT_PREPPED"
    DELETE = "DELETE"
    DELETE_PREPPED = "DELETE_PREPPED"
    BOOTSTRAP = "BOOTSTRAP"
    INSERT_OVERWRITE = "INSERT_OVERWRITE"
    INSERT_OVERWRITE_TABLE = "INSERT_OVERWRITE_TABLE"
    CLUSTER = "CLUSTER"
    DELETE_PARTITION = "DELETE_PARTITION"
    COMPACT = "COMPACT"
    LOG_COMPACT = "LOG_COMPACT"
    INDEX = "INDEX"
    ALTER_SCHEMA = "ALTER_SCHEMA"
    BUCKET_RESCALE = "BUCKET_RESCALE"
    UNKNOWN = "UNKNOWN"


REWRITES = frozenset({WriteOperationType.COMPACT, WriteOperationType.LOG_COMPACT, WriteOperationType.CLUSTER})
"""Operations that rewrite stored rows without changing them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieWriteStat:
    """One file of a commit (Hudi `HoodieWriteStat`; log-append members of `HoodieDeltaWriteStat` are None for base files).

    `path` is relative to the table, `None` in the pseudo stats of an inflight commit; `prev_commit` is the text "null" for a new file
    group. `extra` keeps unknown members, so that foreign records print back unchanged. `checksum` is the CRC-32, in 8 hex digits, of what
    was written to a log file; Hudi's record has no such member (see `HoodieCommitMetadata.log_checksums`).
    """

    file_id: str | None
    path: str | None
    prev_commit: str | None = "null"
    num_writes: int = 0
    num_deletes: int = 0
    num_update_writes: int = 0
    num_inserts: int = 0
    total_write_bytes: int = 0
    total_write_errors: int = 0
    temp_path: str | None = None
    partition_path: str | None = None
    total_log_records: int = 0
    total_log_files_compacted: int = 0
    total_log_size_compacted: int = 0
    total_updated_records_compacted: int = 0
    total_log_blocks: int = 0
    total_corrupt_log_block: int = 0
    total_rollback_blocks: int = 0
    file_size_in_bytes: int = 0
    min_event_time: int | None = None
    max_event_time: int | None = None
    cdc_stats: dict[str, int] | None = None
    runtime_stats: dict[str, int] | None = None
    log_version: int | None = None
    log_offset: int | None = None
    base_file: str | None = None
    log_files: tuple[str, ...] | None = None
    checksum: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """What one commit did; every write of the public API returns it.

    `instant` is None for a no-op, which writes nothing. Counts are rows; `bytes_written` counts data files. `failed_services` has one text
    for each table service that was due after the commit and failed; the commit stands. `was_written`: an earlier call with the same
    `write_id` made the commit, and the counts come from it (a row that moved to another partition is a delete and an insert; dropped
    duplicates are unknown). `route`: `SMALL` if this process held the keys of the batch, `LARGE` if they were split into shares; None if
    rows went straight into new files. `index`: how keys were looked up, and why so; None if none were. `builds_index`: the table
    had outgrown that, so that a record index was to be built behind the commit.
    """

    operation: WriteOperationType
    table_type: str
    instant: str | None
    previous_instant: str | None
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    files_created: int = 0
    files_updated: int = 0
    log_files: int = 0
    bytes_written: int = 0
    duplicates_dropped: int = 0
    failed_services: tuple[str, ...] = ()
    was_written: bool = False
    route: str | None = None
    index: str | None = None
    builds_index: bool = False

    @property
    def rows_affected(self) -> int:
        return self.inserts + self.updates + self.deletes
