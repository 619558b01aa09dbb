"""A writing process for tests that kill it: `python -m tests.crash.writer <mode> <table> <log> <name> <count>`.

Mode `upsert`: commit number n upserts the rows `<name>-<n>-0..4` and the row `last-<name>`; deletes nothing. Mode `count`: adds 1 to the
row `counter` by reading and writing under one lock, and inserts a row of its own. What was acknowledged goes to the log, a line each,
durably: `<instant> <n>`. Starts no JVM.
"""

from __future__ import annotations

import os
import sys
import time

import pyarrow as pa

from lakehouse_engine.actions.write.input import ArrowInput
from lakehouse_engine.actions.write.operation import execute_write
from lakehouse_engine.actions.write.request import WriteRequest
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.scan import plan_snapshot
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.view.table_state import TableState

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64())])
ROWS = 5


def rows_of(name: str, number: int) -> dict[str, tuple[str, int]]:
    """The rows of one commit by id: (part, n)."""
    rows = {f"{name}-{number}-{row}": (f"p{row % 3}", number) for row in range(ROWS)}
    return {**rows, f"last-{name}": ("p0", number)}


def as_batch(rows: dict[str, tuple[str, int]]) -> pa.Table:
    return pa.table([list(rows), [part for part, _ in rows.values()], [n for _, n in rows.values()]], schema=SCHEMA)


def acknowledge(log: int, text: str) -> None:
    os.write(log, f"{text}\n".encode())
    os.fsync(log)


def write(storage: LocalStorage, operation: WriteOperationType, rows: dict[str, tuple[str, int]]) -> str:
    """As `HoodieTable` does, without importing PySpark: the process is there sooner."""
    result = execute_write(storage, WriteRequest(operation, ArrowInput(as_batch(rows)), WriteOptions()), LocalRunner())
    return str(result.instant)


def increment(storage: LocalStorage, name: str, number: int) -> str:
    with TableLock(storage):
        stored = read_arrow(plan_snapshot(TableState.load(storage)), columns=["id", "n"]).to_pylist()
        value = next((row["n"] for row in stored if row["id"] == "counter"), 0)
        return write(storage, WriteOperationType.UPSERT, {"counter": ("p0", value + 1), f"{name}-{number}": ("p1", number)})


def main(mode: str, path: str, log_path: str, name: str, count: int, start_at: float) -> None:
    storage = LocalStorage(path)
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    acknowledge(log, "ready")
    time.sleep(max(0.0, start_at - time.time()))
    with open(log_path) as acknowledged:
        first = 1 + max((int(line.split()[1]) for line in acknowledged if line[0].isdigit()), default=-1)
    # A commit that was published and not acknowledged is done again, with the same rows.
    for number in range(first, first + count):
        if mode == "upsert":
            instant = write(storage, WriteOperationType.UPSERT, rows_of(name, number))
        elif mode == "count":
            instant = increment(storage, name, number)
        else:
            instant = write(storage, WriteOperationType.INSERT, {f"{name}-{number}": ("p1", number)})
        acknowledge(log, f"{instant} {number}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]), float(sys.argv[6]) if len(sys.argv) > 6 else 0.0)
