"""Plans a clean in Hudi's format (hudi-format 10.4; Hudi `CleanPlanActionExecutor`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lakehouse_engine.commit.versions import FileVersion, GroupVersions, partition_versions, planned_groups, without_strays
from lakehouse_engine.format.file_names import PARTITION_METAFILE, group_in
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.order import earliest, is_later
from lakehouse_engine.model.plans import HoodieActionInstant, HoodieCleanerPlan, HoodieCleanFileInfo
from lakehouse_engine.options import CleanOptions
from lakehouse_engine.options.services import CLEAN_VERSIONS
from lakehouse_engine.services.clean.policies import KEEP_LATEST_FILE_VERSIONS, CleanPolicy, Retention, retention
from lakehouse_engine.services.clean.scope import SAVEPOINTED, scope_of
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.view.listings.listing import StorageLister
from lakehouse_engine.view.protected import protected_files
from lakehouse_engine.view.table_state import TableState


@dataclass(frozen=True, slots=True)
class PlannedClean:
    """`plan` is None if there is nothing to delete; `files` are those that it deletes; `kept` says what is held back, and why."""

    retention: Retention
    plan: HoodieCleanerPlan | None = None
    files: tuple[StoredFile, ...] = ()
    kept: tuple[str, ...] = ()


@dataclass(slots=True)
class _Held:
    """Files that would be garbage but are not deleted: their number by reason."""

    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, reason: str, version: FileVersion) -> None:
        self.reasons[reason] += len(version.files)


def plan_clean(state: TableState, options: CleanOptions, now: str) -> PlannedClean:
    """Plan the clean that `options` ask for at the instant time `now`, over the partitions that can have garbage."""
    kept = retention(state.timeline, options, now)
    if kept.policy is None:
        return PlannedClean(kept, kept=_notes(kept, _Held()))
    lister, held = StorageLister(state.storage), _Held()
    sift = _Sieve(kept.policy, state.view.replaced_at, planned_groups(state), protected_files(state), held)
    scope = scope_of(state, options, kept)
    garbage: dict[str, list[StoredFile]] = {}
    emptied: list[str] = []
    for partition in state.view.partitions() if scope.all_partitions else sorted(scope.touched):
        listed = lister.files(partition)
        several = sift.with_versions(partition, listed)
        found = sift.garbage(partition_versions(partition, without_strays(state, partition, several), state.timeline))
        if found:
            garbage[partition] = found
            if partition and _is_emptied(listed, found):
                emptied.append(partition)
    files = tuple(file for found in garbage.values() for file in found)
    plan = _plan(state, options, kept, garbage, emptied) if files else None
    return PlannedClean(kept, plan, files, _notes(kept, held))


@dataclass(frozen=True, slots=True)
class _Sieve:
    """Separates garbage from what stays. `pinned` maps paths to savepoints, `replaced` and `planned` map file groups to instants."""

    policy: CleanPolicy
    replaced: Mapping[FileGroupId, str]
    planned: Mapping[FileGroupId, str]
    pinned: Mapping[str, str]
    held: _Held

    def with_versions(self, partition: str, listed: Sequence[StoredFile]) -> list[StoredFile]:
        """Files of groups that may have garbage: of one file alone only a group that is replaced has any."""
        counts = Counter(group_in(file.name) for file in listed)

        def may_have(file_id: str) -> bool:
            return counts[file_id] > 1 or FileGroupId(partition, file_id) in self.replaced

        return [file for file in listed if may_have(group_in(file.name))]

    def garbage(self, groups: Iterable[GroupVersions]) -> list[StoredFile]:
        return [file for group in groups for version in self._superfluous(group) if self._is_free(group, version) for file in version.files]

    def _superfluous(self, group: GroupVersions) -> Sequence[FileVersion]:
        replaced = self.replaced.get(group.group)
        if replaced is not None:
            # Its slices served queries until it was replaced, so they go all at once.
            return [version for version in group.versions if version.is_committed] if self.policy.drops_replaced(replaced) else []
        slices = [version.instant_time for version in group.slices]
        stays = self.policy.keeps(slices) | set(slices[:1])
        return [version for version in group.versions if version.is_committed and slices and self._is_old(version, slices[0], stays)]

    def _is_old(self, version: FileVersion, newest: str, stays: frozenset[str] | set[str]) -> bool:
        """CDC files without a slice of their own go with the oldest slices that stay."""
        bound = newest if version.has_rows else earliest(stays) or newest
        return is_later(bound, version.instant_time) and version.instant_time not in stays

    def _is_free(self, group: GroupVersions, version: FileVersion) -> bool:
        # As in Hudi, one pinned file keeps its whole slice.
        savepoint = next((self.pinned[file.path] for file in version.files if file.path in self.pinned), None)
        if savepoint is not None:
            self.held.add(f"kept by the savepoint of {savepoint}", version)
        elif group.group in self.planned:
            self.held.add(f"kept for the pending table service {self.planned[group.group]}", version)
        else:
            return True
        return False


def _is_emptied(listed: Sequence[StoredFile], garbage: Sequence[StoredFile]) -> bool:
    gone = {file.path for file in garbage}
    return all(file.path in gone or file.name.startswith(PARTITION_METAFILE) for file in listed)


def _plan(
    state: TableState, options: CleanOptions, kept: Retention, garbage: Mapping[str, Sequence[StoredFile]], emptied: Sequence[str]
) -> HoodieCleanerPlan:
    first = kept.earliest
    last = state.timeline.completed().writes().last()
    return HoodieCleanerPlan(
        policy=options.policy,
        earliest_instant_to_retain=None
        if first is None
        else HoodieActionInstant(timestamp=first.requested_time, action=str(first.action), state=first.state.name),
        last_completed_commit_timestamp=last.requested_time if last else "",
        file_paths_to_be_deleted_per_partition={
            partition: tuple(HoodieCleanFileInfo(file_path=state.storage.uri(file.path), is_bootstrap_base_file=False) for file in files)
            for partition, files in garbage.items()
        },
        partitions_to_be_deleted=tuple(emptied),
        extra_metadata={**savepoints_seen(state), **_versions_kept(options)},
    )


def savepoints_seen(state: TableState) -> dict[str, str]:
    """Plan and result metadata with the savepoints that a clean of `state` spares."""
    return {SAVEPOINTED: ",".join(state.order.sorted(state.timeline.savepointed))} if state.timeline.savepointed else {}


def _versions_kept(options: CleanOptions) -> dict[str, str]:
    return {CLEAN_VERSIONS.key: str(options.versions_retained)} if options.policy == KEEP_LATEST_FILE_VERSIONS else {}


def _notes(kept: Retention, held: _Held) -> tuple[str, ...]:
    notes = [f"{count} {'file is' if count == 1 else 'files are'} {reason}" for reason, count in sorted(held.reasons.items())]
    if kept.held_by is not None:
        notes.append(f"what the pending {kept.held_by.action} {kept.held_by.requested_time} may read is kept")
    return tuple(notes)
