"""A writer of Hudi in a thread, ours beside it, and what both were told is stored."""

from __future__ import annotations

import itertools
import os
import random
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lakehouse_engine import HoodieTable, Lakehouse
from tests.interop.client import HudiError, HudiJudge

COMMITS = int(os.environ.get("LAKEHOUSE_BESIDE_COMMITS", "5"))
"""Commits of each of the two; 30 and more are for a longer look."""
PROVIDER = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
BESIDE = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control", "hoodie.write.lock.provider": PROVIDER}
HUDI = {
    **BESIDE,
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.metadata.enable": "false",
    # Hudi looks for the lock every 5 s by itself.
    "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
    "hoodie.write.lock.client.num_retries": "1000",
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.index.type": "SIMPLE",
}
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("writer", pa.string())])
SHARED = [f"shared-{number}" for number in range(12)]
NEW, OLD, PARTS = 5, 3, 3


@dataclass
class Acknowledged:
    """What the writers were told is stored: of every key the row with the highest `ts`."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    clock: Any = field(default_factory=lambda: itertools.count(1))

    def batch(self, writer: str, keys: list[str]) -> list[dict[str, Any]]:
        """Rows of `keys`; those that only one writes are in partitions of its own."""
        with self.lock:
            now = next(self.clock)
        return [{"id": key, "part": f"{key.partition('-')[0]}{sum(key.encode()) % PARTS}", "ts": now, "writer": writer} for key in keys]

    def write(self, table: HoodieTable, writer: str, keys: list[str]) -> None:
        """Upsert a batch of ours."""
        batch = self.batch(writer, keys)
        table.upsert(pa.Table.from_pylist(batch, schema=SCHEMA))
        self.stored(batch)

    def check(self, read: pa.Table) -> None:
        """Exactly these rows were read."""
        found = sorted(read.select(SCHEMA.names).to_pylist(), key=lambda row: row["id"])
        assert found == [self.rows[key] for key in sorted(self.rows)]

    def stored(self, batch: list[dict[str, Any]]) -> None:
        with self.lock:
            for row in batch:
                if row["ts"] >= self.rows.get(row["id"], row)["ts"]:
                    self.rows[row["id"]] = row


class Hudi(threading.Thread):
    """A Hudi writer that writes on, and goes on with another batch where one was refused for a conflict; ten refusals in a row are too
    many. `seconds` is how long its last write took, `path` where it finds the table, `options` its lock's.
    """

    def __init__(
        self,
        judge: HudiJudge,
        table: HoodieTable,
        acknowledged: Acknowledged,
        overlapping: bool,
        path: str = "",
        options: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(name="hudi")
        self.judge, self.table, self.acknowledged, self.overlapping = judge, table, acknowledged, overlapping
        self.path, self.options = path or table.path, dict(options or {})
        self.commits, self.conflicts, self.seconds, self.failures = 0, 0, 1.0, list[HudiError]()

    def run(self) -> None:
        kind = {"hoodie.datasource.write.table.type": str(self.table.config.table_type.value)}
        while self.commits < COMMITS and not self.failures and self.conflicts < 10 * (self.commits + 1):
            began = time.monotonic()
            batch = self.acknowledged.batch("hudi", _keys("hudi", self.commits, self.overlapping))
            try:
                self.judge.write(self.path, pa.Table.from_pylist(batch, schema=SCHEMA), {**HUDI, **kind, **self.options})
            except HudiError as error:
                if not _is_refusal(error.trace):
                    print(error.trace)
                    self.failures.append(error)
                self.conflicts += 1
                continue
            self.acknowledged.stored(batch)
            self.commits += 1
            self.seconds = time.monotonic() - began


def _is_refusal(trace: str) -> bool:
    """Whether Hudi kept away from what we did: a conflict, or (0.15) an instant of the very millisecond that we had begun before."""
    taken = re.search(r"FileAlreadyExistsException: .*/\d{17}\.\w+\.requested", trace)
    return taken is not None or "WriteConflictException" in trace or "ConcurrentModificationException" in trace


def _keys(writer: str, number: int, overlapping: bool) -> list[str]:
    new = [f"{'shared' if overlapping else writer}-{writer}-{number}-{one}" for one in range(NEW)]
    return new + (random.Random(f"{writer}{number}").sample(SHARED, OLD) if overlapping else [])


def begin(lake: Lakehouse, table_type: str, lock: Mapping[str, str]) -> tuple[HoodieTable, Acknowledged]:
    """A table that both write under `lock`, with its first rows."""
    properties = {**lock, "hoodie.index.type": "SIMPLE", "hoodie.compact.inline": "true"}
    table = lake.create_table(
        "s.t", schema=SCHEMA, record_key=["id"], ordering_fields=["ts"], partition_by=["part"], table_type=table_type, properties=properties
    )
    acknowledged = Acknowledged()
    acknowledged.write(table, "ours", SHARED)
    return table, acknowledged


def write_beside(theirs: Hudi, pause: float = 0.0) -> None:
    """Write while Hudi does, until both have made their commits; `pause`: how long Hudi has to find the lock free, in seconds."""
    table, acknowledged, overlapping = theirs.table, theirs.acknowledged, theirs.overlapping
    theirs.start()
    ours, chance = 0, random.Random(1)
    try:
        while ours < COMMITS or theirs.is_alive():
            acknowledged.write(table, "ours", _keys("ours", ours, overlapping))
            ours += 1
            theirs.join(max(pause, chance.uniform(0, 1) if overlapping else theirs.seconds / 8))
    finally:
        theirs.join()
    assert theirs.failures == []
    assert theirs.commits == COMMITS
    assert overlapping or theirs.conflicts == 0
    print(f"{table.config.table_type.value}: ours {ours}, Hudi's {theirs.commits}, conflicts {theirs.conflicts}")
