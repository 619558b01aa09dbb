"""Plans a restore, with every check made before anything is changed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lakehouse_engine.commit.restore.execute import RESTORED_KEY
from lakehouse_engine.commit.restore.files import PartitionChanges, find_changes
from lakehouse_engine.errors import (
    CorruptInstantError,
    InstantCleanedError,
    InstantNotFoundError,
    MetadataError,
    MissingFileError,
    OptionError,
    RestoreError,
)
from lakehouse_engine.manifest.missing import lost_files
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.order import is_later
from lakehouse_engine.model.plans import HoodieInstantInfo, HoodieRestorePlan
from lakehouse_engine.model.savepoint import DamagedSavepoint, HoodieSavepointMetadata
from lakehouse_engine.model.services import RestoreResult
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.read.complete_slices import check_complete, complete_slices
from lakehouse_engine.timeline.kept import KeptCommits
from lakehouse_engine.timeline.restores import restores
from lakehouse_engine.undo.rollback import rows_of
from lakehouse_engine.undo.savepoint import find_savepoint
from lakehouse_engine.view.lost_commits import check_no_commit_is_lost, lost_commits
from lakehouse_engine.view.protected import pinned_paths, protected_files, savepoint_metadata
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Restoration:
    """A restore that passed its checks. `instants` are those to take back, newest first, including archived ones."""

    target: str
    savepoint: str | None
    instants: tuple[Instant, ...]
    later_savepoints: tuple[str, ...]
    changes: tuple[PartitionChanges, ...]
    rows: int

    @property
    def is_needed(self) -> bool:
        return bool(self.instants or self.later_savepoints or any(change.removals or change.blockings for change in self.changes))

    def plan(self) -> HoodieRestorePlan:
        infos = tuple(HoodieInstantInfo(commit_time=instant.requested_time, action=str(instant.action)) for instant in self.instants)
        return HoodieRestorePlan(instants_to_rollback=infos, savepoint_to_restore_timestamp=self.target)

    def result(self, instant_time: str | None, *, dry_run: bool) -> RestoreResult:
        removals = [removal for change in self.changes for removal in change.removals]
        return RestoreResult(
            instant=instant_time,
            restored_to=self.target,
            savepoint=self.savepoint,
            rolled_back=tuple(instant.requested_time for instant in self.instants),
            savepoints_deleted=self.later_savepoints,
            files_deleted=tuple(removal.path for removal in removals),
            bytes_deleted=sum(removal.size for removal in removals),
            rows_taken_back=self.rows,
            dry_run=dry_run,
        )


def plan_restore(state: TableState, savepoint: str | None, to: str | None, *, cascade: bool) -> Restoration:
    """Check a restore to a savepoint (by name or instant, or "latest"), or to a completed write `to`; raises as `restore`."""
    known = savepoint_metadata(state)
    target, name = _target(state, known, savepoint, to)
    check_no_commit_is_lost(state, lost_commits(state), until=state.order.moment(target))
    later = tuple(state.order.sorted((time for time in known if state.order.is_after(time, target)), newest_first=True))
    if later and not cascade:
        raise _blocked(state, target, {time: known[time] for time in later})
    pinned = protected_files(state, up_to=target, known=known)
    changes = tuple(find_changes(state.storage, state.view.partitions(), state.order, target, pinned))
    if target in known and not isinstance(known[target], DamagedSavepoint):
        _check_pinned(state, target, known[target], changes)
    else:
        _check_complete(state, target)
    instants = tuple(_later_writes(state, target, {removal.instant_time for change in changes for removal in change.removals}))
    return Restoration(target, name, instants, later, changes, sum(_rows(state, instant) for instant in instants))


def _check_complete(state: TableState, target: str) -> None:
    """Raise as `complete_slices` unless every file of the table as of `target` is there.

    A write that will be taken back may be damaged. If it is known what archived writes left, those and the writes up to the target alone
    determine which files must be there.
    """
    try:
        complete_slices(state, state.order.moment(target))
    except MetadataError:
        if not state.archived_files().is_known:
            raise
        before = state.up_to(state.order.moment(target))
        lost = lost_files(before.manifest, None, before.view.latest_slices(), logs=True)
        if lost:
            raise MissingFileError(
                f"the data file {lost[0].path!r} is gone, which the table as of {target} needs", path=lost[0].path, table=state.config.name
            ) from None
        check_complete(before)


def _target(
    state: TableState, known: Mapping[str, HoodieSavepointMetadata], savepoint: str | None, to: str | None
) -> tuple[str, str | None]:
    """Instant to go back to, and the name of its savepoint (the instant if it has no name); None without a savepoint."""
    if (savepoint is None) == (to is None):
        raise OptionError("a restore goes to a savepoint or to an instant: give one of savepoint= and to=", table=state.config.name)
    if savepoint is not None:
        found = find_savepoint(state, savepoint, known)
        damaged = known[found.instant]
        if isinstance(damaged, DamagedSavepoint):
            raise RestoreError(
                f"the savepoint of {found.instant} is damaged and does not say what it keeps: `repair` makes it anew where that can be"
                f" proven; without it, restore to the instant ({damaged.comments})",
                instant=found.instant,
                table=state.config.name,
            )
        _check_commit_is_there(state, found.instant)
        return found.instant, found.name or found.instant
    assert to is not None
    if to not in state.timeline.savepointed or isinstance(known[to], DamagedSavepoint):
        _check_reachable(state, to)
        return to, None
    _check_commit_is_there(state, to)
    return to, known[to].name or to


def _check_commit_is_there(state: TableState, instant_time: str) -> None:
    is_kept = KeptCommits(state.storage, state.format).metadata(instant_time) is not None
    if not is_kept and not state.timeline.completed().writes().contains(instant_time):
        raise RestoreError(
            "the savepoint's own commit is neither on the timeline nor kept aside: another program archived or removed it; `repair` takes"
            " it from the archive, if that has it",
            instant=instant_time,
            table=state.config.name,
        )


def _check_reachable(state: TableState, to: str) -> None:
    first = state.proven_since
    if state.timeline.completed().writes().contains(to) and not is_later(first, to):
        return
    if is_later(first, to):
        raise InstantCleanedError(
            f"the table cannot be restored to {to}: what was written before {first} is archived, and no savepoint keeps its files",
            table=state.config.name,
            instant=to,
            earliest=first,
        )
    raise InstantNotFoundError(f"{to} is no completed write on the timeline of the table", table=state.config.name, instant=to)


def _blocked(state: TableState, target: str, later: dict[str, HoodieSavepointMetadata]) -> RestoreError:
    named = ", ".join(f"{metadata.name} ({time})" if metadata.name else time for time, metadata in later.items())
    return RestoreError(
        f"later savepoints would be lost: {named}; delete them first, or restore with cascade to have them deleted",
        instant=target,
        table=state.config.name,
    )


def _check_pinned(state: TableState, target: str, metadata: HoodieSavepointMetadata, changes: Iterable[PartitionChanges]) -> None:
    there = {path for change in changes for path in change.kept}
    for path in sorted(pinned_paths(state, target, metadata)):
        if path not in there:
            raise MissingFileError(
                f"the data file {path!r} is gone, which the savepoint should have kept; restore the file from a backup first",
                path=path,
                table=state.config.name,
            )


def _later_writes(state: TableState, target: str, writers: Iterable[str]) -> Iterator[Instant]:
    """Writes after the target, newest first: those on the active timeline in any state, and archived ones that count.

    `writers`: instants of the files to remove. If archive files are damaged, only these show some of the writes.
    """
    found = {instant.requested_time: instant for instant in state.timeline.writes().newer_than(target)}
    if state.timeline.is_before_start(target):
        gone = _taken_back(state)
        archive = state.archived_timeline
        if archive.damaged():
            action = Action.DELTA_COMMIT if state.config.table_type is TableType.MERGE_ON_READ else Action.COMMIT
            found |= {time: Instant(time, action, State.COMPLETED) for time in writers if time not in found}
        for instant in archive.readable_instants():
            if instant.action.is_write and state.order.is_after(instant.requested_time, target) and instant.requested_time not in gone:
                found.setdefault(instant.requested_time, instant)
    if len(found) == 1 and all(_only_marks(state, instant, target) for instant in found.values()):
        return
    yield from (found[time] for time in state.order.sorted(found, newest_first=True))


def _taken_back(state: TableState) -> frozenset[str]:
    """Instants that earlier restores took back: these stay in the archive."""
    records = restores(state.active, state.timeline)
    return frozenset(time for record in records for time in record.rolled_back)


def _only_marks(state: TableState, instant: Instant, target: str) -> bool:
    """True for the empty write with which an earlier restore to the same instant ended."""
    metadata = _metadata(state, instant)
    return metadata is not None and metadata.extra_metadata.get(RESTORED_KEY) == target


def _rows(state: TableState, instant: Instant) -> int:
    metadata = _metadata(state, instant)
    return 0 if metadata is None else rows_of(metadata)


def _metadata(state: TableState, instant: Instant) -> HoodieCommitMetadata | None:
    """Commit metadata; None for an instant that is not completed or is archived, and for a damaged one, which is taken back as it is."""
    if not instant.is_completed or instant not in state.timeline.instants:
        return None
    try:
        return state.commit_metadata(instant)
    except CorruptInstantError as error:
        logger.warning("%s of %s does not parse, and is taken back: %s", instant, state.config.name, error)
        return None


