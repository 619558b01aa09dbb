"""Wherever a change of a table with an HBASE index dies, in the storage or in HBase, no key is stored twice and none is lost."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from lakehouse_engine.commit import hbase_index
from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.index.hbase import client
from lakehouse_engine.model.instant import State
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.view.plans import is_plan
from lakehouse_engine.write.create import TableSpec, create_table
from tests.crash.scenarios import SCHEMA, Row, batch, copy_of
from tests.support.hbase import FakeHBase, fake_hbase
from tests.support.local_table import LocalTable

OPTIONS = {"hoodie.index.type": "HBASE", "hoodie.index.hbase.table": "keys", "lakehouse.index.hbase.thrift.host": "h"}
FAST = {"hoodie.index.hbase.max.qps.per.region.server": "0"}
MOVES = {"hoodie.hbase.index.update.partition.path": "true"}
START: tuple[Row, ...] = (("a", 1, "x", "a1"), ("b", 1, "x", "b1"), ("c", 1, "y", "c1"), ("d", 1, "z", "d1"))

Action = Callable[[LocalTable], object]
ACTIONS: dict[str, Action] = {
    "insert": lambda table: table.insert(batch([("n", 2, "x", "n2"), ("m", 2, "w", "m2")])),
    "bulk insert": lambda table: table.bulk_insert(batch([("n", 2, "x", "n2"), ("m", 2, "w", "m2")])),
    "upsert": lambda table: table.upsert(batch([("a", 2, "x", "a2"), ("n", 2, "x", "n2"), ("c", 2, "x", "c2")])),
    "move": lambda table: LocalTable(table.storage, MOVES).upsert(batch([("a", 2, "y", "a2"), ("d", 2, "w", "d2")])),
    "delete": lambda table: table.delete(batch([("a", 2, "x", ""), ("d", 2, "z", "")])),
    "overwrite": lambda table: table.insert_overwrite(batch([("a", 2, "x", "a2"), ("n", 2, "y", "n2")])),
    "overwrite all": lambda table: table.insert_overwrite_table(batch([("a", 2, "z", "a2"), ("c", 2, "y", "c2")])),
    "delete partitions": lambda table: table.delete_partitions(["part=x", "part=z"]),
    "cluster": lambda table: table.cluster("id"),
    "rollback": lambda table: table.rollback(),
    "restore": lambda table: table.restore("kept"),
}


@pytest.fixture
def hbase() -> Iterator[FakeHBase]:
    with fake_hbase() as server:
        yield server


def made(table_type: str) -> LocalTable:
    """Four rows in a savepoint, then a delete, an insert and an update."""
    storage = MemoryStorage()
    create_table(storage, TableSpec("t", SCHEMA, ["id"], ["ts"], ["part"], table_type, properties={**OPTIONS, **FAST}))
    table = LocalTable(storage)
    table.bulk_insert(batch(START))
    table.savepoint(name="kept")
    table.upsert(batch([("b", 2, "x", "b2"), ("e", 1, "y", "e1")]))
    table.delete(batch([("b", 3, "x", "")]))
    return table


def keys_of(table: LocalTable) -> list[str]:
    return sorted(table.read(["id"]).column("id").to_pylist())


def check(storage: Storage, before: list[str], after: list[str], server: FakeHBase) -> None:
    """Another process goes on: every key is found where it is stored, and new ones are stored once."""
    hbase_index._DONE.clear()
    client._CLIENTS.clear()
    table = LocalTable(storage)
    for instant in table.state.timeline.pending():
        if instant.state is State.INFLIGHT and is_plan(table.state, instant):
            table.rollback(instant.requested_time)  # a clustering, which waits for its executor otherwise
    assert keys_of(table) in (before, after)
    every = sorted({*before, *after, "b"})
    table.upsert(batch([(key, 9, "x", f"{key}9") for key in every]))
    assert keys_of(table) == every, "a key was stored twice, or lost"
    assert set(table.read(["v"]).column("v").to_pylist()) == {f"{key}9" for key in every}
    check_entries(table, server)
    table.delete(batch([(key, 10, "x", "") for key in every]))
    assert keys_of(table) == []
    assert server.entries("keys").keys().isdisjoint(every)


def check_entries(table: LocalTable, server: FakeHBase) -> None:
    """Every stored key has the entry of its file group, with an instant that Hudi believes."""
    state, entries = table.state, server.entries("keys")
    rows = table.read(["id"], meta_columns=True)
    columns = (rows.column(name).to_pylist() for name in ("id", "_hoodie_partition_path", "_hoodie_file_name"))
    for key, path, file in zip(*columns, strict=True):
        partition, file_id, instant = entries[key]
        assert partition == path
        assert file_id == (file if "_" not in file else file.split("_")[0])
        assert state.timeline.completed().contains(instant) or state.timeline.is_before_start(instant)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("name", ACTIONS)
def test_an_action_that_dies_in_the_storage(hbase: FakeHBase, table_type: str, name: str) -> None:
    table, action = made(table_type), ACTIONS[name]
    kept, before = copy.deepcopy(hbase.tables), keys_of(table)
    trial = FaultyStorage(copy_of(table.storage))
    action(LocalTable(trial))
    after = keys_of(LocalTable(trial))
    check(trial, before, after, hbase)
    for call in range(1, len(trial.mutations) + 1):
        hbase.tables = copy.deepcopy(kept)
        storage = copy_of(table.storage)
        try:
            action(LocalTable(FaultyStorage(storage, call, Fault.CRASH_BEFORE)))
        except SimulatedCrash:
            check(storage, before, after, hbase)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("name", ACTIONS)
def test_an_action_in_which_hbase_dies(hbase: FakeHBase, table_type: str, name: str) -> None:
    table, action = made(table_type), ACTIONS[name]
    kept, before = copy.deepcopy(hbase.tables), keys_of(table)
    hbase.requests.clear()
    trial = copy_of(table.storage)
    action(LocalTable(trial))
    after, count = keys_of(LocalTable(trial)), len(hbase.requests)
    for number in range(1, count + 1):
        for dies in (True, False):
            hbase.tables = copy.deepcopy(kept)
            storage = copy_of(table.storage)
            hbase.requests.clear()

            def stop(operation: str, number: int = number, dies: bool = dies) -> None:
                if len(hbase.requests) >= number:
                    hbase.is_down = True
                    if dies:
                        raise SimulatedCrash

            hbase.before = stop
            # Some go on, as what is completed does without its clean-up.
            with suppress(SimulatedCrash, LakehouseError):
                action(LocalTable(storage))
            hbase.before = lambda operation: None
            hbase.is_down = False
            check(storage, before, after, hbase)
