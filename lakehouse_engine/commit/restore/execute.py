"""Carry a restore out: the same steps whether it is new or resumed after a crash, each of which may have happened already.

 1. move the restore to inflight
 2. delete savepoints of later writes (the plan was only made because that was asked for)
 3. un-publish later writes, newest first: readers that do not know of the restore see one earlier state after the other; participants
    let go of them
    then put the commit of the target back, if it was archived
 4. delete files of later writes, and write rollback blocks where log files stay
 5. delete what is pending of later writes (before 4 where commits are archived, or those would count as committed until then)
 6. delete later rollbacks, cleans that are only planned, markers, heartbeats and checkpoints: all are about what is gone
    a clean that had begun ends with what it deleted; to go on with it would take files that are needed again (Hudi does not look)
 7. where only savepointed writes are left of an archived history: complete an empty write, that the archived ones count as before
 8. write a checkpoint of what archived writes left, if there was one
 9. complete the restore
10. delete log files without a whole block, which nothing names now; what this leaves the next write there deletes

For this engine's readers the table is restored from the moment on at which the plan is written (see `TableState`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence

from lakehouse_engine.commit.begun_cleans import begun_outcome
from lakehouse_engine.commit.checkpoint import renew_checkpoint
from lakehouse_engine.commit.completing import complete
from lakehouse_engine.commit.concurrency.attempts import opened_instant
from lakehouse_engine.commit.deletion import clear_strays, delete_files_after
from lakehouse_engine.commit.participants import take_back_all
from lakehouse_engine.commit.restore.files import Blocking, PartitionChanges, find_changes
from lakehouse_engine.commit.rollback.blocks import write_rollback_blocks
from lakehouse_engine.commit.rollback.execute import hadoop_path, partition_metadata
from lakehouse_engine.commit.rollback.intruders import remove_intruders
from lakehouse_engine.commit.table_clock import check_clock, table_clock
from lakehouse_engine.errors import (
    InstantNotFoundError,
    LakehouseError,
    MetadataError,
    RestoreError,
    RestoreUnfinishedError,
    StorageError,
    UnansweredError,
)
from lakehouse_engine.format.file_names import TEMP_FOLDER
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.commit_metadata import SCHEMA_KEY, HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.order import is_later, just_after
from lakehouse_engine.model.plans import (
    HoodieInstantInfo,
    HoodieRestoreMetadata,
    HoodieRestorePlan,
    HoodieRollbackMetadata,
    HoodieRollbackPartitionMetadata,
)
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.storage.paths import parent_of
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.checkpoints import LiveCheckpoints
from lakehouse_engine.timeline.heartbeats import HEARTBEATS
from lakehouse_engine.timeline.kept import KeptCommits
from lakehouse_engine.timeline.restores import came_late, restore_plan, took_rows
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.view.protected import protected_files
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

RESTORED_KEY = "lakehouse.restored.to"
"""Extra metadata of the empty write of step 7: the instant that the table was restored to."""


def resume_restore(state: TableState, instant: Instant) -> TableState:
    """Finish a restore whose process died; returns the state after that. The table lock is held.

    A restore without a whole plan (Hudi does not write it in one step) has not begun, and is dropped; so is one that arrived late. Raises
    `RestoreError` if the plan does not say which instant to go back to.
    """
    timeline = state.active
    if came_late(state.storage, state.timeline, instant):
        logger.warning("the plan of %s of %s came when nobody waited for it any more; it is dropped", instant, state.config.name)
        timeline.delete_pending(instant)
        return state.refresh()
    try:
        plan = restore_plan(timeline, instant)
    except MetadataError as error:
        if instant.state is State.INFLIGHT:
            raise
        logger.warning("the plan of %s of %s is torn (%s); it is dropped", instant, state.config.name, error)
        timeline.delete_pending(instant)
        return state.refresh()
    logger.warning("finishing %s of %s: its process died", instant, state.config.name)
    carry_out(state, instant, plan)
    return state.refresh()


def begin_restore(state: TableState, plan: HoodieRestorePlan) -> str:
    """Put a checked plan on the timeline and run it; returns the restore's instant time. The table lock is held.

    Raises `RestoreUnfinishedError` for failures after which readers see the restored table, and `CommitOutcomeUnknownError` if an object
    store did not answer for the plan.
    """
    check_clock(state)
    timeline = state.active
    time = table_clock(state).next(state.timeline)
    requested = Instant(time, Action.RESTORE, State.REQUESTED)
    try:
        timeline.create_requested(requested, encode_plan(plan))
    except StorageError as error:
        if timeline.load().contains(time):
            raise _unfinished(state, requested, plan, error) from error
        if isinstance(error, UnansweredError):
            raise timeline.unknown(requested) from error
        raise
    carry_out(state, requested, plan)
    return time


def carry_out(state: TableState, restore: Instant, plan: HoodieRestorePlan) -> None:
    """Like `execute_restore`. Raises `RestoreUnfinishedError` if it cannot continue: readers see the restored table."""
    try:
        execute_restore(state, restore, plan)
    except RestoreError:
        raise
    except Exception as error:
        raise _unfinished(state, restore, plan, error) from error
    except BaseException:
        logger.warning("%s of %s has begun, and is finished by the next change of the table", restore, state.config.name)
        raise


def _unfinished(state: TableState, restore: Instant, plan: HoodieRestorePlan, error: Exception) -> RestoreUnfinishedError:
    target = plan.savepoint_to_restore_timestamp
    context = error.context if isinstance(error, LakehouseError) else {}
    return RestoreUnfinishedError(
        f"the restore to {target} has begun, and the table shows as of then already, but it is not finished: the next change of the table"
        f" finishes it, and so does `repair`, once this is seen to: {error.message if isinstance(error, LakehouseError) else repr(error)}",
        **{**context, "restore": restore.requested_time, "target": target, "table": state.config.name},
    )


def execute_restore(state: TableState, restore: Instant, plan: HoodieRestorePlan) -> HoodieRestoreMetadata:
    """Run `plan` under the pending instant `restore`. The table lock is held."""
    target = plan.savepoint_to_restore_timestamp
    if target is None:
        raise RestoreError(
            "the plan of this restore does not name the instant to go back to; finish it with the Hudi release that began it",
            instant=restore,
            table=state.config.name,
        )
    began = time.monotonic()
    timeline = state.active
    # Repeats the plan: if the requested file is lost or damaged, nothing else says what to go back to.
    inflight = restore if restore.state is State.INFLIGHT else timeline.to_inflight(restore, encode_plan(plan))
    work = _Restore(state, timeline, restore.requested_time, target)
    work.unpublish(plan)
    KeptCommits(state.storage, state.format).put_back(target)
    changes = find_changes(state.storage, state.view.partitions(), state.order, target, protected_files(state.refresh()))
    if state.has_archive:
        work.remove_pending()
    blocks = work.remove_files(changes)
    work.remove_pending()
    work.remove_traces()
    work.keep_archived_committed(changes)
    work.renew_checkpoint()
    metadata = HoodieRestoreMetadata(
        start_restore_time=restore.requested_time,
        time_taken_in_millis=int((time.monotonic() - began) * 1000),
        instants_to_rollback=tuple(info.commit_time for info in plan.instants_to_rollback),
        hoodie_restore_metadata=_by_instant(state, restore.requested_time, plan.instants_to_rollback, changes, blocks),
        restore_instant_info=plan.instants_to_rollback,
    )
    complete(state, inflight, metadata)
    torn = [change.partition_path for change in changes if change.torn]
    if torn:
        clear_strays(state, torn, anew=True)
    return metadata


class _Restore:
    """Steps of one restore. Each reads the current timeline, because an earlier run may have done any part."""

    def __init__(self, state: TableState, timeline: ActiveTimeline, time: str, target: str) -> None:
        self._state, self._timeline, self._time, self._target = state, timeline, time, target

    def _later(self) -> Timeline:
        """Instants between the target and the restore, newest last. The empty write of step 7 comes after the restore."""
        later = self._timeline.load().newer_than(self._target)
        return later.filter(lambda instant: is_later(self._time, instant.requested_time))

    def unpublish(self, plan: HoodieRestorePlan) -> None:
        newest_first = list(reversed(self._later().instants))
        for instant in newest_first:
            if instant.action is Action.SAVEPOINT:
                self._timeline.delete_savepoint(instant.requested_time)
        self._timeline.delete_all(instant for instant in newest_first if instant.action.is_write and instant.is_completed)
        planned = (info.commit_time for info in plan.instants_to_rollback)
        times = {*planned, *(instant.requested_time for instant in newest_first if instant.action.is_write)}
        take_back_all(self._state, self._state.order.sorted(times, newest_first=True))

    def remove_pending(self) -> None:
        for instant in reversed(self._later().writes().instants):
            self._timeline.delete_all(_pending_states(instant))

    def remove_files(self, changes: Sequence[PartitionChanges]) -> dict[str, int]:
        """Path and size of the files with rollback blocks. These are written first, so that no block shows again when only its file is
        left.
        """
        storage = self._state.storage
        blocks = dict(
            write_rollback_blocks(storage, blocking.group, blocking.base_instant, self._time, blocking.targets)
            for change in changes
            for blocking in change.blockings
        )
        delete_files_after(storage, self._state.order, self._target, [removal.path for change in changes for removal in change.removals])
        remove_intruders(storage, [parent_of(removal.path) for change in changes for removal in change.removals], self._is_later)
        return blocks

    def remove_traces(self) -> None:
        for instant in reversed(self._later().instants):
            is_spent = instant.action is Action.ROLLBACK and not self._tells(instant)
            is_planned = instant.action is Action.CLEAN and not instant.is_completed and not self._end_begun(instant)
            if is_spent or is_planned:
                self._timeline.delete_all([*_pending_states(instant), instant.at(State.COMPLETED)])
        storage = self._state.storage
        # Readers skip later ones as soon as the restore is on the timeline.
        LiveCheckpoints(storage).forget_from(just_after(self._target))
        for entry in storage.list(TEMP_FOLDER):
            if entry.is_directory and self._is_later(entry.name):
                storage.delete_tree(entry.path)
            elif not entry.is_directory and self._is_later(opened_instant(entry.name) or ""):
                storage.delete(entry.path)
        for entry in storage.list(HEARTBEATS):
            if self._is_later(entry.name):
                storage.delete(entry.path)

    def _tells(self, rollback: Instant) -> bool:
        """Whether readers of rows that a rollback took are told so, as before. A damaged rollback does not stop the restore: it stays, and
        keeps reporting that it does not know.
        """
        try:
            return rollback.is_completed and took_rows(self._timeline, rollback)
        except MetadataError:
            return True

    def _end_begun(self, clean: Instant) -> bool:
        """Complete an interrupted clean; returns whether there was one, and no pending one to drop."""
        if clean.state is not State.INFLIGHT:
            return False
        try:
            complete(self._state, clean, begun_outcome(self._state.storage, self._timeline, clean))
        except (InstantNotFoundError, MetadataError) as error:
            logger.warning("the plan of %s of %s is damaged (%s); it is dropped", clean, self._state.config.name, error)
            return False
        return True

    def _is_later(self, name: str) -> bool:
        return name.isdigit() and self._state.order.is_after(name, self._target) and is_later(self._time, name)

    def keep_archived_committed(self, changes: Iterable[PartitionChanges]) -> None:
        """Readers count an instant as archived if it is before the first write without a savepoint, so there must be one."""
        timeline = self._timeline.load()
        begun = timeline.writes().filter(lambda write: is_later(write.requested_time, self._time)).first()
        if begun is None:
            before = timeline.writes().up_to(timeline.order.moment(self._target))
            kept = {instant for change in changes for instant in change.kept_instants}
            archived = kept - {instant.requested_time for instant in before}
            if not archived or any(instant.requested_time not in timeline.savepointed for instant in before):
                return
            merge_on_read = self._state.config.table_type is TableType.MERGE_ON_READ
            action = Action.DELTA_COMMIT if merge_on_read else Action.COMMIT
            time = table_clock(self._state).next(timeline)
            begun = self._timeline.create_requested(Instant(time, action, State.REQUESTED))
        if begun.state is State.REQUESTED:
            begun = self._timeline.to_inflight(begun)
        if begun.state is State.INFLIGHT:
            complete(self._state, begun, self._empty_write(timeline))

    def renew_checkpoint(self) -> None:
        """Renew the checkpoint, so that readers need not search the archive; it does not change what they see."""
        state = self._state.refresh()
        if state.archived_files().is_known:
            renew_checkpoint(state)

    def _empty_write(self, timeline: Timeline) -> HoodieCommitMetadata:
        target = next(instant for instant in timeline.completed().writes() if instant.requested_time == self._target)
        schema = self._state.commit_metadata(target).schema_json
        return HoodieCommitMetadata(
            operation_type=WriteOperationType.UNKNOWN,
            extra_metadata={**({SCHEMA_KEY: schema} if schema else {}), RESTORED_KEY: self._target},
        )


def _pending_states(instant: Instant) -> list[Instant]:
    """Inflight and requested files that an instant can have; a completed one may have been a compaction."""
    actions = [action for action in Action if action.completes_as is instant.action.completes_as and action is not Action.SAVEPOINT]
    return [Instant(instant.requested_time, action, state) for state in (State.INFLIGHT, State.REQUESTED) for action in actions]


def _by_instant(
    state: TableState,
    restore_time: str,
    infos: Iterable[HoodieInstantInfo],
    changes: Sequence[PartitionChanges],
    blocks: dict[str, int],
) -> dict[str, tuple[HoodieRollbackMetadata | None, ...]]:
    """Record in Hudi's form: one rollback per instant. Files of instants on no timeline are listed under their own."""
    actions = {info.commit_time: info.action for info in infos}
    removed = {removal.instant_time for change in changes for removal in change.removals}
    default = str(Action.DELTA_COMMIT if state.config.table_type is TableType.MERGE_ON_READ else Action.COMMIT)
    times = state.order.sorted(actions.keys() | removed, newest_first=True)
    return {time: (_rollback_of(state, restore_time, time, actions.get(time, default), changes, blocks),) for time in times}


