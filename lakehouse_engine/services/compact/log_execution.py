"""Run a scheduled log compaction. It is short, and its new log stands behind all others of its slice: the table lock is held throughout."""

from __future__ import annotations

import logging

from lakehouse_engine.commit.beside.attempts import open_to_attempts
from lakehouse_engine.commit.beside.pending import compacting_groups
from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.commit.publish import Publication
from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.files.log_scanner import LogScope
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.format.avro.arrow_avro import table_avro_schema
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieCompactionPlan
from lakehouse_engine.model.services import CompactionResult
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.read.complete_slices import check_complete
from lakehouse_engine.read.scan import check_readable
from lakehouse_engine.services.compact.completion import compaction_metadata, completed_result, file_context
from lakehouse_engine.services.compact.log_merging import LogCompactTask, compact_logs
from lakehouse_engine.services.compact.log_plan import logged_slices
from lakehouse_engine.services.compact.plan import group_of, pending_plans, read_plan
from lakehouse_engine.services.compact.scheduling import NOTHING, result_of
from lakehouse_engine.services.compact.takeover import take_back
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


def run_log_compaction(
    storage: Storage, time: str, options: WriteOptions, runner: TaskRunner, *, lock_timeout_ms: int, memory_bytes: int
) -> CompactionResult:
    """Carry out the log compaction `time`, whatever became of an earlier attempt. Raises what reading the slices raises.

    Above `memory_bytes` a task keeps rows in files.

    Slices that were rewritten since it was planned have nothing left to compact; with all of them gone, so is the plan.
    """
    requested = Instant(time, Action.LOG_COMPACTION, State.REQUESTED)
    with locked_table(storage, lock_timeout_ms=lock_timeout_ms) as state:
        if time not in (instant.requested_time for instant in pending_plans(state, Action.LOG_COMPACTION)):
            return result_of(None, None, True, NOTHING)
        check_readable(state)
        check_complete(state)
        take_back(state, requested)
        state = state.refresh()
        plan = read_plan(state, time, Action.LOG_COMPACTION)
        slices = _slices(state, plan)
        timeline = ActiveTimeline(storage, state.layout)
        if not slices:
            logger.info("log compaction %s of %s is dropped: its slices were rewritten", time, state.config.name)
            timeline.delete_pending(requested)
            return result_of(None, None, True, NOTHING)
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
    context = file_context(state, time, schema_text, options)
    rules, scope = MergeRules.of(state.config, context.schema), LogScope.of(state.timeline)
    reader = SliceReader(storage, context.schema, rules, scope, by_position=options.record_positions)
    tasks = [LogCompactTask(context, number, reader, piece, memory_bytes) for number, piece in enumerate(logged_slices(state, slices))]
    timeline = ActiveTimeline(storage, state.layout)
    inflight = timeline.to_inflight(requested)
    publication = Publication()
    try:
        open_to_attempts(storage, time)
        stats = runner.run(compact_logs, tasks, name="log_compact")
        metadata = compaction_metadata(WriteOperationType.LOG_COMPACT, stats, schema_text)
        publication.publish(state, inflight, metadata)
    except BaseException:
        if not publication.may_be_done:
            _take_back_after_failure(state, requested)
        raise
    return completed_result(time, metadata, plan)


def _take_back_after_failure(state: TableState, requested: Instant) -> None:
    try:
        take_back(state, requested)
    except LakehouseError as error:
        # The failure that led here is what the caller must see; the next run begins by doing this.
        logger.warning("what %s wrote could not be taken back (%s); the next run does", requested, error)
