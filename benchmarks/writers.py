"""`python -m benchmarks.writers`: commits a second of 1, 2, 4 and 8 processes that write one table.

Each process upserts batches of ten rows with keys of its own into a table of eight partitions, one after the other, for some seconds; no
two processes have a key in common, all of them share the file groups. Shown beside the commits a second: how long one call of a writer
took, waiting for the others included. Copy-on-write tables and merge-on-read tables, with the inline services that are on by default. At
the end every acknowledged row is there, or there are no figures.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median, quantiles

import pyarrow as pa

from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64()), ("text", pa.string())])
PARTITIONS, BATCH = 8, 10
FIRST_ROWS = 10_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--types", nargs="+", choices=["cow", "mor"], default=["cow", "mor"])
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--rows", type=int, default=FIRST_ROWS, help="in the table before")
    given = parser.parse_args()
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    print(f"load (1, 5, 15 min): {load}; {os.cpu_count()} processors; {given.seconds:g} s each; milliseconds a call\n")
    print("| type | writers | commits | commits a second | median | 95 % | longest |\n|---|---|---|---|---|---|---|")
    for table_type in given.types:
        for writers in given.writers:
            with tempfile.TemporaryDirectory() as folder:
                report(table_type, writers, measure(Path(folder) / "t", table_type, writers, given.seconds, given.rows), given.seconds)
    return 0


def rows(writer: int, number: int) -> pa.Table:
    """The batch of a commit: new keys of that writer, and one that it has written before."""
    numbers = [*range(number * BATCH, number * BATCH + BATCH - 1), max(0, number - 1) * BATCH]
    return batch([f"w{writer}-{one}" for one in dict.fromkeys(numbers)], number)


def batch(keys: Sequence[str], number: int) -> pa.Table:
    parts = [f"p{sum(key.encode()) % PARTITIONS}" for key in keys]
    return pa.table([list(keys), parts, [number] * len(keys), [f"text of {key}" for key in keys]], schema=SCHEMA)


def measure(path: Path, table_type: str, writers: int, seconds: float, first_rows: int) -> list[list[float]]:
    """Seconds of every call, by writer."""
    create_table(LocalStorage(str(path)), TableSpec("t", SCHEMA, ["id"], [], ["part"], table_type))
    HoodieTable.open(str(path)).bulk_insert(batch([f"first-{number}" for number in range(first_rows)], 0))
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(writers), context.SimpleQueue()
    processes = [
        context.Process(target=write, args=(str(path), writer, seconds, barrier, queue)) for writer in range(writers)
    ]
    for process in processes:
        process.start()
    calls = [queue.get() for _ in processes]
    for process in processes:
        process.join()
    found = HoodieTable.open(str(path)).to_arrow(["id"]).column("id").to_pylist()
    expected = {key for writer, times in calls for number in range(len(times)) for key in rows(writer, number).column("id").to_pylist()}
    assert len(found) == len(set(found)) == len(expected) + first_rows, f"{len(found)} rows, acknowledged {len(expected) + first_rows}"
    assert expected <= set(found), "acknowledged rows are not there"
    return [times for _, times in calls]


def write(path: str, writer: int, seconds: float, barrier: Barrier, queue: multiprocessing.SimpleQueue[tuple[int, list[float]]]) -> None:
    table, times = HoodieTable.open(path), list[float]()
    # The first call of a process imports and opens what later ones have.
    table.upsert(rows(writer, 0))
    barrier.wait()
    end = time.monotonic() + seconds
    times.append(0.0)
    while (began := time.monotonic()) < end:
        table.upsert(rows(writer, len(times)))
        times.append(time.monotonic() - began)
    queue.put((writer, times))


def report(table_type: str, writers: int, calls: list[list[float]], seconds: float) -> None:
    times = [one * 1000 for own in calls for one in own[1:]]
    high = quantiles(times, n=20, method="inclusive")[-1]
    print(
        f"| {table_type} | {writers} | {len(times)} | {len(times) / seconds:.1f} | {median(times):.0f} | {high:.0f} | {max(times):.0f} |",
        flush=True,
    )


if __name__ == "__main__":
    raise SystemExit(main())
