"""A savepoint whose completed file is gone is told, goes on to keep its files, and is put back with its name."""

from __future__ import annotations

import re

import pytest

from lakehouse_engine.repair import repair
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.undo.savepoint import list_savepoints
from lakehouse_engine.verify import FindingKind, verify
from tests.crash.scenarios import batch, create
from tests.support.local_table import LocalTable
from tests.support.readers import assert_same_rows
from tests.support.versions import parametrize_by_version as pytest_generate_tests
from tests.support.versions import state_path, table_version
from tests.unit.undo.bringing_back import TIMEOUT, copy_of, die

__all__ = ["pytest_generate_tests", "table_version"]


@pytest.fixture(params=["cow", "mor"])
def table(request: pytest.FixtureRequest) -> LocalTable:
    """The savepoint "kept", and later writes that replaced what it keeps."""
    storage = MemoryStorage()
    create(storage, request.param)
    made = LocalTable(storage, lock_timeout_ms=TIMEOUT)
    made.upsert(batch([("a", 1, "x", "a1"), ("b", 1, "y", "b1")]))
    made.savepoint(name="kept")
    for version in range(2, 6):
        made.upsert(batch([("a", version, "x", f"a{version}"), ("b", version, "y", f"b{version}")]))
    if request.param == "mor":
        made.compact()
    return made


def lost(table: LocalTable) -> str:
    [savepoint] = list_savepoints(table.state)
    path = state_path(table.storage, f"{savepoint.instant}.savepoint")
    assert table.storage.delete(path)
    return re.sub(r"_\d+\.", "_*.", path)


def there(table: LocalTable) -> str:
    """The path of the one savepoint."""
    [savepoint] = list_savepoints(table.state)
    return state_path(table.storage, f"{savepoint.instant}.savepoint")


def moment(table: LocalTable, time: str) -> str:
    return table.state.order.moment(time)


def test_a_clean_puts_it_back_and_takes_none_of_its_files(table: LocalTable) -> None:
    expected = table.read(as_of=moment(table, table.instants()[0]))
    path = lost(table)
    assert [(one.kind, one.path) for one in verify(table.state).findings] == [(FindingKind.MISSING_FILE, path)]
    table.clean(1)
    [savepoint] = list_savepoints(table.state)
    assert savepoint.name == "kept"
    assert verify(table.state).findings == ()
    assert_same_rows(table.read(as_of=moment(table, savepoint.instant)), expected)
    table.restore("kept")
    assert_same_rows(table.read(), expected)


def test_repair_says_so_and_puts_it_back(table: LocalTable) -> None:
    before = table.storage.read(there(table))
    path = lost(table)
    would = repair(table.storage, lock_timeout_ms=TIMEOUT, dry_run=True)
    assert [one.what for one in would.repaired] == [path]
    assert [one.what for one in repair(table.storage, lock_timeout_ms=TIMEOUT).repaired] == [path]
    assert table.storage.read(there(table)) == before
    assert verify(table.state).findings == ()


def test_a_damaged_savepoint_is_made_anew_with_its_name(table: LocalTable) -> None:
    path = there(table)
    table.storage.overwrite(path, table.storage.read(path)[:50])
    repair(table.storage, lock_timeout_ms=TIMEOUT)
    assert [one.name for one in list_savepoints(table.state)] == ["kept"]


def test_a_savepoint_that_was_not_completed_or_is_deleted_does_not_come_back(table: LocalTable) -> None:
    begun = LocalTable(copy_of(table.storage), lock_timeout_ms=TIMEOUT)
    die(begun, r"savepoint$", lambda one: one.savepoint(name="more"))
    assert verify(begun.state).findings == ()
    begun.upsert(batch([("c", 1, "z", "c1")]))
    assert [one.name for one in list_savepoints(begun.state)] == ["kept"]
    die(table, r"delete .*savepoint$", lambda one: one.delete_savepoint("kept"))
    table.delete_savepoint("kept")
    table.upsert(batch([("c", 1, "z", "c1")]))
    assert list_savepoints(table.state) == []
    assert verify(table.state).findings == ()


def test_a_restore_to_before_a_lost_savepoint_does_not_bring_it_back(table: LocalTable) -> None:
    time = table.instants()[1]
    table.savepoint(time, "later")
    assert table.storage.delete(state_path(table.storage, f"{time}.savepoint"))
    table.restore(to=table.instants()[0], cascade=True)
    table.upsert(batch([("c", 1, "z", "c1")]))
    assert [one.name for one in list_savepoints(table.state)] == ["kept"]
