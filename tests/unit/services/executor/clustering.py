"""A clustering on the executor: every base file of a table is written again, sorted, as a group of its own, in place of the old one."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from io import BytesIO
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.format.v6.plans_codec import decode_plan
from lakehouse_engine.model.commit_metadata import SCHEMA_KEY, HoodieCommitMetadata
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.keys import PARTITION_PATH, RECORD_KEY
from lakehouse_engine.model.plans import (
    HoodieClusteringGroup,
    HoodieClusteringPlan,
    HoodieRequestedReplaceMetadata,
    HoodieSliceInfo,
)
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.services.compact.completion import file_context, schema_text
from lakehouse_engine.services.executor.service import Job, Kind, Lease
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.view.plans import clustering_groups
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table
from lakehouse_engine.write.source import MemorySource
from lakehouse_engine.write.tasks.base_changes import CreateTask, create_file
from lakehouse_engine.write.tasks.base_files import FileContext
from tests.support.local_table import LocalTable


class ClusteringError(LakehouseError):
    """A clustering cannot be planned or run."""


@dataclass(frozen=True, slots=True)
class SortTask:
    context: FileContext
    number: int
    base: BaseFile


def sort_file(task: SortTask) -> HoodieWriteStat:
    rows = pq.read_table(BytesIO(task.context.storage.read(task.base.path))).sort_by([("v", "descending")])
    source = MemorySource(rows.select([RECORD_KEY, PARTITION_PATH, *task.context.schema.names]))
    made = create_file(CreateTask(task.context, task.number, task.base.partition_path, f"sorted-{task.number}-0", source, None)).stat
    assert made is not None
    return made


ClusteringJob = Job[HoodieRequestedReplaceMetadata, SortTask]


@dataclass(frozen=True, slots=True)
class Clustering:
    lease: Lease = field(default=Lease(1200, "clustering.timeout"))
    kind: ClassVar[Kind] = Kind(Action.REPLACE_COMMIT, WriteOperationType.CLUSTER, "clustering", ClusteringError)

    def plan(self, state: TableState) -> HoodieRequestedReplaceMetadata | None:
        slices = [HoodieSliceInfo(file_id=one.file_id, partition_path=one.partition_path) for one in state.view.latest_slices()]
        plan = HoodieClusteringPlan(input_groups=tuple(HoodieClusteringGroup(slices=(one,)) for one in slices))
        return HoodieRequestedReplaceMetadata(operation_type="CLUSTER", clustering_plan=plan, version=1) if slices else None

    def fit(self, state: TableState, requested: Instant) -> ClusteringJob:
        stored = ActiveTimeline(state.storage, state.format).read(requested)
        time, planned = requested.requested_time, clustering_groups(state, requested)
        context = file_context(state, time, schema_text(state, time), WriteOptions())
        bases = [one.base_file for one in state.view.latest_slices() if (one.partition_path, one.file_id) in planned]
        tasks = [SortTask(context, number, base) for number, base in enumerate(bases) if base is not None]
        return Job(state, requested, decode_plan(HoodieRequestedReplaceMetadata, stored), tasks)

    def run(self, job: ClusteringJob, runner: TaskRunner) -> HoodieCommitMetadata:
        stats, replaced = defaultdict[str, list[HoodieWriteStat]](list), defaultdict[str, list[str]](list)
        for task, stat in zip(job.tasks, runner.run(sort_file, job.tasks, name="cluster"), strict=True):
            stats[task.base.partition_path].append(stat)
            replaced[task.base.partition_path].append(task.base.file_id)
        return HoodieCommitMetadata(
            partition_to_write_stats={partition: tuple(group) for partition, group in stats.items()},
            operation_type=self.kind.operation,
            partition_to_replace_file_ids={partition: tuple(ids) for partition, ids in replaced.items()},
            extra_metadata={SCHEMA_KEY: schema_text(job.state, job.requested.requested_time)},
        )

    def settle(self, job: ClusteringJob, metadata: HoodieCommitMetadata, state: TableState) -> HoodieCommitMetadata:
        live = {one.base_file for one in state.view.latest_slices()}
        if state.timeline.find(job.requested.requested_time) is None or not live.issuperset(task.base for task in job.tasks):
            raise ClusteringError("a file was changed while it was clustered", instant=job.requested, table=state.config.name)
        return metadata


SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])
ROWS = {1: 10, 2: 20, 3: 30, 4: 40}


def batch(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "v": [ROWS.get(number, 0) for number in ids]}, schema=SCHEMA)


def two_files(storage: Storage) -> LocalTable:
    """A table of `ROWS`, to cluster."""
    create_table(storage, TableSpec("t", SCHEMA, ["id"], ["v"], [], "cow"))
    table = LocalTable(storage, {"hoodie.parquet.small.file.limit": 0})
    table.insert(batch(1, 2))
    table.insert(batch(3, 4))
    return table


def rows(table: LocalTable) -> dict[int, int]:
    found = table.read(["id", "v"])
    return dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))
