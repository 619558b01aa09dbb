"""Run a scheduled compaction, beside writers.

 1. under the table lock: take back what a dead executor left, make the plan fit, mark it inflight
 2. without it: one task a slice merges base file and logs into a new base file   (`merging`)
 3. under the table lock, waited for as long as others hold it: if the plan still stands, complete the instant; new base files show

Between 1 and 3 writers go on: they log to the slices that the compaction makes. A failure before step 3 takes the compaction back to
where it was scheduled; the plan itself stays, for logs may be named after it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from lakehouse_engine.commit.beside.attempts import open_to_attempts
from lakehouse_engine.commit.beside.executors import executor_lock, lock_file
from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.commit.publish import Publication
from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import CommitOutcomeUnknownError, CompactionError, LakehouseError, LockTimeoutError
from lakehouse_engine.files.log_scanner import LogScope
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.format.avro.arrow_avro import table_avro_schema
from lakehouse_engine.format.timeline.plans_codec import encode_plan
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieCompactionPlan
from lakehouse_engine.model.services import CompactionResult
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from lakehouse_engine.options import CompactionOptions, WriteOptions
from lakehouse_engine.read.complete_slices import check_complete
from lakehouse_engine.read.scan import check_readable
from lakehouse_engine.services.compact.completion import compaction_metadata, completed_result, file_context
from lakehouse_engine.services.compact.log_execution import run_log_compaction
from lakehouse_engine.services.compact.log_plan import logged_slices
from lakehouse_engine.services.compact.merging import CompactTask, compact_slice
from lakehouse_engine.services.compact.plan import check_has_logs, pending_plans, read_plan
from lakehouse_engine.services.compact.scheduling import NOTHING, PLANNED, result_of, schedule
from lakehouse_engine.services.compact.takeover import (
    check_not_foreign,
    fitting_plan,
    slice_before,
    take_back,
)
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.tasks.base_files import FileContext

logger = logging.getLogger(__name__)

_LEAST_PATIENCE_MS = 1_000

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
    """Schedule a compaction and run it; where nothing is left to schedule, run the oldest pending one. Raises as both."""
    planned = schedule(
        storage, options, lock_timeout_ms=lock_timeout_ms, dry_run=dry_run, log_compaction=log_compaction, when_due=when_due
    )
    if dry_run or (when_due and planned.instant is None):
        return planned
    return run(
        storage,
        options,
        write_options,
        runner,
        instant=planned.instant,
        lock_timeout_ms=lock_timeout_ms,
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
    """Run the pending compaction `instant`, or the oldest; its result, `instant` None where none is pending.

    Safe to call from a thread of a session or from another process while writers go on. Raises `CompactionError` where `instant` is no
    pending compaction, where another program may be running it, and where its plan was removed meanwhile (by a restore); `LockTimeoutError`
    while another executor runs it (at once without `wait`), or the table is locked when it begins; and what reading the slices raises. Of a
    log compaction `CommitConflictError`, too, while a writer of Hudi is at work (at once without `wait`). The table is then as it was.
    """
    state = TableState.load(storage)
    check_has_logs(state)
    action = Action.LOG_COMPACTION if log_compaction else Action.COMPACTION
    chosen = _choose(state, action, instant)
    if chosen is None:
        return result_of(None, None, log_compaction, NOTHING, dry_run=dry_run)
    time = chosen.requested_time
    if dry_run:
        return result_of(read_plan(state, time, action), time, log_compaction, PLANNED, dry_run=True)
    if log_compaction:
        memory, alone = options.memory_bytes, lock_timeout_ms if wait else 0
        return run_log_compaction(
            storage, time, write_options, runner, lock_timeout_ms=lock_timeout_ms, alone_ms=alone, memory_bytes=memory
        )
    check_not_foreign(state, chosen, options)
    with executor_lock(storage, time, lock_timeout_ms if wait else 0):
        result = _Execution(storage, time, options, write_options, runner, lock_timeout_ms).run()
        # Whoever waits for it finds another file in its place, and then that there is nothing left to do.
        storage.delete(lock_file(time))
    return result


def _choose(state: TableState, action: Action, time: str | None) -> Instant | None:
    pending = pending_plans(state, action)
    if time is None:
        return pending[0] if pending else None
    found = next((instant for instant in pending if instant.requested_time == time), None)
    if found is None:
        known = ", ".join(instant.requested_time for instant in pending) or "none"
        raise CompactionError(f"{time} is no pending {action} of this table; pending: {known}", instant=time, table=state.config.name)
    return found


@dataclass(slots=True)
class _Execution:
    """One run, under the lock of its compaction."""

    storage: Storage
    time: str
    options: CompactionOptions
    write_options: WriteOptions
    runner: TaskRunner
    lock_timeout_ms: int
    publication: Publication = field(default_factory=Publication)

    def run(self) -> CompactionResult:
        begun = self._begin()
        if begun is None:
            return result_of(None, None, False, NOTHING)
        plan, schema_text, tasks = begun
        try:
            stats = self.runner.run(compact_slice, tasks, name="compact")
            return self._complete(plan, schema_text, stats)
        except CommitOutcomeUnknownError:
            raise
        except BaseException:
            if not self.publication.may_be_done:
                self._give_back()
            raise

    def _begin(self) -> tuple[HoodieCompactionPlan, str, list[CompactTask]] | None:
        """The plan to carry out, inflight; None when another executor has done it."""
        with locked_table(self.storage, lock_timeout_ms=self.lock_timeout_ms) as state:
            if self.time not in (instant.requested_time for instant in pending_plans(state, Action.COMPACTION)):
                return None
            check_readable(state)
            check_complete(state)
            requested = Instant(self.time, Action.COMPACTION, State.REQUESTED)
            stored = read_plan(state, self.time, Action.COMPACTION)
            plan = fitting_plan(state, self.time, stored)
            take_back(state, requested, of_dead=True)
            timeline = ActiveTimeline(self.storage, state.layout)
            if plan.operations != stored.operations:
                timeline.replace_plan(requested, encode_plan(plan))
            schema = table_schema(state, self.time)
            text = table_avro_schema(state.config.name, schema, allow_timestamp_ntz=True)
            context = file_context(state, self.time, text, self.write_options)
            tasks = _tasks(state, plan, context, self.options.memory_bytes)
            timeline.to_inflight(requested)
            open_to_attempts(self.storage, self.time)
            return plan, text, tasks

    def _complete(self, plan: HoodieCompactionPlan, schema_text: str, stats: Sequence[HoodieWriteStat]) -> CompactionResult:
        metadata = compaction_metadata(WriteOperationType.COMPACT, stats, schema_text)
        with self._locked_at_last() as state:
            self._check_stands(state, plan)
            self.publication.publish(state, Instant(self.time, Action.COMPACTION, State.INFLIGHT), metadata)
        return completed_result(self.time, metadata, plan)

    @contextmanager
    def _locked_at_last(self) -> Iterator[TableState]:
        """The table, however long its lock is held by others: what was made may have taken hours, and they will be done."""
        with ExitStack() as stack:
            while True:
                try:
                    patience = max(self.lock_timeout_ms, _LEAST_PATIENCE_MS)
                    state = stack.enter_context(locked_table(self.storage, lock_timeout_ms=patience))
                    break
                except LockTimeoutError as error:
                    logger.warning("the compaction %s is done, and waits on for the lock to be completed: %s", self.time, error)
            yield state

    def _check_stands(self, state: TableState, plan: HoodieCompactionPlan) -> None:
        """Whether what was begun may be completed: nobody removed the plan, or changed what it is about."""
        pending = [instant.requested_time for instant in pending_plans(state, Action.COMPACTION)]
        if self.time not in pending or read_plan(state, self.time, Action.COMPACTION).operations != plan.operations:
            raise CompactionError(
                "the plan of this compaction was removed while it ran (by a restore or a rollback); what it wrote is taken back",
                instant=self.time,
                table=state.config.name,
            )
        if fitting_plan(state, self.time, plan).operations != plan.operations:
            raise CompactionError(
                "a program without the table lock changed a slice while it was compacted; what was written is taken back: run it again",
                instant=self.time,
                table=state.config.name,
            )

    def _give_back(self) -> None:
        try:
            with locked_table(self.storage, lock_timeout_ms=self.lock_timeout_ms) as state:
                take_back(state, Instant(self.time, Action.COMPACTION, State.REQUESTED))
        except LakehouseError as error:
            # The failure that led here is what the caller must see; the next run begins by doing this.
            logger.warning("what the compaction %s wrote could not be taken back (%s); the next run does", self.time, error)


def _tasks(state: TableState, plan: HoodieCompactionPlan, context: FileContext, memory_bytes: int) -> list[CompactTask]:
    time = context.instant_time
    rules = MergeRules.of(state.config, context.schema)
    reader = SliceReader(state.storage, context.schema, rules, LogScope.of(state.timeline))
    slices = [piece for operation in plan.operations or () if (piece := slice_before(state, operation, time)) is not None]
    pieces = enumerate(logged_slices(state, slices))
    return [CompactTask(context, number, reader, piece, memory_bytes) for number, piece in pieces]
