"""Put a compaction on the timeline. From then on new logs of its file groups belong to the slices that it will make."""

from __future__ import annotations

import logging

from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.commit.table_clock import claim, table_clock
from lakehouse_engine.errors import CompactionError, StoredFileExistsError, TimelineError
from lakehouse_engine.format.timeline.plans_codec import encode_plan
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieCompactionPlan
from lakehouse_engine.model.services import CompactionResult
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.options import CompactionOptions
from lakehouse_engine.read.complete_slices import check_complete
from lakehouse_engine.read.scan import check_readable
from lakehouse_engine.services.compact.log_plan import plan_log_compaction
from lakehouse_engine.services.compact.plan import check_has_logs, plan_compaction
from lakehouse_engine.services.compact.triggers import is_due
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.view.plans import clustering_groups
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

_ATTEMPTS = 10
NOTHING, PLANNED = "none", "planned"
"""`CompactionResult.state` where nothing was to be done, and of a dry run; else it is the instant's state."""


def schedule(
    storage: Storage,
    options: CompactionOptions,
    *,
    lock_timeout_ms: int,
    dry_run: bool = False,
    log_compaction: bool = False,
    when_due: bool = False,
) -> CompactionResult:
    """Plan a compaction under the table lock, at an instant after every write; `instant` None where there is nothing to do.

    `when_due` asks the trigger first; otherwise a compaction is planned whenever a slice has logs. Raises `CompactionError` for a
    copy-on-write table and while an older write is pending, `MissingFileError` where files of the table are lost.
    """
    if dry_run:
        state = TableState.load(storage)
        return result_of(_plan(state, options, log_compaction, when_due), None, log_compaction, PLANNED, dry_run=True)
    # Beside Hudi's writers an automatic one does not wait: the next write tries again.
    patience = 0 if when_due else lock_timeout_ms
    with locked_table(storage, lock_timeout_ms=lock_timeout_ms, alone_ms=patience) as state:
        plan = _plan(state, options, log_compaction, when_due)
        if plan is None:
            return result_of(None, None, log_compaction, NOTHING)
        instant = request(state, Action.LOG_COMPACTION if log_compaction else Action.COMPACTION, plan)
        logger.info("scheduled %s of %s: %d slices", instant, state.config.name, len(plan.operations or ()))
        return result_of(plan, instant.requested_time, log_compaction, str(instant.state))


def result_of(
    plan: HoodieCompactionPlan | None, time: str | None, log_compaction: bool, state: str, *, dry_run: bool = False
) -> CompactionResult:
    """What there is to say of a plan that has not been run."""
    return CompactionResult(
        instant=time,
        operation=str(WriteOperationType.LOG_COMPACT if log_compaction else WriteOperationType.COMPACT),
        state=state if plan else NOTHING,
        operations=(plan.operations or ()) if plan else (),
        dry_run=dry_run,
    )


def _plan(state: TableState, options: CompactionOptions, log_compaction: bool, when_due: bool) -> HoodieCompactionPlan | None:
    check_has_logs(state)
    if log_compaction:
        check_readable(state)
        return plan_log_compaction(state, options)
    if when_due and not is_due(state, options):
        return None
    check_readable(state)
    plan = plan_compaction(state, options)
    if plan is not None:
        check_complete(state)
    return plan


def request(state: TableState, action: Action, plan: HoodieCompactionPlan) -> Instant:
    """The plan on the timeline, at a new time. Raises `CompactionError` while an older write is pending, and `TimelineError`."""
    timeline, clock = ActiveTimeline(state.storage, state.layout), table_clock(state)
    content = encode_plan(plan)
    for _ in range(_ATTEMPTS):
        current = timeline.load()
        requested = Instant(clock.next(current), action, State.REQUESTED)
        check_no_older_write(state.refresh())
        try:
            return claim(state, clock, requested, content)
        except StoredFileExistsError:
            logger.info("instant %s is taken by another writer; trying the next", requested)
    raise TimelineError(f"no free instant time in {_ATTEMPTS} tries: too many writers without the table lock", table=state.config.name)


def check_no_older_write(state: TableState) -> None:
    """A write that is still going on would add logs to a slice after its plan was made, and they would be lost with it.

    Our own writers are kept out by the lock; this finds those of programs that do not know it.
    """
    for instant in state.timeline.pending().writes():
        plans = instant.action in (Action.COMPACTION, Action.LOG_COMPACTION)
        if plans or (instant.action is Action.REPLACE_COMMIT and clustering_groups(state, instant)):
            continue
        raise CompactionError(
            "a compaction cannot be scheduled while a write is going on; try again when it is done",
            instant=instant,
            table=state.config.name,
        )
