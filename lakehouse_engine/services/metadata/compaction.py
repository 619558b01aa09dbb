"""Compaction of a metadata table as a service: every file group with logs becomes a base file, in one plan.

It keeps the data table's lock from begin to completion, since a delta commit of the metadata table belongs to each commit of the data
table. What a crash left is found by the next one: it runs the pending plan, of this engine or of Hudi, at the plan's own instant, because
logs may be named after it. Until its completed file is there, readers merge the slice before with all logs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import CompactionError
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.metadata_table.compaction import blocked_by, schema_text
from lakehouse_engine.metadata_table.groups import Validity
from lakehouse_engine.metadata_table.written import check_whole
from lakehouse_engine.model.commit_metadata import SCHEMA_KEY, HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.plans import HoodieCompactionPlan
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from lakehouse_engine.services.compact.fitting import fitting_plan, slice_before
from lakehouse_engine.services.compact.plan import compactable, operation_of, read_plan
from lakehouse_engine.services.executor import execution, scheduling
from lakehouse_engine.services.executor.service import Job, Kind
from lakehouse_engine.services.metadata.clock import COMPACTION_SUFFIX, named_instants
from lakehouse_engine.services.metadata.files import GroupTask, compact_group
from lakehouse_engine.view.table_state import TableState

MetadataCompactionJob = Job[HoodieCompactionPlan, GroupTask]


@dataclass(frozen=True, slots=True)
class MetadataCompaction:
    """The service, for the metadata table of `data`."""

    data: TableState
    lease: None = None
    kind: ClassVar[Kind] = Kind(
        Action.COMPACTION, WriteOperationType.COMPACT, "compaction of the metadata table", CompactionError, needs_all_files=False
    )

    def plan(self, state: TableState) -> HoodieCompactionPlan | None:
        """Every group with logs of the partitions in use."""
        self._check_allowed(state)
        partitions = self.data.config.metadata_partitions
        for partition in partitions:
            check_whole(state, partition)
        operations = tuple(operation_of(piece) for piece in compactable(state) if piece.partition_path in partitions)
        return HoodieCompactionPlan(operations=operations) if operations else None

    def fit(self, state: TableState, requested: Instant) -> MetadataCompactionJob | None:
        """Make the job. Groups of partitions that were dropped since, or built again, are left out; if none is left, so is the plan."""
        self._check_allowed(state)
        time, stored = requested.requested_time, read_plan(state, requested.requested_time, Action.COMPACTION)
        partitions = self.data.config.metadata_partitions
        for partition in partitions:
            check_whole(state, partition)
        known = (one for one in stored.operations or () if one.partition_path in partitions)
        operations = tuple(one for one in known if slice_before(state, one, time) is not None)
        if not operations:
            state.active.delete_pending(requested)
            return None
        plan = fitting_plan(state, time, replace(stored, operations=operations))
        if plan.operations != stored.operations:
            state.active.replace_plan(requested, encode_plan(plan))
        pieces = [piece for operation in plan.operations or () if (piece := slice_before(state, operation, time)) is not None]
        # No commit names the logs that open a group. A state that has listed nothing takes none of them for a stray.
        fresh = state.refresh()
        validity, schema = Validity.of(fresh, self.data), schema_text(fresh)
        return Job(fresh, requested, plan, [GroupTask(validity, time, number, piece, schema) for number, piece in enumerate(pieces)])

    def run(self, job: MetadataCompactionJob, runner: TaskRunner) -> HoodieCommitMetadata:
        by_partition: dict[str, list[HoodieWriteStat]] = {}
        for stat in runner.run(compact_group, job.tasks, name="compact metadata"):
            by_partition.setdefault(stat.partition_path or "", []).append(stat)
        return HoodieCommitMetadata(
            partition_to_write_stats={partition: tuple(stats) for partition, stats in by_partition.items()},
            operation_type=self.kind.operation,
            compacted=True,
            extra_metadata={SCHEMA_KEY: schema_text(job.state)},
        )

    def settle(self, job: MetadataCompactionJob, metadata: HoodieCommitMetadata, state: TableState) -> HoodieCommitMetadata:
        """All of `metadata`: the lock kept others out."""
        return metadata

    def _check_allowed(self, state: TableState) -> None:
        blocking = blocked_by(self.data, state)
        if blocking is not None:
            raise CompactionError(
                f"the metadata table is not compacted while {blocking} is pending in the data table, which may still be taken back; a write"
                " compacts it when that is done",
                instant=blocking,
                table=self.data.config.name,
            )


def compact(data: TableState, metadata: TableState, runner: TaskRunner, *, lock_timeout_ms: int) -> HoodieCommitMetadata | None:
    """Run pending compactions of the metadata table, or plan and run one; returns the metadata of the last, None if nothing was to do.

    The lock of the data table is held. Raises `CompactionError` while a pending instant of the data table forbids it, and
    `StoredFileNotFoundError`, `FormatError` or `CorruptLogError` if the metadata table is damaged.
    """
    service, storage = MetadataCompaction(data), metadata.storage
    done = None
    with named_instants(data, metadata, COMPACTION_SUFFIX):
        pending = scheduling.pending_plans(metadata, Action.COMPACTION)
        if not pending:
            planned = scheduling.schedule(service, storage, lock_timeout_ms=lock_timeout_ms, alone_ms=0)
            pending = [] if planned is None else [planned[0]]
        for instant in pending:
            ran = execution.run(service, TableState.load(storage), instant, runner, lock_timeout_ms=lock_timeout_ms, wait=False)
            done = done if ran is None else ran.metadata
    return done
