"""A table in any storage, changed and read in this process without Spark: each method is one action of the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakehouse_engine.engine import LocalRunner, TaskRunner
from lakehouse_engine.model.services import (
    ArchiveResult,
    CleanResult,
    ClusteringResult,
    CompactionResult,
    RestoreResult,
    RollbackResult,
    Savepoint,
    VersionChange,
)
from lakehouse_engine.model.write_stats import WriteOperationType, WriteResult
from lakehouse_engine.options import STORED_PREFIX, WriteOptions
from lakehouse_engine.options.clustering import ClusteringOptions
from lakehouse_engine.options.services import ArchiveOptions, CleanOptions, CompactionOptions
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.services import archive, clean, cluster, compact
from lakehouse_engine.services.versions import Compacting, change_version
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.undo import savepoint
from lakehouse_engine.undo.restore import restore
from lakehouse_engine.undo.rollback import rollback
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.batch.input import ArrowInput
from lakehouse_engine.write.operation import execute_write
from lakehouse_engine.write.request import WriteRequest

Op = WriteOperationType


class LocalTable:
    """One thread runs all tasks, so that the order of storage calls is the same every time. `options` are `hoodie.*` keys."""

    def __init__(self, storage: Storage, options: Mapping[str, Any] | None = None, lock_timeout_ms: int = 60_000) -> None:
        self.storage, self.options, self.lock_timeout_ms = storage, dict(options or {}), lock_timeout_ms
        self.runner = LocalRunner(1)

    @property
    def state(self) -> TableState:
        return TableState.load(self.storage)

    def instants(self, state: TableState | None = None) -> list[str]:
        """Times of the completed writes of the active timeline, oldest first."""
        return [instant.requested_time for instant in (state or self.state).timeline.completed().writes()]

    def change_version(self, to: int) -> VersionChange:
        """Up or down, as it lies."""
        compacting = Compacting(replace(CompactionOptions.read(self.options), timeout_seconds=0), self._write_options(), self.runner)
        return change_version(
            self.storage,
            to,
            upgrade=to > self.state.config.version,
            compacting=compacting,
            lock_timeout_ms=self.lock_timeout_ms,
        )

    # rows

    def write(self, operation: Op, rows: pa.Table | None, **arguments: Any) -> WriteResult:
        data = None if rows is None else ArrowInput(rows)
        return execute_write(self.storage, WriteRequest(operation, data, self._write_options(), **arguments), self.runner)

    def bulk_insert(self, rows: pa.Table) -> WriteResult:
        return self.write(Op.BULK_INSERT, rows)

    def insert(self, rows: pa.Table) -> WriteResult:
        return self.write(Op.INSERT, rows)

    def upsert(self, rows: pa.Table, *, columns: Sequence[str] | None = None, delete_keys: pa.Table | None = None) -> WriteResult:
        keys = None if delete_keys is None else ArrowInput(delete_keys)
        return self.write(Op.UPSERT, rows, update_columns=tuple(columns) if columns else None, delete_keys=keys)

    def delete(self, keys: pa.Table) -> WriteResult:
        return self.write(Op.DELETE, keys)

    def insert_overwrite(self, rows: pa.Table) -> WriteResult:
        return self.write(Op.INSERT_OVERWRITE, rows)

    def insert_overwrite_table(self, rows: pa.Table) -> WriteResult:
        return self.write(Op.INSERT_OVERWRITE_TABLE, rows)

    def delete_partitions(self, partitions: Sequence[str]) -> WriteResult:
        return self.write(Op.DELETE_PARTITION, None, partitions=tuple(partitions))

    def read(
        self, columns: Sequence[str] | None = None, *, meta_columns: bool = False, state: TableState | None = None, **query: Any
    ) -> pa.Table:
        """`query` as `HoodieTable.to_arrow` takes it: query, as_of, begin, end. `state` is the table now, if it is known."""
        asked = Query(query.pop("query", "snapshot"), **query)
        plan = plan_query(state or self.state, asked, self.options)
        return read_arrow(plan, columns=columns, meta_columns=meta_columns, runner=self.runner)

    # services

    def schedule_compaction(self, *, log_compaction: bool = False, blocks: int = 2) -> CompactionResult:
        """A log compaction is one of slices with as many log blocks."""
        options = replace(self._compaction(), log_blocks=blocks)
        return compact.schedule(self.storage, options, lock_timeout_ms=self.lock_timeout_ms, log_compaction=log_compaction)

    def run_compaction(self, *, log_compaction: bool = False) -> CompactionResult:
        return compact.run(
            self.storage,
            self._compaction(),
            self._write_options(),
            self.runner,
            lock_timeout_ms=self.lock_timeout_ms,
            log_compaction=log_compaction,
        )

    def compact(self) -> CompactionResult:
        return compact.schedule_and_run(
            self.storage, self._compaction(), self._write_options(), self.runner, lock_timeout_ms=self.lock_timeout_ms
        )

    def schedule_clustering(self, *order_by: str, **options: Any) -> ClusteringResult:
        """Planned at once, whatever was committed; `options` are fields of `ClusteringOptions`."""
        return cluster.schedule(
            self.storage, self._clustering(order_by, options), self._write_options(), lock_timeout_ms=self.lock_timeout_ms
        )

    def run_clustering(self, instant: str | None = None, runner: TaskRunner | None = None) -> ClusteringResult:
        return cluster.run(
            self.storage,
            self._clustering((), {}),
            self._write_options(),
            runner or self.runner,
            instant=instant,
            lock_timeout_ms=self.lock_timeout_ms,
        )

    def cluster(self, *order_by: str, **options: Any) -> ClusteringResult:
        return cluster.schedule_and_run(
            self.storage, self._clustering(order_by, options), self._write_options(), self.runner, lock_timeout_ms=self.lock_timeout_ms
        )

    def _clustering(self, order_by: Sequence[str], options: Mapping[str, Any]) -> ClusteringOptions:
        """As of a compaction, a dead executor is taken over at once."""
        limit = None if order_by else 300 * 1024 * 1024
        return ClusteringOptions(**{"sort_columns": tuple(order_by), "small_file_limit": limit, "timeout_seconds": 0, **options})

    def _compaction(self) -> CompactionOptions:
        """Due at once; a dead executor is taken over at once too, for in memory there is no lock that would die with it."""
        return CompactionOptions(delta_commits=1, timeout_seconds=0)

    def _write_options(self) -> WriteOptions:
        return WriteOptions.read({**self.state.config.prefixed(STORED_PREFIX), **self.options})

    def clean(self, retain: int) -> CleanResult:
        options = CleanOptions(commits_retained=retain)
        return clean.clean(self.storage, options, lock_timeout_ms=self.lock_timeout_ms)

    def archive(self, least: int, most: int, *, retain: int = 1, merged: int = 3) -> ArchiveResult:
        options, kept = ArchiveOptions(min_commits=least, max_commits=most, merged_files=merged), CleanOptions(commits_retained=retain)
        return archive.archive(
            self.storage, options, lock_timeout_ms=self.lock_timeout_ms, clean=kept, compaction=CompactionOptions(delta_commits=1)
        )

    def savepoint(self, instant: str | None = None, name: str | None = None) -> Savepoint:
        return savepoint.create_savepoint(self.storage, instant=instant, name=name, lock_timeout_ms=self.lock_timeout_ms)

    def delete_savepoint(self, name: str) -> Savepoint:
        return savepoint.delete_savepoint(self.storage, name, lock_timeout_ms=self.lock_timeout_ms)

    def rollback(self, instant: str | None = None) -> RollbackResult:
        return rollback(self.storage, instant=instant, lock_timeout_ms=self.lock_timeout_ms)

    def restore(self, savepoint: str | None = None, *, to: str | None = None, cascade: bool = False) -> RestoreResult:
        return restore(self.storage, savepoint=savepoint, to=to, cascade=cascade, lock_timeout_ms=self.lock_timeout_ms)
