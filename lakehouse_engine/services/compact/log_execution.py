"""Run a scheduled log compaction. It is short, and its new log stands behind all others of its slice: the table lock is held throughout.

Its block may hold nothing newer than its instant, or to whoever takes the newer write back, or reads the table as it was before, that write
would be there. Nor may the block stand behind blocks that are newer: readers that go by physical order would take its rows for the later
ones. So a plan on whose slices something was written since is made anew first, at an instant after that (`log_renewal`).
"""

from __future__ import annotations

import logging

from lakehouse_engine.commit.beside.attempts import open_to_attempts
from lakehouse_engine.commit.beside.pending import compacting_groups
from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.commit.publish import Publication
from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import CompactionError, LakehouseError
from lakehouse_engine.files.log_scanner import LogScope
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.files.slice_reader import BaseRowsBy, SliceReader
from lakehouse_engine.format.avro.arrow_avro import table_avro_schema
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Action, Instant, InstantRange, State
from lakehouse_engine.model.plans import HoodieCompactionPlan
from lakehouse_engine.model.services import CompactionResult
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.read.complete_slices import check_complete
from lakehouse_engine.read.scan import check_readable
from lakehouse_engine.services.compact.completion import compaction_metadata, completed_result, file_context
from lakehouse_engine.services.compact.log_merging import LogCompactTask, compact_logs
from lakehouse_engine.services.compact.log_plan import logged_slices
from lakehouse_engine.services.compact.log_renewal import is_outdated, renew
from lakehouse_engine.services.compact.plan import group_of, pending_plans, read_plan
from lakehouse_engine.services.compact.scheduling import NOTHING, check_no_older_write, result_of
from lakehouse_engine.services.compact.takeover import take_back
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.tasks.base_files import FileContext

logger = logging.getLogger(__name__)


def run_log_compaction(
    storage: Storage, time: str, options: WriteOptions, runner: TaskRunner, *, lock_timeout_ms: int, alone_ms: int, memory_bytes: int
) -> CompactionResult:
    """Carry out the log compaction `time`, whatever became of an earlier attempt. Above `memory_bytes` a task keeps rows in files.

    Slices that were rewritten since it was planned have nothing left to compact; with all of them gone, so is the plan. Where slices were
    logged to since, it is planned anew, and the result has another instant. Raises what reading the slices raises, `CommitConflictError`
    while a writer of Hudi is at work, whose blocks may be in the logs already, and that is not done in `alone_ms`, and `CompactionError`
    where one came meanwhile.
    """
    requested = Instant(time, Action.LOG_COMPACTION, State.REQUESTED)
    with locked_table(storage, lock_timeout_ms=lock_timeout_ms, alone_ms=alone_ms) as state:
        if time not in (instant.requested_time for instant in pending_plans(state, Action.LOG_COMPACTION)):
            return result_of(None, None, True, NOTHING)
        check_readable(state)
        check_complete(state)
        take_back(state, requested)
        state = state.refresh()
        plan = read_plan(state, time, Action.LOG_COMPACTION)
        slices = _slices(state, plan)
        if not slices:
            logger.info("log compaction %s of %s is dropped: its slices were rewritten", time, state.config.name)
            ActiveTimeline(storage, state.layout).delete_pending(requested)
            return result_of(None, None, True, NOTHING)
        if is_outdated(state, time, slices):
            requested, plan = renew(state, requested, plan, slices)
            state = state.refresh()
        return _carry_out(state, requested, plan, slices, options, runner, memory_bytes)


def _slices(state: TableState, plan: HoodieCompactionPlan) -> list[FileSlice]:
    """The plan's slices, with the logs that they have by now, as far as they are the newest of their group still."""
    compacting = compacting_groups(state)
    planned = {group_of(operation): operation.base_instant_time for operation in plan.operations or ()}
    live = {piece.group: piece for piece in state.view.latest_slices() if piece.log_files and piece.group not in compacting}
    return [live[group] for group, base in planned.items() if group in live and live[group].base_instant == base]


def _carry_out(
    state: TableState,
    requested: Instant,
    plan: HoodieCompactionPlan,
    slices: list[FileSlice],
    options: WriteOptions,
    runner: TaskRunner,
    memory_bytes: int,
) -> CompactionResult:
    storage, time = state.storage, requested.requested_time
    schema_text = table_avro_schema(state.config.name, table_schema(state, time), allow_timestamp_ntz=True)
    tasks = _tasks(state, file_context(state, time, schema_text, options), slices, memory_bytes)
    inflight = ActiveTimeline(storage, state.layout).to_inflight(requested)
    publication = Publication()
    try:
        open_to_attempts(storage, time)
        stats = runner.run(compact_logs, tasks, name="log_compact")
        _check_nobody_logged(state, time, slices)
        metadata = compaction_metadata(WriteOperationType.LOG_COMPACT, stats, schema_text)
        publication.publish(state, inflight, metadata)
    except BaseException:
        if not publication.may_be_done:
            _take_back_after_failure(state, requested)
        raise
    return completed_result(time, metadata, plan)


def _tasks(state: TableState, context: FileContext, slices: list[FileSlice], memory_bytes: int) -> list[LogCompactTask]:
    """What each slice says up to the instant, as of which its columns are too."""
    rules = MergeRules.of(state.config, context.schema)
    scope = LogScope.of(state.timeline, InstantRange(None, context.instant_time))
    found = BaseRowsBy.CHECKED_POSITIONS if context.options.record_positions else BaseRowsBy.KEYS
    reader = SliceReader(state.storage, context.schema, rules, scope, base_rows=found)
    return [LogCompactTask(context, number, reader, piece, memory_bytes) for number, piece in enumerate(logged_slices(state, slices))]


def _check_nobody_logged(state: TableState, time: str, slices: list[FileSlice]) -> None:
    """Raise `CompactionError` where a program without the table lock may have logged to the slices before the new blocks were made."""
    now = state.refresh()
    check_no_older_write(now)
    if is_outdated(now, time, slices):
        raise CompactionError(
            "a program without the table lock logged to a slice while it was compacted; what was written is taken back: run it again",
            instant=time,
            table=state.config.name,
        )


def _take_back_after_failure(state: TableState, requested: Instant) -> None:
    try:
        take_back(state, requested)
    except LakehouseError as error:
        # The failure that led here is what the caller must see; the next run begins by doing this.
        logger.warning("what %s wrote could not be taken back (%s); the next run does", requested, error)
