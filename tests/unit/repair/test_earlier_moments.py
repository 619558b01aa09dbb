"""Earlier moments are looked at where something of them may be missed, and nowhere else: each costs as much as there are commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.verify import moments, verify
from lakehouse_engine.verify.cleaned import Cleaned
from lakehouse_engine.verify.moments import check_moments
from lakehouse_engine.verify.suspects import suspects
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.local_table import LocalTable

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("day", pa.string())])
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
KINDS = {"cow": ("cow", {}), "mor": ("mor", {}), "bucket": ("mor", BUCKETS)}


def rows(*ids: int, ts: int) -> pa.Table:
    return pa.table({"id": ids, "ts": [ts] * len(ids), "day": [f"d{number % 3}" for number in ids]}, schema=SCHEMA)


def aged(kind: str, *, served: bool) -> LocalTable:
    """Writes into three partitions, a compaction, a replacement, and where it is `served` a clean, an archiving and a savepoint."""
    table_type, properties = KINDS[kind]
    storage = MemoryStorage()
    create_table(storage, TableSpec("t", SCHEMA, ["id"], ["ts"], ["day"], table_type, properties=properties))
    table = LocalTable(storage, {"hoodie.parquet.small.file.limit": "0"}, lock_timeout_ms=10_000)
    table.upsert(rows(0, 1, 2, ts=0))
    for ts in range(1, 7):
        table.upsert(rows(ts % 3, 10 + ts, ts=ts))
    if table_type == "mor":
        table.schedule_compaction()
        table.upsert(rows(0, ts=7))
        table.run_compaction()
    table.insert_overwrite(rows(1, 4, ts=8))
    for ts in range(9, 12):
        table.upsert(rows(ts % 3, ts=ts))
    if served:
        table.savepoint(name="kept")
        table.clean(2)
        table.archive(4, 5)
        table.upsert(rows(1, 2, ts=20))
    return table


def everywhere(state: TableState, cleaned: Cleaned) -> None:
    """As if nothing were known: each moment is looked at whole."""


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    found: list[str | None] = []
    ask = moments.lost_files

    def counted(state: TableState, as_of: str | None, *others: object, **named: object) -> object:
        found.append(as_of)
        return ask(state, as_of, *others, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(moments, "lost_files", counted)
    return found


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_where_every_file_is_there_no_moment_is_looked_at(kind: str, served: bool, looked_at: list[str | None]) -> None:
    table = aged(kind, served=served)
    assert list(check_moments(table.state)) == []
    assert looked_at == list(table.state.timeline.savepointed)


def damages(storage: Storage, paths: list[str]) -> Iterator[tuple[str, Callable[[], None]]]:
    for path in paths:
        content = storage.read(path)
        yield f"{path} is gone", lambda path=path: storage.delete(path)  # type: ignore[misc]
        storage.overwrite(path, content)
        yield f"{path} is short", lambda path=path, content=content: storage.overwrite(path, content[:-7])  # type: ignore[misc]
        storage.overwrite(path, content)


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_damaged_is_found_as_where_all_of_each_moment_is_looked_at(
    kind: str, served: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = aged(kind, served=served).storage
    paths = [file.path for file in storage.walk() if not file.path.startswith(".hoodie") and not file.path.endswith("_metadata")]
    assert len(paths) > 6
    found = 0
    for what, damage in damages(storage, paths):
        damage()
        told = {(one.kind, one.path) for one in check_moments(TableState.load(storage))}
        with monkeypatch.context() as patch:
            patch.setattr(moments, "suspects", everywhere)
            expected = {(one.kind, one.path) for one in check_moments(TableState.load(storage))}
        assert told == expected, what
        found += bool(told)
    assert found > 3
    assert suspects(TableState.load(storage), Cleaned(TableState.load(storage))) == frozenset()


@pytest.mark.parametrize("kind", ["mor", "bucket"])
def test_logs_that_only_a_savepoint_needs_are_told_of_when_archiving_has_passed_it(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    table_type, properties = KINDS[kind]
    storage = MemoryStorage()
    create_table(storage, TableSpec("t", SCHEMA, ["id"], ["ts"], ["day"], table_type, properties=properties))
    table = LocalTable(storage, lock_timeout_ms=10_000)
    for ts in range(3):
        table.upsert(rows(1, ts=ts))
    table.savepoint(name="kept")
    table.compact()
    for ts in range(3, 12):
        table.upsert(rows(1, ts=ts))
    table.compact()
    table.clean(1)
    table.archive(2, 3)
    caplog.clear()
    assert verify(table.state).findings == ()
    assert [record.message for record in caplog.records] == []
