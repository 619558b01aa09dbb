"""Files that cleans deleted, which count as present."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse_engine.compat import cached_property
from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.format.file_names import is_base_file_name, parse_base_file
from lakehouse_engine.manifest.archived_files import cleaned_by
from lakehouse_engine.manifest.manifest import ExpectedFile
from lakehouse_engine.model.files import join_path
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieCleanerPlan, HoodieCleanMetadata
from lakehouse_engine.view.table_state import TableState


def cleaned_files(state: TableState) -> set[str]:
    """Paths that cleans of the active timeline deleted, or that a pending one may have deleted."""
    timeline = state.active
    found: set[str] = set()
    for instant in state.timeline:
        if instant.action is Action.CLEAN and instant.is_completed:
            found.update(timeline.plan(HoodieCleanMetadata, instant).deleted_paths())
        elif instant.action is Action.CLEAN:
            requested = Instant(instant.requested_time, Action.CLEAN, State.REQUESTED)
            found.update(_planned(timeline.plan(HoodieCleanerPlan, requested)))
    return found


def _planned(plan: HoodieCleanerPlan) -> Iterator[str]:
    for partition, files in (plan.file_paths_to_be_deleted_per_partition or {}).items():
        yield from (join_path(partition, (file.file_path or "").rpartition("/")[2]) for file in files)
    for partition, paths in (plan.files_to_be_deleted_per_partition or {}).items():
        yield from (join_path(partition, path.rpartition("/")[2]) for path in paths)


class Cleaned:
    """Deleted files by path, and base files also by group and instant; reads archived cleans if active ones do not suffice."""

    def __init__(self, state: TableState) -> None:
        self._state = state
        self._active = _Deleted(cleaned_files(state))

    def took(self, file: ExpectedFile) -> bool:
        """True if a file that commits name was cleaned, or if damage to the archive (a separate finding) leaves that open."""
        return self._active.has(file) or self._archived is None or self._archived.has(file)

    def took_path(self, path: str) -> bool:
        """`took` for a path."""
        return path in self._active.paths or self._archived is None or path in self._archived.paths

    @cached_property
    def _archived(self) -> _Deleted | None:
        state = self._state
        archive = state.archived_timeline
        try:
            return _Deleted({path for entry in archive.entries_of(archive.files()) for path in cleaned_by(entry)})
        except LakehouseError:
            return None


class _Deleted:
    """Deleted files."""

    def __init__(self, paths: set[str]) -> None:
        self.paths = paths
        self._bases = _bases(paths)
        self._groups = {(partition, file_id) for partition, file_id, _ in self._bases}

    def has(self, file: ExpectedFile) -> bool:
        group = (file.group.partition_path, file.group.file_id)
        return file.path in self.paths or (*group, file.instant_time) in self._bases or (not file.instant_time and group in self._groups)


def _bases(paths: set[str]) -> set[tuple[str, str, str]]:
    found = set()
    for path in paths:
        partition, _, name = path.rpartition("/")
        if is_base_file_name(name):
            base = parse_base_file(partition, name)
            found.add((partition, base.file_id, base.instant_time))
    return found
