"""How many requests the actions on a table make: each has a budget, which the number of its files and the length of its past do not raise.

LAKEHOUSE_REQUESTS=full adds tables of 1,000 partitions and a restore of 100 commits; the figures of docs/object-stores.md are printed.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from tests.object_store.dbt_store import Store, s3_store
from tests.object_store.proxy import Proxy, options, proxy
from tests.support.dbt_project import Project

__all__ = ["proxy", "s3_store"]
FULL = os.environ.get("LAKEHOUSE_REQUESTS") == "full"
PARTITIONS = [1, 50, *([1000] if FULL else [])]
COMMITS = 100 if FULL else 4
BUDGETS = {
    "open": (3, 0),
    "plan of a snapshot": (6, 0.01),
    "first read": (6, 1.01),
    "read again": (6, 1.01),
    "ten rows of a partition": (39, 0.01),
    "ten rows, same handle": (39, 0),
    "savepoint": (15, 1.01),
    "restore": (64 + 12 * COMMITS, 3.01),
}
"""Requests that an action may make, and how many more a partition (each has one file of data)."""


@dataclass
class Counted:
    """A table, and what was asked for it. `figures` by action."""

    proxy: Proxy
    place: str
    options: dict[str, str]
    partitions: int
    figures: dict[str, int] = field(default_factory=dict)

    def opened(self) -> HoodieTable:
        return Lakehouse(self.place, storage_options=self.options).table("s.t")

    def count(self, action: str, call: Callable[[], object]) -> None:
        """Check the requests of `call` against its budget."""
        found = self.proxy.requests(call)
        self.figures[action] = len(found)
        fixed, each = BUDGETS[action]
        asked = "\n".join(" ".join(one) for one in found)
        assert len(found) <= fixed + each * self.partitions, f"{action}: {len(found)} requests\n{asked}"


def _rows(numbers: range, partitions: int, value: int = 0) -> pa.Table:
    return pa.table({
        "id": pa.array([f"k{number:05d}" for number in numbers]),
        "part": [f"p{number % partitions:04d}" for number in numbers],
        "n": pa.array([value] * len(numbers), pa.int64()),
    })


def _made(store: Store, proxy: Proxy, kind: str, partitions: int) -> Counted:
    counted = Counted(proxy, store.place(f"r-{uuid.uuid4().hex}"), options(store, proxy), partitions)
    lake = Lakehouse(counted.place, storage_options=counted.options)
    schema, by_partition = _rows(range(1), 1).schema, {"hoodie.index.type": "SIMPLE"}
    table = lake.create_table(
        "s.t", schema=schema, record_key=["id"], partition_by=["part"], table_type=kind, properties=by_partition
    )
    table.bulk_insert(_rows(range(max(500, 10 * partitions)), partitions))
    return counted


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("partitions", PARTITIONS)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_requests_of_a_table(s3_store: Store, proxy: Proxy, kind: str, partitions: int) -> None:
    counted = _made(s3_store, proxy, kind, partitions)
    count, some = counted.count, range(0, 10 * partitions, partitions)
    count("open", counted.opened)
    table = counted.opened()
    count("plan of a snapshot", lambda: table.state.view.latest_slices())
    count("first read", table.to_arrow)
    count("read again", table.to_arrow)
    table = counted.opened()
    count("ten rows of a partition", lambda: table.upsert(_rows(some, partitions, 1)))
    count("ten rows, same handle", lambda: table.upsert(_rows(some, partitions, 2)))
    count("savepoint", lambda: table.savepoint(name="kept"))
    for number in range(COMMITS):
        table.upsert(_rows(some, partitions, 3 + number))
    count("restore", lambda: table.restore("kept"))
    assert table.to_arrow(["n"])["n"].to_pylist().count(2) == 10
    print(kind, partitions, f"{COMMITS} commits", counted.figures)


def _wide(numbers: range, value: int = 0) -> pa.Table:
    chance = np.random.default_rng([len(numbers), value])
    texts = {f"v{number}": chance.integers(0, 2**60, len(numbers)) for number in range(12)}
    return pa.table({"id": pa.array([f"k{number:07d}" for number in numbers]), "n": pa.array([value] * len(numbers), pa.int64()), **texts})


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_requests_of_a_large_file(s3_store: Store, proxy: Proxy, kind: str) -> None:
    """Of twenty megabytes in some three hundred pages: what is read, or written, comes in large pieces."""
    place = s3_store.place(f"r-{uuid.uuid4().hex}")
    lake = Lakehouse(place, storage_options=options(s3_store, proxy))
    rows, simple = _wide(range(200_000)), {"hoodie.index.type": "SIMPLE"}
    table = lake.create_table("s.t", schema=rows.schema, record_key=["id"], table_type=kind, properties=simple)
    table.bulk_insert(rows)

    def opened() -> HoodieTable:
        return Lakehouse(place, storage_options=options(s3_store, proxy)).table("s.t")

    figures, fresh = {}, opened()
    for action, most, call in (
        ("first read of two columns", 17, lambda: opened().to_arrow(["id", "n"])),
        ("ten rows", 58, lambda: fresh.upsert(_wide(range(10), 1))),
        ("a tenth of the rows", 54, lambda: fresh.upsert(_wide(range(20_000), 2))),
        ("read of all", 20, lambda: opened().to_arrow()),
        *([("compaction", 90, lambda: opened().compact())] if kind == "mor" else []),
        ("deletion", 53, lambda: opened().delete(_wide(range(5)).select(["id"]))),
    ):
        found = proxy.requests(call)
        figures[action] = len(found)
        asked = "\n".join(" ".join(one) for one in found)
        assert len(found) <= most, f"{action}: {len(found)} requests\n{asked}"
    assert opened().to_arrow(["n"])["n"].to_pylist().count(2) == 20_000 - 5
    print(kind, figures)


_MERGED = "{{ config(materialized='incremental', unique_key='id') }} select id from values (1) as given(id)"
MODELS = {
    "merged": (64, _MERGED),
    "quiet": (39, f"{_MERGED} {{% if is_incremental() %}} where false {{% endif %}}"),
    "plain": (63, "{{ config(materialized='table') }} select 1 as id"),
    "seen": (19, "select 1 as id"),
}
"""Models, and the requests that `dbt run` may make for one of them."""


@pytest.mark.dbt
@pytest.mark.timeout(1200)
def test_requests_of_dbt(s3_store: Store, proxy: Proxy, tmp_path: Path) -> None:
    """What a plain model asks of its table before it writes takes one look, however many questions that are."""
    place, spark = s3_store.place(f"r-{uuid.uuid4().hex}"), {"spark.driver.memory": "1g", "spark.master": "local[2]"}
    project = Project(tmp_path, {"spark_config": spark, "warehouse": place, "storage_options": options(s3_store, proxy)})
    for name, (_, text) in MODELS.items():
        (tmp_path / "models" / f"{name}.sql").write_text(text)
    project.dbt("run")
    figures = {}
    for name, (most, _) in MODELS.items():
        found = proxy.requests(partial(project.dbt, "run", "--select", name))
        figures[name] = len(found)
        asked = "\n".join(" ".join(one) for one in found)
        assert len(found) <= most, f"{name}: {len(found)} requests\n{asked}"
    print(figures)
