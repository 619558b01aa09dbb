"""Compaction as a service: each slice of the plan becomes a base file, while writers log to the next slice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import CompactionError
from lakehouse_engine.files.log_scanner import LogScope
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.plans import HoodieCompactionPlan
from lakehouse_engine.options import CompactionOptions, WriteOptions
from lakehouse_engine.options.services import COMPACTION_TIMEOUT_SECONDS
from lakehouse_engine.read.complete_slices import check_complete
from lakehouse_engine.read.scan import check_readable
from lakehouse_engine.services.compact.completion import compaction_metadata, file_context, schema_text
from lakehouse_engine.services.compact.fitting import fitting_plan, slice_before
from lakehouse_engine.services.compact.log_plan import logged_slices
from lakehouse_engine.services.compact.merging import CompactTask, compact_slice
from lakehouse_engine.services.compact.plan import COMPACTION, check_has_logs, plan_compaction, read_plan
from lakehouse_engine.services.compact.triggers import is_due
from lakehouse_engine.services.executor.scheduling import pending_plans
from lakehouse_engine.services.executor.service import Job, Kind, Lease
from lakehouse_engine.view.table_state import TableState

CompactionJob = Job[HoodieCompactionPlan, CompactTask]


@dataclass(frozen=True, slots=True)
class Compaction:
    """The compaction service. `when_due`: plan only if the trigger asks for it. `write_options` are for the new files."""

    options: CompactionOptions
    write_options: WriteOptions = field(default_factory=WriteOptions)
    when_due: bool = False
    kind: ClassVar[Kind] = COMPACTION

    @property
    def lease(self) -> Lease:
        return Lease(self.options.timeout_seconds, COMPACTION_TIMEOUT_SECONDS.key)

    def plan(self, state: TableState) -> HoodieCompactionPlan | None:
        check_has_logs(state)
        if self.when_due and not is_due(state, self.options):
            return None
        check_readable(state)
        plan = plan_compaction(state, self.options)
        if plan is not None:
            check_complete(state)
        return plan

    def fit(self, state: TableState, requested: Instant) -> CompactionJob:
        """Make the job of a scheduled compaction. Raises as `fitting_plan`."""
        time = requested.requested_time
        stored = read_plan(state, time, COMPACTION.action)
        plan = fitting_plan(state, time, stored)
        if plan.operations != stored.operations:
            state.active.replace_plan(requested, encode_plan(plan))
        context = file_context(state, time, schema_text(state, time), self.write_options)
        reader = SliceReader(state.storage, context.schema, MergeRules.of(state.config, context.schema), LogScope.of(state.timeline))
        slices = [piece for operation in plan.operations or () if (piece := slice_before(state, operation, time)) is not None]
        pieces = enumerate(logged_slices(state, slices))
        tasks = [CompactTask(context, number, reader, piece, self.options.memory_bytes) for number, piece in pieces]
        return Job(state, requested, plan, tasks)

    def run(self, job: CompactionJob, runner: TaskRunner) -> HoodieCommitMetadata:
        return compaction_metadata(COMPACTION, job, runner.run(compact_slice, job.tasks, name="compact"))

    def settle(self, job: CompactionJob, metadata: HoodieCommitMetadata, state: TableState) -> HoodieCommitMetadata:
        """All of `metadata`. Raises `CompactionError` if another program removed the plan or changed one of its slices."""
        time = job.requested.requested_time
        pending = [instant.requested_time for instant in pending_plans(state, COMPACTION.action)]
        if time not in pending or read_plan(state, time, COMPACTION.action).operations != job.plan.operations:
            raise CompactionError(
                "the plan of this compaction was removed while it ran (by a restore or a rollback); what it wrote is taken back",
                instant=time,
                table=state.config.name,
            )
        if fitting_plan(state, time, job.plan).operations != job.plan.operations:
            raise CompactionError(
                "a program without the table lock changed a slice while it was compacted; what was written is taken back: run it again",
                instant=time,
                table=state.config.name,
            )
        return metadata
