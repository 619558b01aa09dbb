"""`clean`: deletes file versions that no query within the retention reads."""

from __future__ import annotations

import logging

from lakehouse_engine.commit.concurrency.foreign import left_by_hudi
from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.commit.table_clock import claim, table_clock, wall_time
from lakehouse_engine.errors import MetadataError, StorageError
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.services import CleanResult
from lakehouse_engine.options import CleanOptions
from lakehouse_engine.services.clean.execute import ExecutedClean, execute_clean, resume_clean
from lakehouse_engine.services.clean.plan import PlannedClean, plan_clean
from lakehouse_engine.services.clean.policies import retention
from lakehouse_engine.services.clean.scope import scope_of
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.os_errors import is_full
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.locks.settings import lock_options
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


def clean(storage: Storage, options: CleanOptions, *, lock_timeout_ms: int, dry_run: bool = False) -> CleanResult:
    """Delete what `options` do not keep. Finishes a clean whose process died first. `dry_run` changes nothing.

    Whatever the options, it keeps the newest slice of every group, what savepoints pin, and what pending writes and table services may
    read. Raises `LockTimeoutError`, `TableNotFoundError`, `CorruptInstantError`.
    """
    if dry_run:
        state = TableState.load(storage)
        planned = plan_clean(state, options, wall_time(state))
        return _result(state, options, planned, None, [], dry_run=True)
    with locked_table(storage, lock_timeout_ms=lock_timeout_ms) as state:
        resumed = finish_cleans(state)
        if resumed:
            state = state.refresh()
        planned = plan_clean(state, options, wall_time(state))
        done = _execute(state, planned)
        return _result(state, options, planned, done, resumed, dry_run=False)


def clean_is_due(state: TableState, options: CleanOptions) -> bool:
    """True if a write should clean when it is done: enough commits passed for the options, and there is something to look at.

    Reads commits since the last clean, and lists nothing.
    """
    cleans = [instant for instant in state.timeline if instant.action is Action.CLEAN]
    if any(not instant.is_completed for instant in cleans):
        return True
    writes = state.timeline.completed().writes()
    since = writes.newer_than(cleans[-1].requested_time) if cleans else writes
    if len(since) < options.max_commits:
        return False
    kept = retention(state.timeline, options, wall_time(state))
    return kept.policy is not None and bool(scope_of(state, options, kept).touched)


def finish_cleans(state: TableState) -> list[ExecutedClean]:
    """Carry out cleans whose process died. The table lock is held."""
    done = []
    for pending in state.timeline.pending():
        if pending.action is Action.CLEAN and left_by_hudi(state, pending, lock_options(state.config)) is None:
            try:
                done.append(resume_clean(state, pending))
            except MetadataError as error:
                # What it deleted is gone, and the next clean finds the rest.
                logger.warning("the plan of %s of %s is damaged (%s); it is dropped", pending, state.config.name, error)
                state.active.delete_pending(pending)
    return done


def _execute(state: TableState, planned: PlannedClean) -> ExecutedClean | None:
    if planned.plan is None:
        return None
    clock, properties = table_clock(state), ConfigStore(state.storage)
    requested, content = Instant(clock.next(state.timeline), Action.CLEAN, State.REQUESTED), encode_plan(planned.plan)
    try:
        claim(state, clock, requested, content)
    except StorageError as error:
        # Making room must not need any: until files are deleted, the block of the properties' copy is used.
        if not (is_full(error) and properties.drop_copy()):
            raise
        try:
            claim(state, clock, requested, content)
            return execute_clean(state, requested, planned.plan)
        finally:
            properties.keep_copy()
    return execute_clean(state, requested, planned.plan)


def _result(
    state: TableState,
    options: CleanOptions,
    planned: PlannedClean,
    done: ExecutedClean | None,
    resumed: list[ExecutedClean],
    *,
    dry_run: bool,
) -> CleanResult:
    last = done or (resumed[-1] if resumed else None)
    named = [path for other in resumed for path in other.deleted] + [file.path for file in planned.files]
    earliest = planned.retention.earliest
    return CleanResult(
        instant=last.instant.requested_time if last else None,
        policy=options.policy,
        earliest_retained=earliest.requested_time if earliest else None,
        files_deleted=tuple(named),
        partitions=len({path.rpartition("/")[0] for path in named}),
        bytes_deleted=sum(file.size for file in planned.files),
        kept=planned.kept + tuple(note for other in resumed for note in other.kept),
        dry_run=dry_run,
    )
