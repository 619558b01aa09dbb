"""The writes that are crashed: each with the table that it starts from and the rows before and after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from lakehouse_engine.actions.create import TableSpec, create_table
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline.config_store import ConfigStore
from tests.crash.checker import Rows

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("part", pa.string()), ("v", pa.string())])
COLUMNS = ("ts", "part", "v")
Row = tuple[str, int, str, str]
Memory = TypeVar("Memory", bound=MemoryStorage)

START: tuple[Row, ...] = (("a", 1, "x", "a1"), ("b", 1, "x", "b1"), ("c", 1, "y", "c1"), ("d", 1, "z", "d1"))
PROBES: tuple[Row, ...] = (("probe", 1, "x", "p"), ("other", 1, "new", "p"))
"""Written after every crash, into a partition that is there and into one that is not."""


def batch(rows: Iterable[Row]) -> pa.Table:
    chosen = list(rows)
    return pa.table([[row[index] for row in chosen] for index in range(4)], schema=SCHEMA)


def by_key(*rows: Row) -> Rows:
    return {row[0]: row[1:] for row in rows}


def open_table(storage: Storage) -> HoodieTable:
    return HoodieTable(storage, options={"lakehouse.task.threads": 1})  # type: ignore[arg-type]


def create(storage: Storage) -> None:
    create_table(storage, TableSpec("crashed", SCHEMA, ["id"], ["ts"], ["part"]))


def copy_of(storage: Storage, copy: Memory | None = None) -> Memory | MemoryStorage:
    """All files of a storage in a new one (in `copy`, if that is given)."""
    target = MemoryStorage() if copy is None else copy
    for entry in storage.walk():
        MemoryStorage.create(target, entry.path, storage.read(entry.path))
    return target


def _upsert(table: HoodieTable) -> None:
    """Updates a, moves c from y to z, adds e to x and f to a new partition, deletes d: a merge, a move, an insert and a new group."""
    rows = [("a", 2, "x", "a2"), ("c", 2, "z", "c2"), ("e", 1, "x", "e1"), ("f", 1, "w", "f1")]
    table.upsert(batch(rows), delete_keys=pa.table({"id": ["d"]}))


def _start() -> MemoryStorage:
    """Four rows in three partitions, in two commits."""
    storage = MemoryStorage()
    create(storage)
    table = open_table(storage)
    table.bulk_insert(batch(START[:3]))
    table.upsert(batch(START[3:]))
    return storage


def _empty() -> MemoryStorage:
    storage = MemoryStorage()
    create(storage)
    return storage


def _dead_writer() -> MemoryStorage:
    """As `_start`, with the remains of an upsert that died with all its files written."""
    storage = _start()
    trial = FaultyStorage(copy_of(storage))
    _upsert(open_table(trial))
    published = next(number for number, call in enumerate(trial.mutations, 1) if call.endswith(".commit"))
    try:
        _upsert(open_table(FaultyStorage(storage, published, Fault.CRASH_BEFORE)))
    except SimulatedCrash:
        return storage
    raise AssertionError("the writer did not die")


def _with_metadata_table() -> MemoryStorage:
    """As `_start`, with a metadata table as Hudi leaves one: named in the properties, with files of its own."""
    storage = _start()
    ConfigStore(storage).update({"hoodie.table.metadata.partitions": "files"})
    storage.create(".hoodie/metadata/.hoodie/hoodie.properties", b"hoodie.table.name=crashed_metadata\n")
    storage.create(".hoodie/metadata/files/files-0000-0_0-0-0_00000000000000010.hfile", b"stale")
    return storage


@dataclass(frozen=True)
class Scenario:
    """`act` is crashed on a copy of what `setup` made; the rows by key are `before` or, if it took effect, `after`."""

    name: str
    setup: Callable[[], MemoryStorage]
    act: Callable[[HoodieTable], object]
    before: Rows
    after: Rows


_A, _B, _C, _D = START
_AFTER_UPSERT = by_key(("a", 2, "x", "a2"), _B, ("c", 2, "z", "c2"), ("e", 1, "x", "e1"), ("f", 1, "w", "f1"))
_G, _H = ("g", 1, "x", "g1"), ("h", 1, "v", "h1")

SCENARIOS = [
    Scenario("first bulk insert", _empty, lambda table: table.bulk_insert(batch(START)), {}, by_key(*START)),
    Scenario("bulk insert", _start, lambda table: table.bulk_insert(batch([_G, _H])), by_key(*START), by_key(*START, _G, _H)),
    Scenario("insert", _start, lambda table: table.insert(batch([_G, _H])), by_key(*START), by_key(*START, _G, _H)),
    Scenario("upsert", _start, _upsert, by_key(*START), _AFTER_UPSERT),
    Scenario("delete", _start, lambda table: table.delete(pa.table({"id": ["a", "d"]})), by_key(*START), by_key(_B, _C)),
    Scenario("insert overwrite", _start, lambda table: table.insert_overwrite(batch([_G, _H])), by_key(*START), by_key(_C, _D, _G, _H)),
    Scenario("overwrite table", _start, lambda table: table.insert_overwrite_table(batch([_G, _H])), by_key(*START), by_key(_G, _H)),
    Scenario("delete partitions", _start, lambda table: table.delete_partitions(["part=x", "part=z"]), by_key(*START), by_key(_C)),
    Scenario("rollback, then upsert", _dead_writer, _upsert, by_key(*START), _AFTER_UPSERT),
    Scenario("metadata table drop, then upsert", _with_metadata_table, _upsert, by_key(*START), _AFTER_UPSERT),
]
