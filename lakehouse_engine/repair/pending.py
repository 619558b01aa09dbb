"""Classifies pending instants: dead writes, waiting plans, interrupted actions, or running work."""

from __future__ import annotations

from lakehouse_engine.commit.concurrency.executors import lock_file
from lakehouse_engine.commit.concurrency.foreign import left_by_hudi
from lakehouse_engine.commit.rollback.plan import plan_rollback
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.repair.disorder import Disorder, DisorderKind
from lakehouse_engine.timeline.heartbeats import find_heartbeat
from lakehouse_engine.timeline.lock import lock_holder
from lakehouse_engine.timeline.locks.settings import lock_options
from lakehouse_engine.undo.rollback import is_service_plan
from lakehouse_engine.view.plans import may_cluster
from lakehouse_engine.view.table_state import TableState

_UNFINISHED = {
    Action.ROLLBACK: (DisorderKind.UNFINISHED_ROLLBACK, "the rollback was cut off: it is finished"),
    Action.RESTORE: (DisorderKind.UNFINISHED_RESTORE, "the restore was cut off; readers see the restored table already: it is finished"),
    Action.CLEAN: (DisorderKind.UNFINISHED_CLEAN, "the clean was cut off: the next clean finishes it"),
    Action.SAVEPOINT: (DisorderKind.UNFINISHED_SAVEPOINT, "the savepoint was not completed and keeps nothing; delete it, or make it again"),
    Action.INDEXING: (DisorderKind.PENDING_SERVICE, "an index is to be built: `index create --op run` does it, `index drop` drops it"),
}


def pending(state: TableState, instant: Instant, holder: str | None) -> Disorder:
    """`holder`: holder of the table lock, None if it is free."""
    time = instant.requested_time
    if instant.action is not Action.INDEXING and is_service_plan(state, instant):
        return _service(state, instant)
    if holder is not None and instant.action is not Action.INDEXING:
        return Disorder(
            DisorderKind.AT_WORK, time, f"the {instant.action} is being written by {holder} (or waits to be taken back by it): wait for it"
        )
    if instant.action in _UNFINISHED:
        kind, message = _UNFINISHED[instant.action]
        return Disorder(kind, time, message)
    options = lock_options(state.config)
    heartbeat = find_heartbeat(state.storage, time, options)
    if heartbeat is not None and heartbeat.is_alive:
        return Disorder(DisorderKind.AT_WORK, time, f"its writer is at work: {heartbeat}; wait for it")
    left = left_by_hudi(state, instant, options) if heartbeat is None else None
    if left is not None:
        return Disorder(DisorderKind.AT_WORK, time, f"it was ended by {left}: Hudi takes it back with its next clean, else a later write")
    requests = plan_rollback(state, instant).rollback_requests or ()
    files = sum(len(request.files_to_be_deleted) for request in requests)
    return Disorder(DisorderKind.DEAD_WRITE, time, f"the {instant.action} did not complete: it is taken back, and its {files} files go")


def _service(state: TableState, instant: Instant) -> Disorder:
    runs = f"`{'cluster' if may_cluster(instant) else 'compact'} --op run` runs it"
    executor = lock_holder(state.storage, lock_file(instant.requested_time))
    if executor is not None:
        return Disorder(DisorderKind.AT_WORK, instant.requested_time, f"the {instant.action} is being run by {executor}: wait for it")
    return Disorder(DisorderKind.PENDING_SERVICE, instant.requested_time, f"the {instant.action} is planned and waits; {runs}")
