"""A partition's files as versions of file groups, including CDC files: what a clean selects from, and what it may never delete."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakehouse_engine.commit.concurrency.pending import pending_groups
from lakehouse_engine.format.file_names import group_in, is_base_file_name, is_log_file_name, parse_base_file, parse_log_file
from lakehouse_engine.model.files import LogFile
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.order import Order, in_time_order
from lakehouse_engine.model.plans import HoodieCompactionPlan
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.storage.paths import parent_of
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.view.listings.listing import StorageLister
from lakehouse_engine.view.slicing import slice_of
from lakehouse_engine.view.table_state import TableState

_COMPACTIONS = (Action.COMPACTION, Action.LOG_COMPACTION)


@dataclass(frozen=True, slots=True)
class FileVersion:
    """Files of one group with one base instant. `has_rows`: it has a base file or logs, not only CDC files."""

    instant_time: str
    files: tuple[StoredFile, ...]
    has_rows: bool
    is_committed: bool


@dataclass(frozen=True, slots=True)
class GroupVersions:
    """Every version of a group in a listing, newest first, including pending and unknown instants."""

    group: FileGroupId
    versions: tuple[FileVersion, ...]

    @property
    def slices(self) -> tuple[FileVersion, ...]:
        """Versions that are or were part of the table."""
        return tuple(version for version in self.versions if version.has_rows and version.is_committed)


def partition_versions(partition_path: str, files: Iterable[StoredFile], timeline: Timeline) -> list[GroupVersions]:
    """Groups of one listing, sorted by file id. Names outside of Hudi's grammar are skipped.

    A committed log that is named by its writer belongs to the slice of `view.slicing.slice_of`; another one is a version of its own.
    """
    groups: dict[str, dict[str, list[StoredFile]]] = {}
    logs: dict[str, list[tuple[LogFile, StoredFile]]] = {}
    begun: dict[str, set[str]] = {}
    for file in files:
        if is_base_file_name(file.name):
            base = parse_base_file(partition_path, file.name)
            groups.setdefault(base.file_id, {}).setdefault(base.instant_time, []).append(file)
            if timeline.is_committed(base.instant_time):
                begun.setdefault(base.file_id, set()).add(base.instant_time)
        elif is_log_file_name(file.name):
            log = parse_log_file(partition_path, file.name)
            if timeline.order.names_writer(log.instant_time) and not log.is_cdc and timeline.is_committed(log.instant_time):
                logs.setdefault(log.file_id, []).append((log, file))
            else:
                groups.setdefault(log.file_id, {}).setdefault(log.instant_time, []).append(file)
    for file_id, found in logs.items():
        slices, versions = begun.setdefault(file_id, set()), groups.setdefault(file_id, {})
        for log, file in in_time_order(found, lambda pair: timeline.order.moment(pair[0].instant_time)):
            base_instant = slice_of(log, slices, timeline.order)
            slices.add(base_instant)
            versions.setdefault(base_instant, []).append(file)
    return [GroupVersions(FileGroupId(partition_path, file_id), _versions(groups[file_id], timeline)) for file_id in sorted(groups)]


def without_strays(state: TableState, partition_path: str, files: Iterable[StoredFile]) -> list[StoredFile]:
    """The files without base files that no commit named: as the newest version, one would release the real one."""
    return [file for file in files if not _is_stray(state, partition_path, file)]


def _is_stray(state: TableState, partition_path: str, file: StoredFile) -> bool:
    if not is_base_file_name(file.name):
        return False
    base = parse_base_file(partition_path, file.name)
    return state.timeline.is_committed(base.instant_time) and not state.manifest.has(base)


def planned_groups(state: TableState) -> dict[FileGroupId, str]:
    """Groups that a pending compaction, log compaction or clustering will read, with its instant."""
    found = {FileGroupId(*group): time for group, time in pending_groups(state).items()}
    timeline = state.active
    for instant in state.timeline.pending():
        if instant.action in _COMPACTIONS:
            requested = Instant(instant.requested_time, instant.action, State.REQUESTED)
            for operation in timeline.plan(HoodieCompactionPlan, requested).operations or ():
                found[FileGroupId(operation.partition_path or "", operation.file_id or "")] = instant.requested_time
    return found


def needed_files(state: TableState, paths: Iterable[str]) -> dict[str, str]:
    """Those of these paths that no clean may delete, whatever its plan says, with the reason. Lists their partitions.

    These are the newest slice of every live group, every file of a group that a pending service will read, and files of uncommitted
    instants. Savepoints are checked where files are deleted.
    """
    lister, planned, replaced = StorageLister(state.storage), planned_groups(state), state.view.replaced_as_of()
    wanted = frozenset(paths)
    ids: dict[str, set[str]] = {}
    for path in wanted:
        ids.setdefault(parent_of(path), set()).add(group_in(path.rpartition("/")[2]))
    needed: dict[str, str] = {}
    for partition in sorted(ids):
        files = [file for file in lister.files(partition) if group_in(file.name) in ids[partition]]
        for group in partition_versions(partition, without_strays(state, partition, files), state.timeline):
            latest = group.slices[0].instant_time if group.slices and group.group not in replaced else None
            for version in group.versions:
                reason = _reason(version, latest, planned.get(group.group))
                if reason is not None:
                    needed.update(dict.fromkeys((file.path for file in version.files if file.path in wanted), reason))
    return needed


def _reason(version: FileVersion, latest: str | None, service: str | None) -> str | None:
    if not version.is_committed:
        return f"the instant {version.instant_time} is not committed"
    if service is not None:
        return f"the pending table service {service} reads its file group"
    return "it is part of the newest slice" if version.instant_time == latest else None


def _versions(files: dict[str, list[StoredFile]], timeline: Timeline) -> tuple[FileVersion, ...]:
    return tuple(
        FileVersion(time, tuple(files[time]), any(not file.name.endswith(".cdc") for file in files[time]), timeline.is_committed(time))
        for time in Order.by_request().sorted(files, newest_first=True)
    )
