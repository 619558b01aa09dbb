"""Tables with a metadata table that has every partition, and what reads, writes and services of them answer while they are whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.metadata_table.table import METADATA_TABLE
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.write.create import TableSpec, create_table
from tests.crash.scenarios import copy_of

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("note", pa.string())])
PARTITIONS = "abcd"
VARIANTS = ("cow-6", "mor-6", "cow-9", "mor-9")
OPTIONS = {
    "lakehouse.task.threads": 1,
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.clean.automatic": False,
    "hoodie.clean.commits.retained": 1,
    "hoodie.archive.automatic": False,
    "hoodie.compact.inline": False,
    "hoodie.parquet.small.file.limit": 0,
    "hoodie.metadata.compact.max.delta.commits": 4,
}
INDEXES = ("column_stats", "partition_stats", "bloom_filters", "record_index")
PARTS = ("base", "log", "timeline", "metafile", "definitions")
_BY_NOTE = "by_note"

Rows = dict[str, tuple[str, int, str]]
"""Partition, `v` and `note` by key."""


def rows(numbers: Iterable[int], value: int, partition: str = "") -> pa.Table:
    """A key's partition follows from its number unless it is given."""
    made = [
        {"id": f"k{number:02d}", "p": partition or PARTITIONS[number % len(PARTITIONS)], "v": value + number, "note": f"n{value}"}
        for number in numbers
    ]
    return pa.Table.from_pylist(made, SCHEMA)


@dataclass(frozen=True, slots=True)
class Indexed:
    """A whole table; `earlier` is the folder of its metadata table one commit before."""

    storage: MemoryStorage
    earlier: Mapping[str, bytes]

    def files(self, part: str) -> list[str]:
        """Paths of the files of one of `PARTS` that are not empty."""
        return sorted(entry.path for entry in self.storage.walk() if entry.size and part_of(entry.path) == part)

    def copy(self) -> MemoryStorage:
        return copy_of(self.storage)


def part_of(path: str) -> str:
    """Which part of a metadata table a file is; "" if it is none."""
    name = path.rpartition("/")[2]
    if path.startswith(".hoodie/.index_defs/"):
        return "definitions"
    if not path.startswith(f"{METADATA_TABLE}/"):
        return ""
    if path.startswith(f"{METADATA_TABLE}/.hoodie/"):
        return "timeline"
    return "log" if ".log." in name else "base" if name.endswith(".hfile") else "metafile"


def opened(storage: MemoryStorage) -> HoodieTable:
    return HoodieTable(storage, options=OPTIONS)


def build(variant: str) -> Indexed:
    """Twelve file groups and more in four partitions; the metadata table has base files of a compaction, and logs over them."""
    table_type, version = variant.split("-")
    storage = MemoryStorage()
    spec = TableSpec("t", SCHEMA, ["id"], [], ["p"], table_type=table_type, version=TableVersion(int(version)))
    create_table(storage, spec)
    table = opened(storage)
    for start in (0, 8, 16):
        table.insert(rows(range(start, start + 8), 0))
    table.rebuild_metadata([name for name in INDEXES if version != "6" or name != "partition_stats"])
    if version != "6":
        table.create_index(_BY_NOTE, columns=["note"])
    for value in (100, 200, 300):
        table.upsert(rows(range(value // 100, 24, 5), value))
    table.delete(rows([5, 6], 0).select(["id", "p"]))
    if table_type == "mor":
        table.compact()
    table.upsert(rows([30, 31, 2], 400))
    earlier = _metadata_files(storage)
    table.upsert(rows([7, 32], 500))
    table.upsert(rows([7, 33, 3], 600))
    return Indexed(storage, earlier)


def _metadata_files(storage: MemoryStorage) -> dict[str, bytes]:
    return {entry.path: storage.read(entry.path) for entry in storage.walk(METADATA_TABLE)}


# what is asked

Use = Callable[[HoodieTable], Rows]


def found(table: HoodieTable, **query: object) -> Rows:
    """The rows of a query; a key that is there twice fails."""
    read = table.to_arrow(columns=SCHEMA.names, **query)  # type: ignore[arg-type]
    keys = read.column("id").to_pylist()
    assert len(set(keys)) == len(keys), f"a key is there twice: {sorted(keys)}"
    return dict(zip(keys, zip(*(read.column(name).to_pylist() for name in SCHEMA.names[1:]), strict=True), strict=True))


def all_rows(table: HoodieTable) -> Rows:
    return found(table)


def by_statistics(table: HoodieTable) -> Rows:
    return found(table, filters=(pc.field("v") >= 300) & (pc.field("note") != "n600"))


def by_key(table: HoodieTable) -> Rows:
    return found(table, filters=pc.field("id").isin(["k02", "k07", "k05", "k33", "k99"]))


def upserted(table: HoodieTable) -> Rows:
    table.upsert(rows([2, 7, 5, 33, 40], 700))
    return found(table)


def moved(table: HoodieTable) -> Rows:
    table.upsert(rows([7, 8], 700, "d"))
    return found(table)


def deleted(table: HoodieTable) -> Rows:
    table.delete(rows([7, 33, 12], 0).select(["id", "p"]))
    return found(table)


def inserted(table: HoodieTable) -> Rows:
    table.insert(rows([40, 41], 700))
    return found(table)


def compacted(table: HoodieTable) -> Rows:
    table.compact()
    return found(table)


def clustered(table: HoodieTable) -> Rows:
    table.cluster()
    return found(table)


def cleaned(table: HoodieTable) -> Rows:
    table.clean(retain_commits=1)
    table.archive(min_commits=2, max_commits=3)
    return found(table)


def gone_back(table: HoodieTable) -> Rows:
    table.rollback()
    return found(table)


READS: tuple[Use, ...] = (all_rows, by_statistics, by_key)
CHANGES: tuple[Use, ...] = (upserted, moved, deleted, inserted, clustered, cleaned, gone_back)
