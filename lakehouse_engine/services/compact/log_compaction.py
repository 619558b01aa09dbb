"""Log compaction as a service. It is short and runs alone, because its new log comes after all others of its slice.

Its block may hold nothing newer than its instant: readers of an earlier state of the table, or a rollback of the newer write, would find
that write in it. Nor may the block come after newer blocks: readers that go by physical order would take its rows for later ones. So if a
slice of the plan was written to since, the plan is first made again, at a later instant (`log_renewal`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import ClassVar

from lakehouse_engine.commit.concurrency.pending import compacting_groups
from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import CompactionError
from lakehouse_engine.files.log_scanner import LogScope
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.slice_reader import BaseRowsBy, SliceReader
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Instant, InstantRange
from lakehouse_engine.model.plans import HoodieCompactionPlan
from lakehouse_engine.options import CompactionOptions, WriteOptions
from lakehouse_engine.read.scan import check_readable
from lakehouse_engine.services.compact.completion import compaction_metadata, file_context, schema_text
from lakehouse_engine.services.compact.log_merging import LogCompactTask, compact_logs
from lakehouse_engine.services.compact.log_plan import logged_slices, plan_log_compaction
from lakehouse_engine.services.compact.log_renewal import is_outdated, renew
from lakehouse_engine.services.compact.plan import LOG_COMPACTION, check_has_logs, group_of, read_plan
from lakehouse_engine.services.executor.scheduling import check_no_older_write
from lakehouse_engine.services.executor.service import Job, Kind
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


LogCompactionJob = Job[HoodieCompactionPlan, LogCompactTask]


@dataclass(frozen=True, slots=True)
class LogCompaction:
    """The log compaction service, which plans slices with enough blocks. `write_options` are for the new files."""

    options: CompactionOptions
    write_options: WriteOptions = field(default_factory=WriteOptions)
    lease: None = None
    kind: ClassVar[Kind] = LOG_COMPACTION

    def plan(self, state: TableState) -> HoodieCompactionPlan | None:
        check_has_logs(state)
        check_readable(state)
        return plan_log_compaction(state, self.options)

    def fit(self, state: TableState, requested: Instant) -> LogCompactionJob | None:
        """Make the job. Slices that were rewritten since are left out; if none is left, the plan is dropped. Raises as `renew`."""
        state = state.refresh()
        time = requested.requested_time
        plan = read_plan(state, time, LOG_COMPACTION.action)
        slices = _slices(state, plan)
        if not slices:
            logger.info("log compaction %s of %s is dropped: its slices were rewritten", time, state.config.name)
            state.active.delete_pending(requested)
            return None
        if is_outdated(state, time, slices):
            requested, plan = renew(state, requested, plan, slices)
            state = state.refresh()
        return Job(state, requested, plan, self._tasks(state, requested.requested_time, slices))

    def _tasks(self, state: TableState, time: str, slices: list[FileSlice]) -> list[LogCompactTask]:
        """One task per slice, with its logs and its columns as of the instant."""
        context = file_context(state, time, schema_text(state, time), self.write_options)
        rules = MergeRules.of(state.config, context.schema)
        scope = LogScope.of(state.timeline, InstantRange(None, time))
        found = BaseRowsBy.CHECKED_POSITIONS if context.options.record_positions else BaseRowsBy.KEYS
        reader = SliceReader(state.storage, context.schema, rules, scope, base_rows=found)
        pieces = enumerate(logged_slices(state, slices))
        return [LogCompactTask(context, number, reader, piece, self.options.memory_bytes) for number, piece in pieces]

    def run(self, job: LogCompactionJob, runner: TaskRunner) -> HoodieCommitMetadata:
        return compaction_metadata(LOG_COMPACTION, job, runner.run(compact_logs, job.tasks, name="log_compact"))

    def settle(self, job: LogCompactionJob, metadata: HoodieCommitMetadata, state: TableState) -> HoodieCommitMetadata:
        """All of `metadata`. Raises `CompactionError` if a program that does not use the table lock may have logged to the slices
        meanwhile.
        """
        now, time = state.refresh(), job.requested.requested_time
        check_no_older_write(LOG_COMPACTION, now)
        if is_outdated(now, time, [task.piece.slice for task in job.tasks]):
            raise CompactionError(
                "a program without the table lock logged to a slice while it was compacted; what was written is taken back: run it again",
                instant=time,
                table=state.config.name,
            )
        return metadata


def _slices(state: TableState, plan: HoodieCompactionPlan) -> list[FileSlice]:
    """The plan's slices that are still the newest of their group, with all their present logs."""
    compacting = compacting_groups(state)
    planned = {group_of(operation): operation.base_instant_time for operation in plan.operations or ()}
    live = {piece.group: piece for piece in state.view.latest_slices() if piece.log_files and piece.group not in compacting}
    return [live[group] for group, base in planned.items() if group in live and live[group].base_instant == base]
