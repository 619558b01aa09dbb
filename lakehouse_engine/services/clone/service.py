"""`clone_table`: makes, in one commit, a table from what another one is at a moment."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lakehouse_engine.commit.transaction import begin
from lakehouse_engine.engine import LocalRunner, TaskRunner, local_runner, looking_runner
from lakehouse_engine.errors import InstantNotFoundError, LakehouseError, TimelineError
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.format.avro.arrow_avro import table_avro_schema
from lakehouse_engine.format.file_names import PARTITION_METAFILE, parse_base_file
from lakehouse_engine.format.partition_metafile import render_partition_metafile
from lakehouse_engine.format.properties import CHECKSUM_KEY
from lakehouse_engine.index.consistent import BUCKETS, refuse_changing_buckets
from lakehouse_engine.index.hbase.entries import has_hbase_index
from lakehouse_engine.model.commit_metadata import SCHEMA_KEY, HoodieCommitMetadata
from lakehouse_engine.model.files import join_path
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.order import is_later
from lakehouse_engine.model.table_config import HBASE_INDEX_KEY, MATERIALIZED_KEY, ROWS_KEEP_PARTITIONS_KEY, TableConfig, TableType
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType, WriteResult
from lakehouse_engine.options import INDEX_TYPE, STORED_PREFIX, CompactionOptions, WriteOptions, layered, stored_defaults
from lakehouse_engine.read.moments import moment_of
from lakehouse_engine.read.pruning import has_other_writers, paths_may_tell
from lakehouse_engine.read.scan import ScanPlan, plan_snapshot
from lakehouse_engine.services.clone.files import BringTask, Brought, CloneFiles, bring_file
from lakehouse_engine.services.compact.completion import file_context
from lakehouse_engine.services.compact.merging import CompactTask, compact_slice
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import in_object_store
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.view.archive_gaps import ACCEPTED_ARCHIVE, LOST_ARCHIVE
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.result import result_of
from lakehouse_engine.write.tasks.base_files import created_stat

logger = logging.getLogger(__name__)

RunnerOf = Callable[[Storage, Mapping[str, Any]], TaskRunner]
"""Returns the runner for a table's tasks, by the given options."""

SOURCE_KEY, INSTANT_KEY, FILES_KEY = "lakehouse.clone.source", "lakehouse.clone.instant", "lakehouse.clone.files"
"""Extra metadata of the clone's commit: the source table, its instant, and how the files were brought."""
_THREADS = 8
"""For files that are linked or copied: these threads wait for the disk."""
_OWN = frozenset(
    {
        CHECKSUM_KEY,
        MATERIALIZED_KEY,
        LOST_ARCHIVE,
        ACCEPTED_ARCHIVE,
        "hoodie.table.metadata.partitions",
        "hoodie.table.metadata.partitions.inflight",
        "hoodie.table.index.defs.path",
        HBASE_INDEX_KEY,
    }
)
"""Properties about the source's files or the origin of its rows, which are not copied: a clone of a materialized view is a table."""


@dataclass(frozen=True, slots=True)
class CloneRequest:
    """`name`: the new table's; `source`: name of the source for the commit; `as_of`: as in time travel (None: now).

    `options` are `hoodie.*` keys that override those stored in the source, for slices that are merged.
    """

    name: str
    source: str
    as_of: Any = None
    files: CloneFiles = CloneFiles.AUTO
    options: Mapping[str, Any] | None = None
    lock_timeout_ms: int = 60_000


def clone_table(state: TableState, target: Storage, request: CloneRequest, runner_of: RunnerOf) -> WriteResult:
    """Make a table in the empty `target`, with the rows, columns, keys, partitions and options of `state`, the source.

    Does not change or lock the source. A failure leaves `target` half made: the caller removes it. Raises as `plan_snapshot` and
    `moment_of`, `InstantNotFoundError` if the source had no commit yet, `UnsupportedTableError` for tables that cannot be written to,
    `TimelineError` if the source's commits are not in this machine's past, and as `bring_file`.
    """
    options = layered(state.config.prefixed(STORED_PREFIX), request.options or {})
    write_options = WriteOptions.read(options)
    refuse_changing_buckets(state.storage, state.config, write_options, may_be_stored=state.may_have_folder(BUCKETS))
    moment = None if request.as_of is None else moment_of(state, request.as_of)
    plan = plan_snapshot(state, moment)
    if moment is not None and plan.instant is None and not plan.files and not plan.logged:
        raise InstantNotFoundError(f"{state.config.name} has no commit as of {moment}", table=state.config.name, instant=moment)
    schema = table_avro_schema(request.name, plan.schema, allow_timestamp_ntz=True)
    ConfigStore(target).create(_config(state, request.name, schema))
    with begin(target, lock_timeout_ms=request.lock_timeout_ms) as transaction:
        transaction.start(_action(state.config))
        _check_later(transaction.instant_time, plan.instant, state.config)
        transaction.inflight(HoodieCommitMetadata(operation_type=WriteOperationType.BULK_INSERT))
        cloning = _Cloning(state, plan, target, transaction.instant_time)
        brought = cloning.bring(request.files, options)
        merged = [] if plan.reader is None else cloning.merge(plan.reader, schema, options, runner_of(target, options))
        cloning.make_durable([*(one.stat for one in brought), *merged])
        metadata = _metadata(schema, request.source, moment if plan.instant is None else plan.instant, brought, merged)
        transaction.complete(metadata)
        logger.info("%s is a clone of %s: %s", request.name, request.source, metadata.extra_metadata[FILES_KEY])
        return result_of(transaction.state, transaction.instant_time, metadata)


