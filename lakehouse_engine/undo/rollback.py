"""Takes the newest write back on request.

 1. checks: nothing newer, no savepoint on it, and the table before it is still there with all its files
 2. `<instant>.rollback.requested`: the plan; from here on the rollback can be continued after a crash
 3. deletes the completed file of the write, so that it is no longer published
 4. the rest is `execute_rollback`

Plans of table services that are newer than the write may build on it; they are taken back before it, each by its own rollback.
"""

from __future__ import annotations

import logging

from lakehouse_engine.commit.concurrency.executors import executors_kept_out
from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.commit.rollback.execute import execute_rollback, files_to_delete, relative_paths
from lakehouse_engine.commit.rollback.plan import plan_rollback
from lakehouse_engine.commit.table_clock import claim, table_clock
from lakehouse_engine.errors import (
    CommitOutcomeUnknownError,
    InstantCleanedError,
    InstantNotFoundError,
    LakehouseError,
    RollbackError,
    RollbackUnfinishedError,
    StorageError,
    UnansweredError,
)
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.manifest.missing import lost_files
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.order import is_later, just_before
from lakehouse_engine.model.plans import HoodieRollbackMetadata, HoodieRollbackPlan
from lakehouse_engine.model.services import RollbackResult
from lakehouse_engine.model.write_stats import REWRITES
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.checkpoints import LiveCheckpoints
from lakehouse_engine.timeline.restores import WAS_PUBLISHED
from lakehouse_engine.view.plans import clustering_groups, may_cluster
from lakehouse_engine.view.protected import savepoint_metadata
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


def rollback(storage: Storage, *, instant: str | None = None, lock_timeout_ms: int, dry_run: bool = False) -> RollbackResult:
    """Take back the newest completed write (`instant` None or its time), or a planned, incomplete compaction or clustering.

    For an instant that was rolled back before, returns what that rollback did. A dry run says what would go, and changes nothing. Raises,
    with nothing changed, `RollbackError` if newer writes exist (restore the table instead), if a savepoint keeps the write, if it is the
    oldest that is not archived, or if a compaction to take back is running; `InstantNotFoundError` if there is no such write;
    `InstantCleanedError` if files of the table before it are gone. Raises `RollbackUnfinishedError` if the rollback has begun and the next
    change of the table must finish it, and `CommitOutcomeUnknownError` if an object store did not answer when the plan was written.
    """
    if dry_run:
        state = TableState.load(storage)
        return _would(state, _chosen(state, instant)[0])
    with locked_table(storage, lock_timeout_ms=lock_timeout_ms, alone_ms=lock_timeout_ms) as state:
        done = None if instant is None else _done(state, instant)
        if done is not None:
            return done
        target, services = _chosen(state, instant)
        with executors_kept_out(storage, [*services, target]):
            for service in services:
                _take_back(state, service)
                state = state.refresh()
            return _take_back(state, target)

def rows_written(state: TableState, instant: Instant) -> int:
    """Rows that a write inserted, updated or deleted; 0 if it is not completed, or only rewrote rows."""
    if not (instant.is_completed and instant.action.is_write):
        return 0
    return rows_of(state.commit_metadata(instant))


def rows_of(metadata: HoodieCommitMetadata) -> int:
    """Rows that a commit inserted, updated or deleted; 0 if it only rewrote rows."""
    if metadata.operation_type in REWRITES:
        return 0
    return sum(stat.num_inserts + stat.num_update_writes + stat.num_deletes for stat in metadata.write_stats())

def _changed_rows(state: TableState, instant: Instant) -> bool:
    """True if a reader may have read rows that go with this write; services change no rows."""
    return instant.is_completed and state.commit_metadata(instant).operation_type not in REWRITES

def is_service_plan(state: TableState, instant: Instant) -> bool:
    """True for a pending compaction or clustering, which waits to be run; False for a write."""
    if instant.is_completed:
        return False
    if instant.action in (Action.COMPACTION, Action.LOG_COMPACTION):
        return True
    return may_cluster(instant) and bool(clustering_groups(state, instant))

def _chosen(state: TableState, instant_time: str | None) -> tuple[Instant, list[Instant]]:
    """The instant to take back, and the plans of services (newest first) to take back before it."""
    target = _target(state, instant_time)
    savepoint = savepoint_metadata(state).get(target.requested_time)
    if savepoint is not None:
        called = f" {savepoint.name!r}" if savepoint.name else ""
        raise _refused(state, target, f"the savepoint{called} of {target.requested_time} keeps this write; delete the savepoint first")
    newer = [write.requested_time for write in state.timeline.writes().completed().newer_than(target.requested_time)]
    if newer and (target.is_completed or target.action is Action.COMPACTION):
        raise _refused(
            state, target, f"newer writes exist ({', '.join(reversed(newer))}); roll those back first, or restore the table to before it"
        )
    if not target.is_completed:
        return target, []
    shown = state.order.moment(target.requested_time)
    later = [one for one in state.timeline.writes().pending() if is_later(one.requested_time, shown)]
    services = [one for one in reversed(later) if is_service_plan(state, one)]
    _check_before(state, target)
    return target, services

