"""Clustering as a service: each group of the plan becomes new file groups, which replace the old ones."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from lakehouse_engine.engine import LocalRunner, TaskRunner
from lakehouse_engine.errors import ClusteringError
from lakehouse_engine.files.log_scanner import LogScope
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.format.file_names import bucket_file_id, bucket_of, new_file_id
from lakehouse_engine.format.table_format import TableFormat
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.commit_metadata import SCHEMA_KEY, HoodieCommitMetadata
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.plans import HoodieRequestedReplaceMetadata
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from lakehouse_engine.options import ClusteringOptions, WriteOptions
from lakehouse_engine.options.clustering import CLUSTERING_TIMEOUT_SECONDS
from lakehouse_engine.read.complete_slices import check_complete, check_not_bootstrapped
from lakehouse_engine.read.scan import check_readable
from lakehouse_engine.services.cluster.candidates import candidates, keeps_slices_apart
from lakehouse_engine.services.cluster.fitting import groups_of, read_plan, standing, with_groups
from lakehouse_engine.services.cluster.order import SortOrder
from lakehouse_engine.services.cluster.plan import PlannedGroups, encoded_plan, plan_groups
from lakehouse_engine.services.cluster.sorting import SortTask, sort_group
from lakehouse_engine.services.cluster.triggers import is_due
from lakehouse_engine.services.compact.completion import file_context, schema_text
from lakehouse_engine.services.compact.log_plan import logged_slices
from lakehouse_engine.services.executor.scheduling import pending_plans
from lakehouse_engine.services.executor.service import Job, Kind, Lease
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

ClusteringJob = Job[HoodieRequestedReplaceMetadata, SortTask]


@dataclass(frozen=True, slots=True)
class Clustering:
    """`only`: partition paths to look at, None for those that the options select. `when_due`: plan only if enough was committed.
    `write_options` are for the files.
    """

    kind: Kind
    options: ClusteringOptions
    write_options: WriteOptions = field(default_factory=WriteOptions)
    only: tuple[str, ...] | None = None
    when_due: bool = False

    @classmethod
    def of(
        cls,
        table_format: TableFormat,
        options: ClusteringOptions,
        write_options: WriteOptions,
        *,
        only: Iterable[str] | None = None,
        when_due: bool = False,
    ) -> Clustering:
        """Service for a table of this format."""
        kind = Kind(table_format.clustering_action, WriteOperationType.CLUSTER, "clustering", ClusteringError)
        return cls(kind, options, write_options, None if only is None else tuple(only), when_due)

    @property
    def lease(self) -> Lease:
        return Lease(self.options.timeout_seconds, CLUSTERING_TIMEOUT_SECONDS.key)

    def plan(self, state: TableState) -> HoodieRequestedReplaceMetadata | None:
        """Plan a clustering, or None. Raises `OptionError` for columns that rows cannot be sorted by, and as `candidates` and `load_index`.
        """
        if self.when_due and not is_due(state, self.options):
            return None
        planned = self.groups(state)
        if not planned.groups:
            return None
        check_complete(state, frozenset(group[0].partition_path for group in planned.groups))
        return encoded_plan(planned, self._checked(state), partial(_uri, state.storage))

    def groups(self, state: TableState) -> PlannedGroups:
        """Groups that `plan` would plan. Raises as `plan`."""
        check_readable(state)
        check_not_bootstrapped(state)
        options = self._checked(state)
        alone = keeps_slices_apart(state, self.write_options)
        return plan_groups(candidates(state, options, only=self.only), options, alone=alone)

    def order(self, state: TableState) -> SortOrder:
        """The order asked for, its columns as the table spells them. Raises `OptionError` as `SortOrder.checked`."""
        return SortOrder.of(self._checked(state))

    def _checked(self, state: TableState) -> ClusteringOptions:
        """The options with sort columns as the table spells them. Raises `OptionError` as `SortOrder.checked`."""
        return replace(self.options, sort_columns=SortOrder.of(self.options).checked(table_schema(state)).columns)

    def fit(self, state: TableState, requested: Instant) -> ClusteringJob | None:
        """The job for the groups whose slices are unchanged; None if there are none, and the plan is dropped."""
        check_not_bootstrapped(state)
        stored = read_plan(state, requested)
        stands = standing(state, groups_of(stored))
        if not stands:
            state.active.delete_pending(requested)
            logger.info("every file group of %s of %s was changed since: it is dropped", requested, state.config.name)
            return None
        plan = with_groups(stored, [group for group, _ in stands])
        if plan != stored:
            state.active.replace_plan(requested, encode_plan(plan))
        check_complete(state, frozenset(pieces[0].partition_path for _, pieces in stands))
        return Job(state, requested, plan, self._tasks(state, requested.requested_time, plan))

    def _tasks(self, state: TableState, time: str, plan: HoodieRequestedReplaceMetadata) -> list[SortTask]:
        order = self._order(state, time, plan)
        context = replace(file_context(state, time, schema_text(state, time), self.write_options), sorted_by=order.text)
        reader = SliceReader(state.storage, context.schema, MergeRules.of(state.config, context.schema), LogScope.of(state.timeline))
        tasks: list[SortTask] = []
        alone, first = keeps_slices_apart(state, self.write_options), 0
        for group, pieces in standing(state, groups_of(plan)):
            count = 1 if alone else max(1, group.num_output_file_groups or 1)
            ids = tuple(_file_id(pieces, time, first + number, alone=alone) for number in range(count))
            logged = tuple(logged_slices(state, list(pieces)))
            tasks.append(SortTask(context, first, reader, logged, ids, order, self.options.memory_bytes))
            first += count
        return tasks

    def _order(self, state: TableState, time: str, plan: HoodieRequestedReplaceMetadata) -> SortOrder:
        strategy = plan.clustering_plan.strategy if plan.clustering_plan else None
        try:
            order = SortOrder.planned((strategy.strategy_params if strategy else None) or {}, self.options.layout)
        except ValueError as error:
            raise ClusteringError(f"the plan's order of rows is not known: {error}", instant=time, table=state.config.name) from error
        return order.checked(table_schema(state, time))

    def run(self, job: ClusteringJob, runner: TaskRunner) -> HoodieCommitMetadata:
        written = runner.run(sort_group, _threaded(job.tasks, runner), name="cluster")
        stats: dict[str, list[HoodieWriteStat]] = {}
        replaced: dict[str, list[str]] = {}
        for task, made in zip(job.tasks, written, strict=True):
            if made:
                stats.setdefault(task.partition_path, []).extend(made)
            replaced.setdefault(task.partition_path, []).extend(piece.slice.file_id for piece in task.pieces)
        return HoodieCommitMetadata(
            partition_to_write_stats={path: tuple(group) for path, group in stats.items()},
            operation_type=self.kind.operation,
            partition_to_replace_file_ids={path: tuple(ids) for path, ids in replaced.items()},
            extra_metadata={SCHEMA_KEY: schema_text(job.state, job.requested.requested_time)},
        )

    def settle(self, job: ClusteringJob, metadata: HoodieCommitMetadata, state: TableState) -> HoodieCommitMetadata:
        """The metadata without the groups that a writer changed meanwhile. Raises `ClusteringError` if none is left, or the plan was
        removed.
        """
        time, table = job.requested.requested_time, state.config.name
        if time not in [instant.requested_time for instant in pending_plans(state, self.kind.action)]:
            raise ClusteringError(
                "the plan of this clustering was removed while it ran (by a restore, a rollback or a write); what it wrote is taken back",
                instant=time,
                table=table,
            )
        stands = {piece.group for _, pieces in standing(state, groups_of(read_plan(state, job.requested))) for piece in pieces}
        lost = [task for task in job.tasks if not stands.issuperset(piece.slice.group for piece in task.pieces)]
        if len(lost) == len(job.tasks):
            message = "writers changed every file group of this clustering while it ran; plan it again"
            raise ClusteringError(message, instant=time, table=table)
        if lost:
            logger.info("%s goes without %d of its %d groups, which were changed meanwhile", time, len(lost), len(job.tasks))
        return without(metadata, lost)


def _threaded(tasks: Sequence[SortTask], runner: TaskRunner) -> list[SortTask]:
    """The tasks, with threads of their own where there are fewer of them than this process runs at once."""
    threads = max(1, runner.parallelism // len(tasks)) if isinstance(runner, LocalRunner) else 1
    return [replace(task, threads=threads) for task in tasks]


def without(metadata: HoodieCommitMetadata, lost: Iterable[SortTask]) -> HoodieCommitMetadata:
    """The metadata without some of the groups; no stat names their files then."""
    made = {file_id for task in lost for file_id in task.file_ids}
    kept = {piece.slice.group for task in lost for piece in task.pieces}
    stats = {path: tuple(one for one in group if one.file_id not in made) for path, group in metadata.partition_to_write_stats.items()}
    replaced = {
        path: tuple(file_id for file_id in ids if FileGroupId(path, file_id) not in kept)
        for path, ids in (metadata.partition_to_replace_file_ids or {}).items()
    }
    return replace(
        metadata,
        partition_to_write_stats={path: group for path, group in stats.items() if group},
        partition_to_replace_file_ids={path: ids for path, ids in replaced.items() if ids},
    )


def _file_id(pieces: tuple[FileSlice, ...], time: str, number: int, *, alone: bool) -> str:
    """Id of a new group; one of a bucket keeps the bucket's number."""
    bucket = bucket_of(pieces[0].file_id) if alone else None
    path = pieces[0].partition_path
    return new_file_id(time, path, number) if bucket is None else bucket_file_id(bucket, time, path)


def _uri(storage: Storage, path: str) -> str:
    """Address of a file in the form of Hudi's plans."""
    return storage.uri(path).replace("file:///", "file:/", 1)