@dataclass(frozen=True, slots=True)
class _Cloning:
    """Makes the files of one clone, in `target` under the instant `time`."""

    state: TableState
    plan: ScanPlan
    target: Storage
    time: str

    def bring(self, how: CloneFiles, options: Mapping[str, Any]) -> list[Brought]:
        """Bring base files without logs, as they are."""
        is_stores = in_object_store(self.target)
        runner = looking_runner(local_runner(options), self.target) if is_stores else LocalRunner(_THREADS)
        runner.run(partial(_mark_partition, self.target, self.time), self._partitions(), name="clone")
        tasks = [BringTask(self.plan.storage, self.target, self.time, base, how) for base in self.plan.files]
        return runner.run(bring_file, tasks, name="clone")

    def merge(self, reader: SliceReader, schema: str, options: Mapping[str, Any], runner: TaskRunner) -> list[HoodieWriteStat]:
        """Merge slices with logs, as a compaction does."""
        of_source = file_context(self.state, self.time, schema, WriteOptions.read(options))
        context = replace(of_source, storage=self.target, schema=self.plan.schema)
        memory = CompactionOptions.read(options).memory_bytes
        tasks = [CompactTask(context, number, reader, piece, memory) for number, piece in enumerate(self.plan.logged)]
        return [_as_created(stat) for stat in runner.run(compact_slice, tasks, name="clone")]

    def _partitions(self) -> list[str]:
        merged = {piece.slice.partition_path for piece in self.plan.logged}
        return sorted(merged | {file.partition_path for file in self.plan.files})

    def make_durable(self, stats: Sequence[HoodieWriteStat]) -> None:
        """Make the names of linked files durable."""
        for partition in sorted({stat.partition_path or "" for stat in stats}):
            self.target.sync(partition)


def _mark_partition(storage: Storage, time: str, partition: str) -> None:
    """Write the partition's metafile, without which Hudi does not see the partition."""
    depth = partition.count("/") + 1 if partition else 0
    storage.create(join_path(partition, PARTITION_METAFILE), render_partition_metafile(time, depth))


def _as_created(stat: HoodieWriteStat) -> HoodieWriteStat:
    """A compaction's stat as that of a new file."""
    path = stat.path or ""
    file = parse_base_file(stat.partition_path or "", path.rpartition("/")[2], stat.file_size_in_bytes)
    return created_stat(file, stat.file_size_in_bytes, stat.num_writes)


def _action(config: TableConfig) -> Action:
    return Action.DELTA_COMMIT if config.table_type is TableType.MERGE_ON_READ else Action.COMMIT


def _config(state: TableState, name: str, schema: str) -> TableConfig:
    kept = {key: value for key, value in state.config.properties.items() if key not in _OWN}
    changed = {"hoodie.table.name": name, "hoodie.table.create.schema": schema}
    # All commits of the clone are this engine's, so its paths would be trusted; but other programs may have written these rows.
    doubtful = {} if _paths_tell(state) else {ROWS_KEEP_PARTITIONS_KEY: "true"}
    # The entries in HBase are the source's.
    without = stored_defaults({INDEX_TYPE.key: "GLOBAL_SIMPLE"}) if has_hbase_index(state.config) else {}
    return TableConfig({**kept, **changed, **doubtful, **without})


def _paths_tell(state: TableState) -> bool:
    try:
        return paths_may_tell(state.config) and not has_other_writers(state, state.timeline.completed().writes())
    except LakehouseError as error:
        logger.info("whether rows of %s are where their partition paths say is not known: %s", state.config.name, error)
        return False


def _check_later(time: str, newest: str | None, config: TableConfig) -> None:
    """Raise `TimelineError` if the clone's commit would not be later than the rows' commits."""
    if newest is not None and not is_later(time, newest):
        raise TimelineError(
            f"the newest commit to be cloned, {newest}, is not before {time}, which it is now here: the clock of this machine is behind"
            " that of who wrote it; correct it",
            table=config.name,
            instant=newest,
        )


def _metadata(
    schema: str, source: str, instant: str | None, brought: Sequence[Brought], merged: Sequence[HoodieWriteStat]
) -> HoodieCommitMetadata:
    stats: dict[str, list[HoodieWriteStat]] = defaultdict(list)
    for stat in (*(one.stat for one in brought), *merged):
        stats[stat.partition_path or ""].append(stat)
    linked = sum(one.is_linked for one in brought)
    files = f"{linked} linked, {len(brought) - linked} copied, {len(merged)} merged with their logs"
    return HoodieCommitMetadata(
        partition_to_write_stats={path: tuple(group) for path, group in stats.items()},
        operation_type=WriteOperationType.BULK_INSERT,
        extra_metadata={SCHEMA_KEY: schema, SOURCE_KEY: source, INSTANT_KEY: instant, FILES_KEY: files},
    )
