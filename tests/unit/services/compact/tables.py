"""Merge-on-read tables to compact, made file by file, and how these tests compact and read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.model.services import CompactionResult
from lakehouse_engine.options import CompactionOptions, WriteOptions
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.scan import plan_snapshot
from lakehouse_engine.services.compact import run, schedule
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.view.table_state import TableState
from tests.unit.read.hand_made import instant
from tests.unit.read.hand_made_logs import HandMadeLogTable, data_block, delete_block

T1, T2, T3, T4, T5 = (instant(number) for number in range(1, 6))
TIMEOUT_MS = 10_000


def table_with_logs(folder: Path, properties: dict[str, str] | None = None) -> HandMadeLogTable:
    """Group `a`: k1 and k2 with an update of k2, a new k3, a deleted k1. Group `b`: untouched."""
    table = HandMadeLogTable(folder, properties)
    table.write(T1, {"a": {"k1": (T1, 1), "k2": (T1, 2)}, "b": {"k8": (T1, 8)}})
    table.append(T2, T1, 1, data_block(T2, {"k2": 20, "k3": 3}))
    table.append(T3, T1, 2, delete_block(T3, ["k1"]))
    return table


ROWS = {"k2": (T2, 20), "k3": (T2, 3), "k8": (T1, 8)}
"""Key -> (commit time, n) of that table."""


def storage_of(table: HandMadeLogTable) -> LocalStorage:
    return LocalStorage(str(table.folder))


def schedule_now(table: HandMadeLogTable, options: CompactionOptions | None = None, **more: Any) -> CompactionResult:
    return schedule(storage_of(table), options or CompactionOptions(), lock_timeout_ms=TIMEOUT_MS, **more)


def run_now(
    table: HandMadeLogTable, options: CompactionOptions | None = None, *, storage: Storage | None = None, **more: Any
) -> CompactionResult:
    where, arguments = storage or storage_of(table), {"lock_timeout_ms": TIMEOUT_MS, **more}
    return run(where, options or CompactionOptions(), WriteOptions(), LocalRunner(), **arguments)


def rows(table: HandMadeLogTable, as_of: str | None = None, *, read_optimized: bool = False) -> dict[str, tuple[str, int]]:
    plan = plan_snapshot(TableState.load(storage_of(table)), as_of, read_optimized=read_optimized)
    found = read_arrow(plan, meta_columns=True)
    names = ("_hoodie_record_key", "_hoodie_commit_time", "n")
    return {key: (time, n) for key, time, n in zip(*(found.column(name).to_pylist() for name in names), strict=True)}


def files(table: HandMadeLogTable) -> set[str]:
    """Every file of the table, locks aside."""
    found = (path.relative_to(table.folder) for path in table.folder.rglob("*") if path.is_file())
    return {str(path) for path in found if ".locks" not in path.parts}
