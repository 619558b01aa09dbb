"""Files that must be on storage: those of the table as it is, those that reads of earlier commits need, those that savepoints pin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lakehouse_engine.format.file_names import is_base_file_name, is_log_file_name
from lakehouse_engine.model.files import join_path
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieCleanerPlan, HoodieCleanMetadata
from lakehouse_engine.read.completeness import proven_since
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.view.listing import StorageLister
from lakehouse_engine.view.protected import protected_files
from lakehouse_engine.view.table_state import TableState


@dataclass(frozen=True, slots=True)
class RetainedFile:
    """`needed_by` says for what. `size` is the one that its last commit recorded in bytes, 0 where none did."""

    path: str
    needed_by: str
    size: int = 0

    @property
    def is_log(self) -> bool:
        return is_log_file_name(self.path.rpartition("/")[2])


def retained_files(state: TableState) -> dict[str, RetainedFile]:
    """Base and log files by path (relative to the table).

    A file of a commit on the active timeline is there until a clean deletes it, and a clean is archived after the commits before it.
    Only savepointed commits outlive that; of them the savepoint's own list counts. Of archived commits the files that are still live are
    needed.
    """
    found = {
        file.path: RetainedFile(file.path, f"live, and written by {file.instant_time}, which is archived", file.size)
        for _, file in state.archived_files().live.after(state.active_writes()).files()
    }
    since = proven_since(state)
    for instant in state.timeline.completed().writes():
        if instant.requested_time >= since:
            for stat in state.commit_metadata(instant).write_stats():
                name = (stat.path or "").rpartition("/")[2]
                if stat.path and (is_base_file_name(name) or is_log_file_name(name)):
                    found[stat.path] = RetainedFile(stat.path, f"written by {instant.requested_time}", stat.file_size_in_bytes)
    for path in cleaned_files(state):
        found.pop(path, None)
    for path, savepoint in protected_files(state).items():
        known = found.get(path)
        found[path] = RetainedFile(path, f"pinned by the savepoint {savepoint}", known.size if known else 0)
    return found


def cleaned_files(state: TableState) -> set[str]:
    """Paths that cleans of the active timeline deleted, or that a pending one may have deleted in part."""
    timeline = ActiveTimeline(state.storage, state.layout)
    found: set[str] = set()
    for instant in state.timeline:
        if instant.action is Action.CLEAN and instant.is_completed:
            found.update(_deleted(timeline.plan(HoodieCleanMetadata, instant)))
        elif instant.action is Action.CLEAN:
            requested = Instant(instant.requested_time, Action.CLEAN, State.REQUESTED)
            found.update(_planned(timeline.plan(HoodieCleanerPlan, requested)))
    return found


def _deleted(clean: HoodieCleanMetadata) -> Iterator[str]:
    for partition, cleaned in clean.partition_metadata.items():
        yield from (join_path(partition, path.rpartition("/")[2]) for path in cleaned.success_delete_files)


def _planned(plan: HoodieCleanerPlan) -> Iterator[str]:
    for partition, files in (plan.file_paths_to_be_deleted_per_partition or {}).items():
        yield from (join_path(partition, (file.file_path or "").rpartition("/")[2]) for file in files)
    for partition, paths in (plan.files_to_be_deleted_per_partition or {}).items():
        yield from (join_path(partition, path.rpartition("/")[2]) for path in paths)


def stored_files(state: TableState, paths: Iterable[str]) -> dict[str, StoredFile]:
    """What is on storage in the partitions of `paths`, by path."""
    lister = StorageLister(state.storage)
    partitions = {path.rpartition("/")[0] for path in paths}
    return {entry.path: entry for partition in sorted(partitions) for entry in lister.files(partition)}
