"""Compaction after commits, as `hoodie.compact.*` options ask for it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.options import CompactionOptions, ServiceOptions, WriteOptions
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.scan import plan_snapshot
from lakehouse_engine.services.compact import schedule
from lakehouse_engine.services.inline import after_commit
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.batch.input import ArrowInput
from lakehouse_engine.write.create import TableSpec, create_table
from lakehouse_engine.write.operation import execute_write
from lakehouse_engine.write.request import WriteRequest

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


class ServicedTable:
    """Upserts, each followed by what the options ask for."""

    def __init__(self, folder: Path, table_type: str = "mor", **options: Any) -> None:
        self.storage, self.rounds = LocalStorage(str(folder)), 0
        self.options = {**QUIET, **{f"hoodie.{key.replace('_', '.')}": value for key, value in options.items()}}
        spec = TableSpec("t", SCHEMA, record_key=("id",), ordering_fields=("ts",), table_type=table_type)
        create_table(self.storage, spec)

    def upsert(self, *keys: str) -> None:
        self.rounds += 1
        count = len(keys)
        rows = pa.table([list(keys), [self.rounds] * count, [f"v{self.rounds}"] * count], schema=SCHEMA)
        options = WriteOptions(lock_timeout_ms=10_000)
        execute_write(self.storage, WriteRequest(WriteOperationType.UPSERT, ArrowInput(rows), options), LocalRunner())
        after_commit(self.storage, ServiceOptions.read(self.options), options, LocalRunner())

    @property
    def state(self) -> TableState:
        return TableState.load(self.storage)

    def operations(self) -> list[str]:
        """What completed, oldest first; pending compactions as such."""
        found = []
        for instant in self.state.timeline:
            done = instant.is_completed
            found.append(str(self.state.commit_metadata(instant).operation_type) if done else f"{instant.action} {instant.state}")
        return found

    def rows(self, *, read_optimized: bool = False) -> dict[str, str]:
        found = read_arrow(plan_snapshot(self.state, read_optimized=read_optimized))
        return dict(zip(found.column("id").to_pylist(), found.column("v").to_pylist(), strict=True))


def test_an_inline_compaction_runs_when_so_many_delta_commits_have_gathered(tmp_path: Path) -> None:
    table = ServicedTable(tmp_path, compact_inline=True)
    table.options["hoodie.compact.inline.max.delta.commits"] = 3
    for keys in ("abc", "a", "b", "c", "a", "b"):
        table.upsert(*keys)
    assert table.operations() == [*["UPSERT"] * 3, "COMPACT", *["UPSERT"] * 3, "COMPACT"]
    assert table.rows() == table.rows(read_optimized=True) == {"a": "v5", "b": "v6", "c": "v4"}


def test_without_the_option_nothing_is_compacted(tmp_path: Path) -> None:
    table = ServicedTable(tmp_path)
    for _ in range(7):
        table.upsert("a")
    assert table.operations() == ["UPSERT"] * 7
    assert table.rows() == {"a": "v7"}


def test_scheduling_inline_leaves_the_work_to_another_process(tmp_path: Path) -> None:
    table = ServicedTable(tmp_path, compact_schedule_inline=True)
    table.options["hoodie.compact.inline.max.delta.commits"] = 2
    for keys in ("ab", "a", "b", "a"):
        table.upsert(*keys)
    assert table.operations() == ["UPSERT", "UPSERT", "compaction requested", "UPSERT", "UPSERT"]
    assert table.rows() == {"a": "v4", "b": "v3"}
    assert table.rows(read_optimized=True) == {"a": "v1", "b": "v1"}


def test_an_inline_compaction_first_runs_what_is_pending(tmp_path: Path) -> None:
    table = ServicedTable(tmp_path, compact_inline=True)
    table.upsert("a", "b")
    table.upsert("a")
    schedule(table.storage, CompactionOptions(), lock_timeout_ms=1000)
    table.upsert("b")
    assert table.operations() == ["UPSERT", "UPSERT", "COMPACT", "UPSERT"]
    assert table.rows() == {"a": "v2", "b": "v3"}
    assert table.rows(read_optimized=True) == {"a": "v2", "b": "v1"}


def test_a_pending_compaction_that_another_process_runs_is_left_to_it(tmp_path: Path) -> None:
    table = ServicedTable(tmp_path, compact_inline=True)
    table.upsert("a")
    table.upsert("a")
    time = schedule(table.storage, CompactionOptions(), lock_timeout_ms=1000).instant
    done: list[list[str]] = []

    def write(_: int) -> None:
        table.upsert("a")
        done.append(table.operations())

    with TableLock(table.storage, 1000, file=f".hoodie/.locks/compaction-{time}.lock"):
        LocalRunner(2).run(write, [0, 1], name="writers")
    assert [operations.count("compaction requested") for operations in done] == [1, 1]
    assert table.rows() == {"a": "v4"}


def test_a_failing_service_is_a_warning_and_the_commit_stands(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = ServicedTable(tmp_path, compact_inline=True)
    table.options |= {"hoodie.compact.inline.max.delta.commits": 1, "hoodie.compaction.strategy": "DayBasedCompactionStrategy"}
    with caplog.at_level(logging.WARNING):
        table.upsert("a")
        table.upsert("a")
    assert "is committed, but the compaction after it failed" in caplog.text
    assert table.rows() == {"a": "v2"}


def test_the_result_of_a_write_says_which_services_failed(tmp_path: Path) -> None:
    lake = Lakehouse(str(tmp_path))
    lake.create_schema("s")
    schema = pa.schema([("id", pa.int64())])
    table = lake.create_table("s.t", schema=schema, record_key=["id"], table_type="mor")
    options = {"hoodie.compact.inline": True, "hoodie.compact.inline.max.delta.commits": 1}
    options |= {"hoodie.compaction.strategy": "DayBasedCompactionStrategy"}
    rows = pa.table({"id": [1]}, schema=schema)
    assert table.upsert(rows).failed_services == ()
    failed = table.upsert(rows, options=options).failed_services
    assert len(failed) == 1
    assert failed[0].startswith("the compaction after the commit failed: ")
    assert "the partition '' is no day" in failed[0]


def test_small_log_blocks_are_merged_inline(tmp_path: Path) -> None:
    table = ServicedTable(tmp_path, log_compaction_inline=True, log_compaction_blocks_threshold=2)
    for keys in ("abc", "a", "b", "c"):
        table.upsert(*keys)
    assert table.operations().count("LOG_COMPACT") == 2
    assert table.rows() == {"a": "v2", "b": "v3", "c": "v4"}
    assert table.rows(read_optimized=True) == dict.fromkeys("abc", "v1")


def test_copy_on_write_tables_are_not_asked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = ServicedTable(tmp_path, "cow", compact_inline=True, log_compaction_inline=True)
    table.options["hoodie.compact.inline.max.delta.commits"] = 1
    with caplog.at_level(logging.WARNING):
        table.upsert("a")
    assert not caplog.records
    assert not [instant for instant in table.state.timeline if instant.action is Action.COMPACTION]
