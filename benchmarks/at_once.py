"""`python -m benchmarks.at_once`: rows a second of one process and of two that upsert other partitions of one table.

Each process has a partition of its own, all of whose rows each of its batches changes. In table version 6 one makes its files after the
other; in version 9 both do at once. Besides, the share of a call for which the table's lock is held, which bounds what any number of
processors can do. Keys are looked up in their partition (`hoodie.index.type=SIMPLE`). The rows are counted at the end.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median

import pyarrow as pa

from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline.lock import LOCK_FILE, TableLock
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64()), ("text", pa.string())])
INDEX = {"hoodie.index.type": "SIMPLE"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", type=int, nargs="+", default=[6, 9])
    parser.add_argument("--types", nargs="+", choices=["cow", "mor"], default=["cow", "mor"])
    parser.add_argument("--rows", type=int, default=200_000, help="of a batch")
    parser.add_argument("--batches", type=int, default=6, help="of each process")
    parser.add_argument("--rounds", type=int, default=3, help="of each measurement, of which the median is shown")
    given = parser.parse_args()
    print(f"{os.cpu_count()} processors; {given.batches} batches of {given.rows:,} rows a process; rows a second\n")
    print("| type | version | 1 process | 2 processes | ratio | lock held of a call | load |\n|---|---|---|---|---|---|---|")
    for table_type in given.types:
        for version in given.versions:
            _report(table_type, version, given.rows, given.batches, given.rounds)
    return 0


def _report(table_type: str, version: int, rows: int, batches: int, rounds: int) -> None:
    one, two, held = [], [], []
    for _ in range(rounds):  # in turn, so that what else the machine does meets both
        for processes, found in ((1, one), (2, two)):
            with tempfile.TemporaryDirectory() as folder:
                speed, share = measure(Path(folder) / "t", table_type, version, processes, rows, batches)
            found.append(speed)
            if processes == 1:
                held.append(share)
    ratio, load = median(b / a for a, b in zip(one, two, strict=True)), os.getloadavg()[0]
    print(
        f"| {table_type} | {version} | {median(one):,.0f} | {median(two):,.0f} | {ratio:.2f} | {median(held):.0%} | {load:.1f} |",
        flush=True,
    )


def measure(path: Path, table_type: str, version: int, processes: int, rows: int, batches: int) -> tuple[float, float]:
    """Rows a second of all processes together, and the share of the time of the first one's calls for which it held the table's lock."""
    spec = TableSpec("t", SCHEMA, ["id"], [], ["part"], table_type, properties=INDEX, version=TableVersion(version))
    create_table(LocalStorage(str(path)), spec)
    table = HoodieTable.open(str(path))
    for number in range(processes):
        table.bulk_insert(batch(number, 0, rows))
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(processes), context.SimpleQueue()
    writers = [context.Process(target=write, args=(str(path), number, rows, batches, barrier, queue)) for number in range(processes)]
    for writer in writers:
        writer.start()
    told = [queue.get() for _ in writers]
    for writer in writers:
        writer.join()
    found = HoodieTable.open(str(path)).to_arrow(["id", "n"])
    assert found.num_rows == processes * rows, f"{found.num_rows} rows, not {processes * rows}"
    assert found.column("n").unique().to_pylist() == [batches], "not every row is as the last batch has it"
    seconds = max(end for _, end, _ in told) - min(begin for begin, _, _ in told)
    begin, end, held = told[0]
    return processes * batches * rows / seconds, held / (end - begin)


def batch(writer: int, number: int, rows: int) -> pa.Table:
    keys = [f"{writer}-{key:08}" for key in range(rows)]
    texts = [f"text {number} of {key * 7919 % 1_000_003}" for key in range(rows)]
    return pa.table([keys, [f"p{writer}"] * rows, [number] * rows, texts], schema=SCHEMA)


def write(path: str, writer: int, rows: int, batches: int, barrier: Barrier, queue: multiprocessing.SimpleQueue[tuple[float, ...]]) -> None:
    table, given = HoodieTable.open(path), [batch(writer, number, rows) for number in range(1, batches + 1)]
    # The first call of a process imports and opens what later ones have.
    table.upsert(batch(writer, 0, rows))
    clock = _Clock()
    barrier.wait()
    begin = time.monotonic()
    for one in given:
        table.upsert(one)
    queue.put((begin, time.monotonic(), clock.held))


class _Clock:
    """Seconds for which this process has held a table's lock since the clock was made."""

    def __init__(self) -> None:
        self.held = 0.0
        self._since = 0.0
        enter, leave = TableLock.__enter__, TableLock.__exit__

        def entered(lock: TableLock) -> TableLock:
            nested = lock.is_held
            enter(lock)
            if lock._file == LOCK_FILE and not nested:
                self._since = time.monotonic()
            return lock

        def left(lock: TableLock, *error: object) -> None:
            leave(lock, *error)  # type: ignore[arg-type]
            if lock._file == LOCK_FILE and not lock.is_held:
                self.held += time.monotonic() - self._since

        TableLock.__enter__, TableLock.__exit__ = entered, left  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    raise SystemExit(main())
