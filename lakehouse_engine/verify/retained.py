"""Files that must exist: those of the current table, of reads of earlier commits, and of savepoints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakehouse_engine.format.file_names import is_base_file_name, is_log_file_name
from lakehouse_engine.model.order import is_later
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.verify.cleaned import cleaned_files
from lakehouse_engine.view.listings.listing import StorageLister
from lakehouse_engine.view.protected import protected_files
from lakehouse_engine.view.table_state import TableState


@dataclass(frozen=True, slots=True)
class RetainedFile:
    """`needed_by` says for what. `size` (bytes) is from its last commit, 0 if not recorded. `until_cleaned`: a clean, perhaps archived, may
    have deleted it.
    """

    path: str
    needed_by: str
    size: int = 0
    until_cleaned: bool = False

    @property
    def is_log(self) -> bool:
        return is_log_file_name(self.path.rpartition("/")[2])


def retained_files(state: TableState) -> dict[str, RetainedFile]:
    """Base and log files by path (relative to the table).

    A file of an active commit exists until a clean deletes it. This engine archives a clean after the commits before it; Hudi does not if a
    savepoint keeps those (`until_cleaned`). For savepointed commits the savepoint's own list counts, for archived ones the files that are
    still live.
    """
    found = {
        file.path: RetainedFile(file.path, f"live, and written by {file.instant_time}, which is archived", file.size)
        for _, file in state.archived_files().live.after(state.active_writes()).files()
    }
    since = state.proven_since
    for instant in state.timeline.completed().writes():
        if not is_later(since, instant.requested_time):
            for stat in state.commit_metadata(instant).write_stats():
                name = (stat.path or "").rpartition("/")[2]
                if stat.path and (is_base_file_name(name) or is_log_file_name(name)):
                    found[stat.path] = RetainedFile(stat.path, f"written by {instant.requested_time}", stat.file_size_in_bytes, True)
    for path in cleaned_files(state):
        found.pop(path, None)
    for path, savepoint in protected_files(state).items():
        known = found.get(path)
        found[path] = RetainedFile(path, f"pinned by the savepoint {savepoint}", known.size if known else 0)
    return found


def stored_files(state: TableState, paths: Iterable[str]) -> dict[str, StoredFile]:
    """Files in the partitions of `paths`, by path."""
    lister = StorageLister(state.storage)
    partitions = {path.rpartition("/")[0] for path in paths}
    return {entry.path: entry for partition in sorted(partitions) for entry in lister.files(partition)}
