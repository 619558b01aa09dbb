"""A table in any storage, changed and read in this process without Spark: each method is one action of the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa

from lakehouse_engine.actions.write.input import ArrowInput
from lakehouse_engine.actions.write.operation import execute_write
from lakehouse_engine.actions.write.request import WriteRequest
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.model.write_stats import WriteOperationType, WriteResult
from lakehouse_engine.options import STORED_PREFIX, WriteOptions
from lakehouse_engine.options.services import ArchiveOptions, CleanOptions, CompactionOptions
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.table_state import TableState

Op = WriteOperationType


def action(module: str, name: str) -> Any:
    return getattr(import_module(f"lakehouse_engine.actions.{module}"), name)


class LocalTable:
    """One thread runs all tasks, so that the order of storage calls is the same every time. `options` are `hoodie.*` keys."""

    def __init__(self, storage: Storage, options: Mapping[str, Any] | None = None, lock_timeout_ms: int = 60_000) -> None:
        self.storage, self.options, self.lock_timeout_ms = storage, dict(options or {}), lock_timeout_ms
        self.runner = LocalRunner(1)

    @property
    def state(self) -> TableState:
        return TableState.load(self.storage)

    # rows

    def write(self, operation: Op, rows: pa.Table | None, **arguments: Any) -> WriteResult:
        options = {**self.state.config.prefixed(STORED_PREFIX), **self.options}
        data = None if rows is None else ArrowInput(rows)
        return execute_write(self.storage, WriteRequest(operation, data, WriteOptions.read(options), **arguments), self.runner)

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
        asked = Query(query.get("query", "snapshot"), query.get("as_of"), query.get("begin"), query.get("end"))
        return read_arrow(plan_query(state or self.state, asked), columns=columns, meta_columns=meta_columns, runner=self.runner)

    # services

    def schedule_compaction(self, *, log_compaction: bool = False) -> Any:
        options = CompactionOptions.read({"hoodie.compact.inline.max.delta.commits": 1, "hoodie.log.compaction.blocks.threshold": 2})
        return action("compact", "schedule")(
            self.storage, options, lock_timeout_ms=self.lock_timeout_ms, log_compaction=log_compaction
        )

    def run_compaction(self, instant: str | None = None) -> Any:
        write = WriteOptions.read({**self.state.config.prefixed(STORED_PREFIX), **self.options})
        return action("compact", "run")(
            self.storage, CompactionOptions.read(self.options), write, self.runner, instant=instant, lock_timeout_ms=self.lock_timeout_ms
        )

    def compact(self) -> Any:
        options = CompactionOptions.read({"hoodie.compact.inline.max.delta.commits": 1})
        write = WriteOptions.read({**self.state.config.prefixed(STORED_PREFIX), **self.options})
        return action("compact", "schedule_and_run")(self.storage, options, write, self.runner, lock_timeout_ms=self.lock_timeout_ms)

    def clean(self, retain: int) -> Any:
        options = CleanOptions.read({"hoodie.clean.commits.retained": retain})
        return action("clean", "clean")(self.storage, options, lock_timeout_ms=self.lock_timeout_ms)

    def archive(self, least: int, most: int, *, retain: int = 1) -> Any:
        options = ArchiveOptions(min_commits=least, max_commits=most)
        clean = CleanOptions.read({"hoodie.clean.commits.retained": retain})
        return action("archive", "archive")(self.storage, options, lock_timeout_ms=self.lock_timeout_ms, clean=clean)

    def savepoint(self, instant: str | None = None, name: str | None = None) -> Any:
        return action("savepoint", "create_savepoint")(
            self.storage, instant=instant, name=name, comment="", lock_timeout_ms=self.lock_timeout_ms
        )

    def delete_savepoint(self, savepoint: str) -> Any:
        return action("savepoint", "delete_savepoint")(self.storage, savepoint, lock_timeout_ms=self.lock_timeout_ms)

    def rollback(self, instant: str | None = None) -> Any:
        return action("rollback.request", "rollback")(self.storage, instant=instant, lock_timeout_ms=self.lock_timeout_ms)

    def restore(self, savepoint: str | None = None, *, to: str | None = None, cascade: bool = False) -> Any:
        return action("restore.request", "restore")(
            self.storage, savepoint=savepoint, to=to, cascade=cascade, lock_timeout_ms=self.lock_timeout_ms
        )
