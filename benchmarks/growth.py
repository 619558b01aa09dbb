"""What small actions cost as a table grows: storage calls by their verb, and milliseconds of CPU, at several sizes.

`python -m benchmarks.growth` builds tables of one-row files in a temporary folder (`--folder`: below another one) and prints a Markdown
table a kind of growth; `--full` takes 2,000 partitions, 20,000 files and 3,000 commits.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.storage.base import Listing, StoredFile
from lakehouse_engine.storage.local import LocalStorage

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("day", pa.string())])
TABLES = (("cow", "SIMPLE"), ("cow", "GLOBAL_SIMPLE"), ("mor", "SIMPLE"), ("mor", "GLOBAL_SIMPLE"), ("mor", "BUCKET"))
_ALWAYS = {"hoodie.parquet.small.file.limit": "0", "hoodie.bucket.index.num.buckets": "1"}
_KEPT = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.compact.inline": "false"}
_SERVED = {"hoodie.compact.inline": "true"}
CALLS: Counter[str] = Counter()
"""Of all `Counted` storages."""


class Counted(LocalStorage):
    """Counts what is asked of it and what it is told."""

    def list(self, path: str = "") -> Listing:
        CALLS["list"] += 1
        return super().list(path)

    def head(self, path: str) -> StoredFile | None:
        CALLS["head"] += 1
        return super().head(path)

    def read(self, path: str) -> bytes:
        CALLS["read"] += 1
        return super().read(path)

    def create(self, path: str, data: bytes) -> None:
        CALLS["create"] += 1
        super().create(path, data)

    def delete(self, path: str) -> bool:
        CALLS["delete"] += 1
        return super().delete(path)

    def open_input(self, path: str) -> pa.NativeFile:
        CALLS["open"] += 1
        return super().open_input(path)

    def open_output(self, path: str) -> pa.NativeFile:
        CALLS["write"] += 1
        return super().open_output(path)


@dataclass(frozen=True)
class Size:
    partitions: int = 20
    files: int = 1
    """Of each partition."""
    commits: int = 10
    served: bool = False
    """Whether commits are cleaned, archived and compacted as they are by default; otherwise all of them stay."""

    def __str__(self) -> str:
        return f"{self.partitions} x {self.files} files, {self.commits:,} commits"


@dataclass(frozen=True)
class Cost:
    action: str
    calls: dict[str, int]
    cpu_ms: float


def rows(ids: Sequence[int], size: Size, ts: int) -> pa.Table:
    """Keys of a partition lie together, as those of days do."""
    days = [f"d{number // (size.files * 10_000) % size.partitions:05d}" for number in ids]
    return pa.table({"id": list(ids), "ts": [ts] * len(ids), "day": days}, schema=SCHEMA)


def build(folder: str, kind: str, index: str, size: Size) -> str:
    """A table of that size; its path. The first key of each partition is a multiple of 10,000 times its files."""
    lake = Lakehouse(folder)
    lake.create_schema("s")
    properties = {**_ALWAYS, **(_SERVED if size.served else _KEPT), "hoodie.index.type": index}
    table = lake.create_table(
        "s.t", schema=SCHEMA, record_key=["id"], ordering_fields=["ts"], partition_by=["day"], table_type=kind, properties=properties
    )
    step = size.files * 10_000
    for number in range(size.files):
        table.insert(rows([part * step + number for part in range(size.partitions)], size, 0))
    for ts in range(max(size.commits - size.files, 1)):
        table.upsert(rows([0], size, ts + 1))
    return table.path


def costs(path: str, size: Size) -> Iterator[Cost]:
    """Of each action, on a table that this process knows, but for `open`."""
    storage, newest = Counted(path), size.commits + 1
    table = HoodieTable(storage)
    ten = [part * size.files * 10_000 for part in range(10)]
    table.upsert(rows(ten, size, newest))
    plan_query(table.state, Query())
    day = pc.field("day") == "d00001"
    actions: dict[str, Callable[[], object]] = {
        "open": lambda: HoodieTable(storage).timeline,
        "upsert of ten rows": lambda: table.upsert(rows(ten, size, newest + 1)),
        "second upsert": lambda: table.upsert(rows(ten, size, newest + 2)),
        "point query": lambda: table.to_arrow(filters=day & (pc.field("id") == 10_000 * size.files)),
        "plan of a snapshot": lambda: plan_query(table.state, Query()),
        "plan of a clean": lambda: table.clean(dry_run=True),
        "plan of an archiving": lambda: table.archive(dry_run=True),
    }
    for name, act in actions.items():
        CALLS.clear()
        began = time.process_time()
        act()
        yield Cost(name, dict(CALLS), (time.process_time() - began) * 1000)


def measure(kind: str, index: str, size: Size, folder: str | None = None) -> list[Cost]:
    with tempfile.TemporaryDirectory(dir=folder) as place:
        return list(costs(build(place, kind, index, size), size))


def rendered(title: str, sizes: Sequence[Size], found: Sequence[Sequence[Cost]]) -> str:
    lines = [f"### {title}", "", "| action | " + " | ".join(map(str, sizes)) + " | last / first |", "|---" * (len(sizes) + 2) + "|"]
    for per_size in zip(*found, strict=True):
        cells = [f"{sum(one.calls.values())} calls, {one.cpu_ms:.0f} ms" for one in per_size]
        ratio = per_size[-1].cpu_ms / max(per_size[0].cpu_ms, 0.1)
        lines.append(f"| {per_size[0].action} | " + " | ".join(cells) + f" | {ratio:.1f} |")
    return "\n".join(lines)


def growths(*, full: bool) -> dict[str, list[Size]]:
    """What grows, from small to large."""
    return {
        "partitions": [Size(partitions=count) for count in ((20, 200, 2000) if full else (20, 200))],
        "files": [Size(100, count) for count in ((2, 20, 200) if full else (2, 10))],
        "commits that stay": [Size(commits=count) for count in ((30, 300, 3000) if full else (20, 60))],
        "commits with services": [Size(commits=count, served=True) for count in ((60, 300, 3000) if full else (60, 120))],
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--full", action="store_true", help="2,000 partitions, 20,000 files and 3,000 commits")
    parser.add_argument("--folder", type=Path, help="where the tables are made")
    parser.add_argument("--tables", default="", help="which of " + ",".join("/".join(one) for one in TABLES))
    parser.add_argument("--kinds", nargs="+", default=list(growths(full=False)), choices=list(growths(full=False)), help="what grows")
    given = parser.parse_args()
    folder = None if given.folder is None else str(given.folder)
    for kind, index in TABLES:
        if given.tables and f"{kind}/{index}" not in given.tables.split(","):
            continue
        for what in given.kinds:
            sizes = growths(full=given.full)[what]
            print(rendered(f"{kind}, {index}: {what}", sizes, [measure(kind, index, size, folder) for size in sizes]), flush=True)


if __name__ == "__main__":
    main()
