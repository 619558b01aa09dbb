"""Plan a compaction, or a log compaction, and run it."""

from __future__ import annotations

from typing import Any

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.model.instant import State
from lakehouse_engine.model.plans import HoodieCompactionPlan
from lakehouse_engine.model.services import CompactionResult
from lakehouse_engine.options import CompactionOptions, WriteOptions
from lakehouse_engine.services.compact.compaction import Compaction
from lakehouse_engine.services.compact.log_compaction import LogCompaction
from lakehouse_engine.services.compact.plan import check_has_logs, read_plan
from lakehouse_engine.services.executor import execution, scheduling
from lakehouse_engine.services.executor.service import Kind, Service
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.table_state import TableState

_Service = Service[HoodieCompactionPlan, Any]

_NOTHING, _PLANNED = "none", "planned"
"""`CompactionResult.state` if there was nothing to do, and for a dry run; otherwise it is the instant's state."""


def schedule(
    storage: Storage,
    options: CompactionOptions,
    *,
    lock_timeout_ms: int,
    dry_run: bool = False,
    log_compaction: bool = False,
    when_due: bool = False,
) -> CompactionResult:
    """Plan a compaction under the table lock, at an instant after every write; `instant` is None if there is nothing to do.

    `when_due` asks the trigger first; otherwise a compaction is planned whenever a slice has logs. Raises `CompactionError` for a
    copy-on-write table and while an older write is pending, `MissingFileError` if files of the table are lost.
    """
    service: _Service = LogCompaction(options) if log_compaction else Compaction(options, when_due=when_due)
    if dry_run:
        return _planned(service.kind, service.plan(TableState.load(storage)), None, _PLANNED, dry_run=True)
    # An automatic compaction does not wait for Hudi's writers: the next write tries again.
    patience = 0 if when_due else lock_timeout_ms
    scheduled = scheduling.schedule(service, storage, lock_timeout_ms=lock_timeout_ms, alone_ms=patience)
    if scheduled is None:
        return _planned(service.kind)
    instant, plan = scheduled
    return _planned(service.kind, plan, instant.requested_time, str(instant.state))


def schedule_and_run(
    storage: Storage,
    options: CompactionOptions,
    write_options: WriteOptions,
    runner: TaskRunner,
    *,
    lock_timeout_ms: int,
    dry_run: bool = False,
    log_compaction: bool = False,
    when_due: bool = False,
) -> CompactionResult:
    """Schedule a compaction and run it; if there is nothing to schedule, run the oldest pending one. Raises as `schedule` and `run`."""
    planned = schedule(storage, options, lock_timeout_ms=lock_timeout_ms, dry_run=dry_run, log_compaction=log_compaction, when_due=when_due)
    if (dry_run and planned.operations) or (when_due and planned.instant is None):
        return planned
    return run(
        storage,
        options,
        write_options,
        runner,
        instant=planned.instant,
        lock_timeout_ms=lock_timeout_ms,
        dry_run=dry_run,
        log_compaction=log_compaction,
    )


def run(
    storage: Storage,
    options: CompactionOptions,
    write_options: WriteOptions,
    runner: TaskRunner,
    *,
    instant: str | None = None,
    lock_timeout_ms: int,
    dry_run: bool = False,
    log_compaction: bool = False,
    wait: bool = True,
) -> CompactionResult:
    """Run the pending compaction `instant`, or the oldest; the result's `instant` is None if none is pending.

    Safe to call from a thread of a session or from another process while writers continue. Raises `CompactionError` if `instant` is not a
    pending compaction, if another program may be running it, or if its plan was removed meanwhile (by a restore); `LockTimeoutError` while
    another executor runs it (at once without `wait`), or if the table is locked when it begins; and whatever reading the slices raises. A
    log compaction also raises `CommitConflictError` while a Hudi writer is at work (at once without `wait`): its blocks may already be in
    the logs. After an error the table is as before. A log compaction gets another instant if its slices were logged to since.
    """
    state = TableState.load(storage)
    check_has_logs(state)
    service: _Service = LogCompaction(options, write_options) if log_compaction else Compaction(options, write_options)
    chosen = scheduling.choose(service.kind, state, instant)
    if chosen is None:
        return _planned(service.kind, dry_run=dry_run)
    if dry_run:
        time = chosen.requested_time
        return _planned(service.kind, read_plan(state, time, service.kind.action), time, _PLANNED, dry_run=True)
    done = execution.run(service, state, chosen, runner, lock_timeout_ms=lock_timeout_ms, wait=wait)
    return _planned(service.kind) if done is None else _completed(service.kind, done)


def _planned(
    kind: Kind, plan: HoodieCompactionPlan | None = None, time: str | None = None, state: str = _NOTHING, *, dry_run: bool = False
) -> CompactionResult:
    """The result for a plan that has not been run."""
    return CompactionResult(
        instant=time,
        operation=str(kind.operation),
        state=state if plan else _NOTHING,
        operations=(plan.operations or ()) if plan else (),
        dry_run=dry_run,
    )


def _completed(kind: Kind, done: execution.Done[HoodieCompactionPlan, Any]) -> CompactionResult:
    stats = list(done.metadata.write_stats())
    return CompactionResult(
        instant=done.job.requested.requested_time,
        operation=str(kind.operation),
        state=str(State.COMPLETED),
        operations=done.job.plan.operations or (),
        files_created=len(stats),
        rows_written=sum(stat.num_writes for stat in stats),
        bytes_written=sum(stat.total_write_bytes for stat in stats),
        log_files_compacted=sum(stat.total_log_files_compacted for stat in stats),
    )
