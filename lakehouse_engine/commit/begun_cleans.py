"""Interrupted cleans: the files that one names, and its outcome so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lakehouse_engine.errors import MetadataError
from lakehouse_engine.model.files import join_path
from lakehouse_engine.model.instant import Instant, State
from lakehouse_engine.model.plans import HoodieCleanerPlan, HoodieCleanMetadata, HoodieCleanPartitionMetadata
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.active import ActiveTimeline


def stored_plan(timeline: ActiveTimeline, clean: Instant) -> HoodieCleanerPlan:
    """The plan from the requested file, or from the inflight file if that is damaged. Raises as `ActiveTimeline.plan`."""
    try:
        return timeline.plan(HoodieCleanerPlan, clean.at(State.REQUESTED))
    except MetadataError:
        if clean.state is not State.INFLIGHT:
            raise
        return timeline.plan(HoodieCleanerPlan, clean)


def planned_files(plan: HoodieCleanerPlan) -> dict[str, list[str]]:
    """Planned paths relative to the table, by partition. A plan's absolute paths are from the table's place at planning; only partition and
    name count, so that a copied table does not delete the original's files.
    """
    infos = plan.file_paths_to_be_deleted_per_partition or {}
    named: dict[str, list[str]] = {partition: [info.file_path or "" for info in infos[partition]] for partition in infos}
    for partition, names in (plan.files_to_be_deleted_per_partition or {}).items():
        named.setdefault(partition, []).extend(names)
    return {partition: [join_path(partition, path.rpartition("/")[2]) for path in paths] for partition, paths in named.items()}


def partition_outcome(partition: str, policy: str, paths: Sequence[str], *, is_deleted: bool) -> HoodieCleanPartitionMetadata:
    """Outcome for a partition in which a clean deleted those files."""
    names = tuple(path.rpartition("/")[2] for path in paths)
    return HoodieCleanPartitionMetadata(
        partition_path=partition,
        policy=policy,
        delete_path_patterns=names,
        success_delete_files=names,
        is_partition_deleted=is_deleted,
    )


def outcome_as_found(storage: Storage, instant_time: str, plan: HoodieCleanerPlan) -> HoodieCleanMetadata:
    """Outcome of a clean by its plan: planned files that no longer exist were deleted."""
    gone = {partition: [path for path in paths if storage.head(path) is None] for partition, paths in planned_files(plan).items()}
    return HoodieCleanMetadata(
        start_clean_time=instant_time,
        time_taken_in_millis=0,
        total_files_deleted=sum(len(paths) for paths in gone.values()),
        earliest_commit_to_retain=plan.earliest_instant_to_retain.timestamp if plan.earliest_instant_to_retain else "",
        last_completed_commit_timestamp=plan.last_completed_commit_timestamp,
        partition_metadata={part: partition_outcome(part, plan.policy, paths, is_deleted=False) for part, paths in gone.items()},
        bootstrap_partition_metadata={},
        extra_metadata=plan.extra_metadata,
    )


def begun_outcome(storage: Storage, timeline: ActiveTimeline, clean: Instant) -> HoodieCleanMetadata:
    """The outcome that completes an inflight clean with what it deleted so far, so that these files do not count as lost. The rest stays.

    It names no earliest instant and no number of kept versions: the next clean examines every partition. Raises `MetadataError` if no state
    file has the whole plan.
    """
    found = outcome_as_found(storage, clean.requested_time, stored_plan(timeline, clean))
    return replace(found, earliest_commit_to_retain="", extra_metadata={})
