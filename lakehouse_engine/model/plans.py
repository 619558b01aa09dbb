"""Plans of table services, and the records of their execution (hudi-format 2.4).

Members are those of Hudi's Avro records, in snake case. A plan is written to the timeline before anything is done, so that it can be
continued after a crash.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lakehouse_engine.model.files import join_path


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieInstantInfo:
    """An instant named in a plan; `action` is the word in file names."""

    commit_time: str
    action: str


# Compaction


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieCompactionStrategy:
    """Strategy that made a compaction plan, as the plan names it."""

    compactor_class_name: str | None = None
    strategy_params: dict[str, str] | None = None
    version: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieCompactionOperation:
    """One slice to compact. Paths are bare file names (plan version 2); `data_file_path` is None for a slice of logs only."""

    base_instant_time: str | None
    file_id: str | None
    partition_path: str | None = None
    delta_file_paths: tuple[str, ...] | None = None
    data_file_path: str | None = None
    metrics: dict[str, float] | None = None
    bootstrap_file_path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieCompactionPlan:
    """`<instant>.compaction.requested` and `<instant>.logcompaction.requested`."""

    operations: tuple[HoodieCompactionOperation, ...] | None = None
    extra_metadata: dict[str, str] | None = None
    version: int | None = 2
    strategy: HoodieCompactionStrategy | None = None
    preserve_hoodie_metadata: bool | None = False
    missing_schedule_partitions: tuple[str, ...] | None = None


# Cleaning


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieActionInstant:
    """An instant in a clean plan; `state` is in upper case (`COMPLETED`), as Hudi writes it here."""

    timestamp: str
    action: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieCleanFileInfo:
    """A file to clean; `file_path` is a full URI."""

    file_path: str | None = None
    is_bootstrap_base_file: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieCleanerPlan:
    """`<instant>.clean.requested`. Version 2 names files in `file_paths_to_be_deleted_per_partition`, version 1 in the other map."""

    policy: str
    earliest_instant_to_retain: HoodieActionInstant | None = None
    last_completed_commit_timestamp: str = ""
    files_to_be_deleted_per_partition: dict[str, tuple[str, ...]] | None = field(default_factory=dict)
    version: int | None = 2
    file_paths_to_be_deleted_per_partition: dict[str, tuple[HoodieCleanFileInfo, ...]] | None = None
    partitions_to_be_deleted: tuple[str, ...] | None = None
    extra_metadata: dict[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieCleanPartitionMetadata:
    """Result of a clean in one partition. File names are bare in version 2 of the enclosing record."""

    partition_path: str
    policy: str
    delete_path_patterns: tuple[str, ...] = ()
    success_delete_files: tuple[str, ...] = ()
    failed_delete_files: tuple[str, ...] = ()
    is_partition_deleted: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieCleanMetadata:
    """`<instant>.clean`: time travel reaches back to `earliest_commit_to_retain` at most."""

    start_clean_time: str
    time_taken_in_millis: int
    total_files_deleted: int
    earliest_commit_to_retain: str
    last_completed_commit_timestamp: str = ""
    partition_metadata: dict[str, HoodieCleanPartitionMetadata] = field(default_factory=dict)
    version: int | None = 2
    bootstrap_partition_metadata: dict[str, HoodieCleanPartitionMetadata] | None = None
    extra_metadata: dict[str, str] | None = None

    def deleted_paths(self) -> Iterator[str]:
        """Paths, relative to the table, of the deleted files."""
        for partition, cleaned in self.partition_metadata.items():
            yield from (join_path(partition, path.rpartition("/")[2]) for path in cleaned.success_delete_files)


# Rollback


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieRollbackRequest:
    """`files_to_be_deleted` are absolute paths without scheme. The content of `log_blocks_to_be_deleted` differs by Hudi's strategy."""

    partition_path: str
    file_id: str | None = None
    latest_base_instant: str | None = None
    files_to_be_deleted: tuple[str, ...] = ()
    log_blocks_to_be_deleted: dict[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieRollbackPlan:
    """`<instant>.rollback.requested`."""

    instant_to_rollback: HoodieInstantInfo | None = None
    rollback_requests: tuple[HoodieRollbackRequest, ...] | None = None
    version: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieRollbackPartitionMetadata:
    """Paths as in the plan; `rollback_log_files` are files with command blocks and their sizes in bytes."""

    partition_path: str
    success_delete_files: tuple[str, ...] = ()
    failed_delete_files: tuple[str, ...] = ()
    rollback_log_files: dict[str, int] | None = None
    log_files_from_failed_commit: dict[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieRollbackMetadata:
    """`<instant>.rollback`."""

    start_rollback_time: str
    time_taken_in_millis: int
    total_files_deleted: int
    commits_rollback: tuple[str, ...]
    partition_metadata: dict[str, HoodieRollbackPartitionMetadata] = field(default_factory=dict)
    version: int | None = 1
    instants_rollback: tuple[HoodieInstantInfo, ...] = ()


# Restore


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieRestorePlan:
    """`<instant>.restore.requested`: instants newest first. `savepoint_to_restore_timestamp` is the instant to keep."""

    instants_to_rollback: tuple[HoodieInstantInfo, ...] = ()
    version: int | None = 2
    savepoint_to_restore_timestamp: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieRestoreMetadata:
    """`<instant>.restore`; `hoodie_restore_metadata` is keyed by the instant rolled back."""

    start_restore_time: str
    time_taken_in_millis: int
    instants_to_rollback: tuple[str, ...]
    hoodie_restore_metadata: dict[str, tuple[HoodieRollbackMetadata | None, ...]] = field(default_factory=dict)
    version: int | None = 1
    restore_instant_info: tuple[HoodieInstantInfo, ...] = ()


# Replace commits and clustering


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieSliceInfo:
    """`data_file_path` and `delta_file_paths` are full URIs."""

    file_id: str | None
    data_file_path: str | None = None
    delta_file_paths: tuple[str, ...] | None = None
    partition_path: str | None = None
    bootstrap_file_path: str | None = None
    version: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieClusteringGroup:
    """Slices that are rewritten together."""

    slices: tuple[HoodieSliceInfo, ...] | None = None
    metrics: dict[str, float] | None = None
    num_output_file_groups: int | None = 1
    extra_metadata: dict[str, str] | None = None
    version: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieClusteringStrategy:
    """Strategy of a clustering plan, as the plan names it."""

    strategy_class_name: str | None = None
    strategy_params: dict[str, str] | None = None
    version: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieClusteringPlan:
    """Plan of a clustering: groups of slices that are written again together."""

    input_groups: tuple[HoodieClusteringGroup, ...] | None = None
    strategy: HoodieClusteringStrategy | None = None
    extra_metadata: dict[str, str] | None = None
    version: int | None = 1
    preserve_hoodie_metadata: bool | None = None
    missing_schedule_partitions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieRequestedReplaceMetadata:
    """`<instant>.replacecommit.requested`: everything None for overwrites and dropped partitions, a plan for clustering."""

    operation_type: str | None = None
    clustering_plan: HoodieClusteringPlan | None = None
    extra_metadata: dict[str, str] | None = None
    version: int | None = None


# Indexing


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieIndexPartitionInfo:
    """A partition of the metadata table, and the instant up to which it is (to be) complete."""

    version: int | None = 1
    metadata_partition_path: str | None = None
    index_upto_instant: str | None = None
    extra_metadata: dict[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieIndexPlan:
    """`<instant>.indexing.requested`."""

    version: int | None = 1
    index_partition_infos: tuple[HoodieIndexPartitionInfo, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieIndexCommitMetadata:
    """`<instant>.indexing`."""

    version: int | None = 1
    operation_type: str | None = None
    index_partition_infos: tuple[HoodieIndexPartitionInfo, ...] | None = None