def _target(state: TableState, instant_time: str | None) -> Instant:
    writes = state.timeline.writes()
    if instant_time is None:
        last = writes.completed().last()
        if last is None:
            raise RollbackError("the table has no completed write to roll back", table=state.config.name)
        return last
    found = writes.find(instant_time)
    if found is None:
        raise InstantNotFoundError(
            f"{instant_time} is no write on the active timeline of the table", instant=instant_time, table=state.config.name
        )
    return found

def _check_before(state: TableState, target: Instant) -> None:
    """Check that the table before the write is complete: files that a clean deleted because of the write do not come back."""
    time = target.requested_time
    if state.proven_since == time:
        raise _refused(state, target, "the writes before it are archived, so it cannot be told whether the table before it is whole")
    before = just_before(state.order.moment(time))
    lost = lost_files(state.manifest, before, state.view.slices_as_of(before), logs=True)
    if lost:
        raise InstantCleanedError(
            f"{time} cannot be rolled back: {lost[0]} is gone, which the table before it needs; a clean relied on this write",
            instant=time,
            table=state.config.name,
        )

def _refused(state: TableState, target: Instant, reason: str) -> RollbackError:
    return RollbackError(f"{target.requested_time} cannot be rolled back: {reason}", instant=target.requested_time, table=state.config.name)

def _take_back(state: TableState, target: Instant) -> RollbackResult:
    would = _would(state, target)
    plan = plan_rollback(state, target)
    timeline = state.active
    clock = table_clock(state)
    time = clock.next(state.timeline)
    logger.info("rolling %s of %s back at %s", target, state.config.name, time)
    requested = Instant(time, Action.ROLLBACK, State.REQUESTED)
    try:
        claim(state, clock, requested, encode_plan(plan, note=WAS_PUBLISHED if _changed_rows(state, target) else None))
        # A checkpoint of an archiving that died may count the write.
        LiveCheckpoints(state.storage).forget_from(target.requested_time)
        timeline.delete(target.at(State.COMPLETED))
        metadata = execute_rollback(state, timeline.to_inflight(requested), plan)
    except (StorageError, CommitOutcomeUnknownError) as error:
        if timeline.load().contains(time):
            raise _unfinished(state, target, time, error) from error
        if isinstance(error, UnansweredError):
            raise timeline.unknown(requested) from error
        raise
    return _result(metadata, time, str(target.action), would.rows_taken_back, would.bytes_deleted)

def _unfinished(state: TableState, target: Instant, time: str, error: LakehouseError) -> RollbackUnfinishedError:
    return RollbackUnfinishedError(
        f"the rollback of {target.requested_time} has begun, and is not finished: the next change of the table finishes it, and so does"
        f" `repair`, once this is seen to: {error.message}",
        **{**error.context, "instant": target.requested_time, "rollback": time, "table": state.config.name},
    )

def _would(state: TableState, target: Instant) -> RollbackResult:
    plan: HoodieRollbackPlan = plan_rollback(state, target)
    entries = [(path, state.storage.head(path)) for path in files_to_delete(plan)]
    return RollbackResult(
        instant=None,
        rolled_back=target.requested_time,
        action=str(target.action),
        files_deleted=tuple(path for path, entry in entries if entry is not None),
        bytes_deleted=sum(entry.size for _, entry in entries if entry is not None),
        rows_taken_back=rows_written(state, target),
        dry_run=True,
    )

def _done(state: TableState, instant_time: str) -> RollbackResult | None:
    """Result of a completed rollback of that instant, including one just resumed; None if there is none, or the instant is still there."""
    if state.timeline.writes().contains(instant_time):
        return None
    timeline = state.active
    for done in reversed(state.timeline.completed().instants):
        if done.action is Action.ROLLBACK:
            metadata = timeline.plan(HoodieRollbackMetadata, done)
            if instant_time in metadata.commits_rollback:
                action = metadata.instants_rollback[0].action if metadata.instants_rollback else ""
                return _result(metadata, done.requested_time, action, 0, 0)
    return None

def _result(metadata: HoodieRollbackMetadata, time: str, action: str, rows: int, size: int) -> RollbackResult:
    deleted, blocks = relative_paths(metadata)
    return RollbackResult(
        instant=time,
        rolled_back=metadata.commits_rollback[0],
        action=action,
        files_deleted=deleted,
        rollback_blocks=blocks,
        bytes_deleted=size,
        rows_taken_back=rows,
    )