def _rollback_of(
    state: TableState, restore_time: str, time: str, action: str, changes: Sequence[PartitionChanges], blocks: dict[str, int]
) -> HoodieRollbackMetadata:
    parts = {
        change.partition_path: part for change in changes if (part := _partition_of(state, time, change, blocks)) is not None
    }
    return HoodieRollbackMetadata(
        start_rollback_time=restore_time,
        time_taken_in_millis=0,
        total_files_deleted=sum(len(part.success_delete_files) for part in parts.values()),
        commits_rollback=(time,),
        partition_metadata=parts,
        instants_rollback=(HoodieInstantInfo(commit_time=time, action=action),),
    )


def _partition_of(
    state: TableState, time: str, change: PartitionChanges, blocks: dict[str, int]
) -> HoodieRollbackPartitionMetadata | None:
    deleted = [removal.path for removal in change.removals if removal.instant_time == time]
    blocked = [blocking for blocking in change.blockings if time in blocking.targets]
    if not deleted and not blocked:
        return None
    logged = {hadoop_path(state.storage, path): size for blocking in blocked for path, size in blocking.logs}
    return partition_metadata(state.storage, change.partition_path, deleted, _files_of(blocked, blocks), logged)


def _files_of(blocked: Sequence[Blocking], blocks: dict[str, int]) -> dict[str, int]:
    prefixes = [f".{blocking.group.file_id}_{blocking.base_instant}.log." for blocking in blocked]
    partitions = {blocking.group.partition_path for blocking in blocked}
    return {
        path: size
        for path, size in blocks.items()
        if path.rpartition("/")[0] in partitions and path.rpartition("/")[2].startswith(tuple(prefixes))
    }
