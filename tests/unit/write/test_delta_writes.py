"""Merge-on-read tables written commit by commit: what every reader sees, next to plain dicts and to the same load on copy-on-write."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.local_table import LocalTable
from tests.support.readers import assert_same_rows, read_with_hudi_rs, user_columns
from tests.support.table_builder import TableBuilder
from tests.support.table_model import COMMIT_TIME, DELETED, Row

SCHEMA = pa.schema(
    [("id", pa.int64()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("w", pa.string()), (DELETED, pa.bool_())]
)
KEEP = {"hoodie.clean.automatic": False, "hoodie.archive.automatic": False}
COMMITS = 12

TABLES: dict[str, dict[str, Any]] = {
    "flat": {},
    "flat, ordered": {"ordering": "ts"},
    "flat, ordered, Avro": {"ordering": "ts", "options": {"hoodie.logfile.data.block.format": "AVRO"}},
    "partitioned": {"partition_by": ["p"]},
    "partitioned, ordered": {"partition_by": ["p"], "ordering": "ts"},
    "partitioned, ordered, keys by partition": {"partition_by": ["p"], "ordering": "ts", "index": "SIMPLE"},
    "partitioned, partial": {"partition_by": ["p"], "ordering": "ts", "payload": "partial"},
    "partitioned, ordered, no small files": {
        "partition_by": ["p"],
        "ordering": "ts",
        "options": {"hoodie.parquet.small.file.limit": 0},
    },
}


def row(key: int, p: str = "x", ts: int | None = 1, v: str | None = "v", w: str | None = "w", deleted: bool = False) -> Row:
    return {"id": key, "p": p, "ts": ts, "v": v, "w": w, DELETED: deleted}


def make(folder: Path, name: str = "t", **how: Any) -> TableBuilder:
    options = {**KEEP, **how.pop("options", {})}
    return TableBuilder.create(folder / name, SCHEMA, **{"table_type": "mor", "options": options, **how})


class Load:
    """A mixed load. Keys of inserts are new, those of other writes stored ones, deleted ones and new ones."""

    def __init__(self, seed: str) -> None:
        self.chance, self.fresh = random.Random(seed), 100

    def row(self, key: int, deletions: float = 0.15) -> Row:
        chance = self.chance
        return row(
            key,
            chance.choice("xyz"),
            chance.choice([None, *range(1, 10)]),
            chance.choice([None, "a", "b"]),
            chance.choice([None, str(chance.random())]),
            chance.random() < deletions,
        )

    def new_rows(self, count: int) -> list[Row]:
        self.fresh += count
        return [self.row(self.fresh + number, deletions=0) for number in range(count)]

    def known(self, most: int, deletions: float = 0.15) -> list[Row]:
        return [self.row(key, deletions) for key in self.chance.sample(range(20), self.chance.randint(1, most))]

    def step(self, number: int) -> tuple[str, tuple[Any, ...]]:
        """A method of the builder, and what it is given."""
        if number == 0:
            return "insert", ([self.row(key, deletions=0) for key in range(12)],)
        kind = ("upsert", "upsert", "delete", "upsert", "columns", "upsert", "delete", "insert")[number % 8]
        if kind == "columns":
            return "upsert", (self.known(8, deletions=0), self.chance.choice([["v"], ["v", "w"], ["ts", "v"], ["p", "v"]]))
        if kind == "upsert":
            return "upsert", (self.known(8),)
        return (kind, (self.known(5),)) if kind == "delete" else (kind, (self.new_rows(3),))


def content(built: TableBuilder, **query: Any) -> pa.Table:
    return user_columns(built.table.to_arrow(**query))


@pytest.mark.parametrize("name", TABLES)
def test_a_mixed_load_reads_as_the_model_as_copy_on_write_and_as_hudi_rs_after_every_commit(tmp_path: Path, name: str) -> None:
    how = TABLES[name]
    foreign = how.get("payload") != "partial"  # hudi-rs refuses that payload
    built, twin = make(tmp_path, **how), make(tmp_path, "twin", **{**how, "table_type": "cow"})
    load, logs, times = Load(name), 0, ["000"]
    for number in range(COMMITS):
        method, given = load.step(number)
        result, other = getattr(built, method)(*given), getattr(twin, method)(*given)
        counts = [(one.inserts, one.updates, one.deletes, one.duplicates_dropped) for one in (result, other)]
        assert counts[0] == counts[1]
        logs += result.log_files
        ours = built.check_snapshot()
        assert_same_rows(content(built), content(twin))
        if result.instant is None:
            continue
        changes = built.table.to_arrow(query="incremental", begin=times[-1], meta_columns=True)
        assert_same_rows(changes.select([COMMIT_TIME, *SCHEMA.names]), built.expected(built.model.incremental(times[-1], result.instant)))
        times.append(result.instant)
        if foreign:
            assert_same_rows(read_with_hudi_rs(built.path), ours)
            optimized = built.table.to_arrow(query="read_optimized", meta_columns=True)
            assert_same_rows(read_with_hudi_rs(built.path, read_optimized=True), optimized)
    assert logs >= 3
    built.check(with_hudi_rs=foreign)


@pytest.mark.parametrize("ordering", [[], ["ts"]])
def test_the_storage_need_not_be_a_disk(ordering: list[str]) -> None:
    storage = MemoryStorage()
    create_table(storage, TableSpec("t", SCHEMA, ["id"], ordering, ["p"], table_type="mor"))
    table, load = LocalTable(storage, KEEP), Load("memory")
    stored: dict[int, Row] = {}
    for number in range(6):
        rows = [row(key, "xy"[key % 2], ts=number, v=f"{number}") for key in load.chance.sample(range(30), 15)]
        table.upsert(pa.Table.from_pylist(rows, SCHEMA))
        gone = load.chance.sample(range(30), 5)
        table.delete(pa.table({"id": pa.array(gone, pa.int64())}))
        stored = {key: one for key, one in {**stored, **{one["id"]: one for one in rows}}.items() if key not in gone}
        assert_same_rows(user_columns(table.read()), pa.Table.from_pylist(list(stored.values()), SCHEMA))


def test_rows_without_keys_are_appended_in_delta_commits(tmp_path: Path) -> None:
    built = make(tmp_path, record_key=(), partition_by=["p"])
    built.bulk_insert([row(1), row(1), row(2, "y")])
    built.insert([row(1), row(3, "z")])
    assert {instant.action.value for instant in built.table.timeline} == {"deltacommit"}
    built.check(with_hudi_rs=True)


def test_partitions_and_the_table_are_replaced_with_their_logs(tmp_path: Path) -> None:
    built = make(tmp_path, partition_by=["p"])
    built.insert([row(1), row(2, "y"), row(3, "z")])
    built.upsert([row(1, v="n"), row(2, "y", v="n"), row(3, "z", v="n")])
    built.insert_overwrite([row(5, "x")])
    built.check(with_hudi_rs=True)
    built.delete_partitions([("y",)])
    built.check(with_hudi_rs=True)
    built.upsert([row(3, "z", v="m"), row(5, "x", v="m")])
    built.insert_overwrite_table([row(9, "q")])
    built.check(with_hudi_rs=True)
    actions = [instant.action.value for instant in built.table.timeline]
    assert actions == ["deltacommit", "deltacommit", "replacecommit", "replacecommit", "deltacommit", "replacecommit"]
