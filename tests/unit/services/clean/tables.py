"""Tables in memory with versions of files to clean and commits to archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.local_table import LocalTable

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("n", pa.int64())])
TIMEOUT_MS = 10_000
COW, MOR = "cow", "mor"
VERSION = TableVersion.SIX
"""Of new tables; `tests.unit.services.versions` makes a module's tests run with others too."""


def new_table(table_type: str = COW, options: Mapping[str, object] | None = None) -> LocalTable:
    """An empty table of `SCHEMA`, partitioned by `part`, on which nothing runs by itself."""
    storage = MemoryStorage()
    spec = TableSpec(name="t", schema=SCHEMA, record_key=["id"], partition_by=["part"], table_type=table_type, version=VERSION)
    create_table(storage, spec)
    return LocalTable(storage, options, lock_timeout_ms=TIMEOUT_MS)


def rows(values: Mapping[int, int], part: str = "a") -> pa.Table:
    """`values` maps ids to n."""
    return pa.table(
        {"id": pa.array(values, pa.int64()), "part": pa.array([part] * len(values)), "n": pa.array(values.values(), pa.int64())}, SCHEMA
    )


def updated(table: LocalTable, times: int, part: str = "a", key: int = 1) -> list[str]:
    """Insert ids `key` and the next, then update the first so often; the instants, the insert's first."""
    found = [table.insert(rows({key: 0, key + 1: 0}, part)).instant]
    found += [table.upsert(rows({key: number}, part)).instant for number in range(1, times + 1)]
    return [instant for instant in found if instant is not None]


def twin_of(storage: MemoryStorage) -> MemoryStorage:
    """A copy, for a test that has it crash."""
    twin = MemoryStorage()
    for entry in storage.walk():
        twin.create(entry.path, storage.read(entry.path))
    return twin


def content(table: LocalTable, **query: str) -> dict[int, int]:
    found = table.read(["id", "n"], **query)
    return dict(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True))


def data_files(table: LocalTable) -> set[str]:
    """Every file outside of `.hoodie`."""
    return {entry.path for entry in table.storage.walk() if not entry.path.startswith(".hoodie") and "partition_metadata" not in entry.name}


def timeline(state: TableState) -> list[str]:
    return [str(instant) for instant in state.timeline]


def times(instants: Sequence[str], table: LocalTable) -> list[str]:
    """Those of `instants` that are on the active timeline."""
    active = {instant.requested_time for instant in table.state.timeline.writes()}
    return [time for time in instants if time in active]
