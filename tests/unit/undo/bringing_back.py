"""Small tables in memory for tests of savepoints, rollbacks and restores, and a sweep of crashes over any of these actions."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.dying_storage import DyingStorage
from tests.support.local_table import LocalTable
from tests.support.readers import first_difference
from tests.support.versions import version_of_new_tables

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
TIMEOUT = 2000
KINDS = ("cow", "mor")


def rows(ids: Sequence[int], seed: int) -> pa.Table:
    made = [{"id": number, "part": "xy"[number % 2], "ts": seed, "v": f"v{number}/{seed}"} for number in ids]
    return pa.Table.from_pylist(made, schema=SCHEMA)


def new_table(kind: str = "cow", storage: Storage | None = None) -> LocalTable:
    """Partitioned by `part`, one thread; merge-on-read with `kind` "mor"."""
    target = MemoryStorage() if storage is None else storage
    create_table(target, TableSpec("t", SCHEMA, ["id"], ["ts"], ["part"], table_type=kind, version=version_of_new_tables()))
    return LocalTable(target, lock_timeout_ms=TIMEOUT)


def history(kind: str = "cow") -> tuple[LocalTable, list[str]]:
    """Three commits, the last two with updates; the table and their instants."""
    table = new_table(kind)
    results = [table.insert(rows(range(6), 1)), table.upsert(rows([1, 2, 7], 2)), table.upsert(rows([2, 3, 8], 3))]
    instants = [result.instant for result in results]
    assert all(instants)
    return table, [str(instant) for instant in instants]


def copy_of(storage: Storage) -> MemoryStorage:
    target = MemoryStorage(storage.root)
    for entry in storage.walk():
        target.create(entry.path, storage.read(entry.path))
    return target


def data_files(storage: Storage) -> set[str]:
    return {entry.path for entry in storage.walk() if re.search(r"\.parquet$|\.log\.", entry.name)}


def die(table: LocalTable, before: str, act: Callable[[LocalTable], object]) -> None:
    """Do `act` in a process that dies before the first mutating call whose name matches `before`."""
    with pytest.raises(SimulatedCrash):
        act(LocalTable(DyingStorage(table.storage, before), lock_timeout_ms=TIMEOUT))


def sweep(name: str, table: LocalTable, act: Callable[[LocalTable], object], then: Callable[[LocalTable], object]) -> int:
    """Fail `act` in every way at each of its mutating calls, on copies of the table.

    After each failure a reader sees the rows before `act` or those after it. Then another process does `then`, which repairs the table
    first: at the end nothing is pending. After every fourth call it is itself crashed at each call of the repair and done again.
    Returns the number of points.
    """
    before = table.read(meta_columns=True)
    trial = FaultyStorage(copy_of(table.storage))
    act(LocalTable(trial, lock_timeout_ms=TIMEOUT))
    after = LocalTable(trial).read(meta_columns=True)
    points = 0
    for call in range(1, len(trial.mutations) + 1):
        for fault in Fault:
            storage = copy_of(table.storage)
            _fail(FaultyStorage(storage, call, fault), act)
            named = f"{fault} at {trial.mutations[call - 1]}"
            seen = LocalTable(storage).read(meta_columns=True)
            assert first_difference(seen, before) is None or first_difference(seen, after) is None, f"{named}: neither before nor after"
            # Dying after a call leaves what dying before the next one leaves.
            points += _repair(storage, then, named, crashes=call % 4 == 0) if fault is Fault.CRASH_BEFORE else 1
    return points


def _fail(storage: FaultyStorage, act: Callable[[LocalTable], object]) -> None:
    with contextlib.suppress(SimulatedCrash, LakehouseError):
        act(LocalTable(storage, lock_timeout_ms=TIMEOUT))


def _repair(storage: MemoryStorage, then: Callable[[LocalTable], object], named: str, *, crashes: bool) -> int:
    repaired = copy_of(storage)
    counting = FaultyStorage(repaired)
    then(LocalTable(counting, lock_timeout_ms=TIMEOUT))
    _check_settled(repaired, named)
    expected = LocalTable(repaired).read()
    own = [number for number, name in enumerate(counting.mutations, 1) if name.endswith("commit.requested")]
    points = own[-1] if crashes else 0
    for call in range(1, points + 1):
        crashed = copy_of(storage)
        _fail(FaultyStorage(crashed, call, Fault.CRASH_BEFORE), then)
        then(LocalTable(crashed, lock_timeout_ms=TIMEOUT))
        point = f"{named}, then before {counting.mutations[call - 1]} of the repair"
        _check_settled(crashed, point)
        assert first_difference(LocalTable(crashed).read(), expected) is None, point
    return 1 + points


def _check_settled(storage: MemoryStorage, point: str) -> None:
    """Nothing is pending, and every data file is one that counts."""
    pending = LocalTable(storage).state.timeline.pending()
    assert not len(pending), f"{point}: {[str(instant) for instant in pending]} left"
    assert data_files(storage) == {path for path in data_files(storage) if _is_live(storage, path)}, point


def _is_live(storage: MemoryStorage, path: str) -> bool:
    """Whether a base file is of a completed write, or a log file has something that is."""
    match = re.search(r"_(\d{17})\.parquet$", path)
    return match is None or LocalTable(storage).state.timeline.is_committed(match[1])
