"""`python -m benchmarks.cloning`: what a clone costs by links, by copies, and as a table written anew of what is read.

Two tables of the same rows: copy-on-write, and merge-on-read with a log on every tenth partition, of which a clone merges the slices. Each
way is taken `--repeats` times, by turns, with a clone dropped before the next is made; the median is shown, and how often the slower way's
time it goes into. Disk space is what the clone takes beside its source: files with a second name take none.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from lakehouse_engine import Lakehouse

WAYS = ("link", "copy", "written anew")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--rows", type=int, default=50_000, help="of each partition")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the tables are made; a temporary folder otherwise")
    given = parser.parse_args()
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    print(f"load (1, 5, 15 min): {load}; {os.cpu_count()} processors; {given.partitions:,} partitions of {given.rows:,} rows", flush=True)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        lake = Lakehouse(folder)
        return max(_measure(lake, kind, given.partitions, given.rows, given.repeats) for kind in ("cow", "mor"))


def _measure(lake: Lakehouse, kind: str, partitions: int, rows: int, repeats: int) -> int:
    name = f"source.{kind}"
    _make(lake, kind, partitions, rows)
    size = _bytes(Path(lake.table(name).path), set())
    print(f"\n{kind}: {size / 1e6:,.0f} MB\n| way | seconds | of the slowest | MB taken |\n|---|---:|---:|---:|", flush=True)
    ways: dict[str, Callable[[], object]] = {
        "link": lambda: lake.clone(name, "target.t", files="link"),
        "copy": lambda: lake.clone(name, "target.t", files="copy"),
        "written anew": lambda: _write_anew(lake, name, kind),
    }
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    taken: dict[str, int] = {}
    for _ in range(repeats):
        for way in WAYS:
            began = time.perf_counter()
            ways[way]()
            seconds[way].append(time.perf_counter() - began)
            if lake.table("target.t").to_arrow(columns=["id"]).num_rows != partitions * rows:
                print(f"{way}: the clone has not the rows of its source", flush=True)
                return 1
            taken[way] = _bytes(Path(lake.table("target.t").path), _inodes(Path(lake.table(name).path)))
            lake.drop_table("target.t")
    medians = {way: statistics.median(found) for way, found in seconds.items()}
    slowest = max(medians.values())
    for way, median in medians.items():
        print(f"| {way} | {median:.2f} | {slowest / median:.1f} | {taken[way] / 1e6:,.1f} |", flush=True)
    return 0


def _make(lake: Lakehouse, kind: str, partitions: int, rows: int) -> None:
    table = lake.create_table(f"source.{kind}", schema=_rows(0, 1).schema, record_key=["id"], partition_by=["day"], table_type=kind)
    for first in range(0, partitions, 10):
        table.bulk_insert(pa.concat_tables(_rows(day, rows) for day in range(first, min(first + 10, partitions))))
    table.upsert(pa.concat_tables(_rows(day, max(1, rows // 100)) for day in range(0, partitions, 10)))


def _write_anew(lake: Lakehouse, name: str, kind: str) -> None:
    source = lake.table(name)
    target = lake.create_table("target.t", schema=source.schema, record_key=["id"], partition_by=["day"], table_type=kind)
    target.bulk_insert(source.to_arrow())


def _rows(day: int, count: int) -> pa.Table:
    chance = np.random.default_rng(day)
    return pa.table(
        {
            "id": np.arange(count, dtype=np.int64) + day * 10_000_000,
            "amount": chance.random(count),
            "code": chance.integers(0, 1 << 40, count),
            "day": [f"d{day:05}"] * count,
        }
    )


def _files(path: Path) -> Iterator[os.stat_result]:
    return (file.stat() for file in path.rglob("*") if file.is_file())


def _inodes(path: Path) -> set[int]:
    return {status.st_ino for status in _files(path)}


def _bytes(path: Path, shared: set[int]) -> int:
    return sum(status.st_size for status in _files(path) if status.st_ino not in shared)


if __name__ == "__main__":
    raise SystemExit(main())
