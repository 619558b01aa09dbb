"""Two completed files of one instant of versions 8 and 9, as two processes leave them that have no lock in common."""

from __future__ import annotations

import pytest

from lakehouse_engine.errors import CorruptInstantError
from lakehouse_engine.model.instant import Action
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.undo.savepoint import list_savepoints
from lakehouse_engine.verify import FindingKind, verify
from tests.crash.scenarios import batch, create
from tests.support.local_table import LocalTable
from tests.support.readers import assert_same_rows
from tests.support.versions import tables_of


@pytest.fixture(params=["cow", "mor"])
def table(request: pytest.FixtureRequest) -> LocalTable:
    with tables_of(9):
        storage = MemoryStorage()
        create(storage, request.param)
    made = LocalTable(storage, lock_timeout_ms=1000)
    for version in range(3):
        made.upsert(batch([("a", version, "x", f"a{version}"), ("b", version, "y", f"b{version}")]))
    return made


def completed(table: LocalTable, action: Action | None = None) -> tuple[str, str]:
    """The path of the last completed file, and one of a later completion of the same instant."""
    chosen = [one for one in table.state.timeline.completed() if action is None or one.action is action]
    path = table.state.active.path(chosen[-1])
    first = str(chosen[-1].completed_at)
    return path, path.replace(first, f"{int(first) + 5:017}")


@pytest.mark.parametrize("order", [1, -1])
def test_the_first_completion_counts_with_its_own_content_and_nothing_is_written_on_top_of_two(
    table: LocalTable, order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, state = table.read(), table.state
    path, again = completed(table)
    other = state.format.encode_commit(state.commit_metadata(state.timeline.completed().instants[0]))
    table.storage.create(again, other)
    listed = MemoryStorage.list
    monkeypatch.setattr(MemoryStorage, "list", lambda self, path="": listed(self, path)[::order])
    now = table.state
    assert [entry.path for entry in now.completed_again] == [again]
    last = now.timeline.completed().writes().instants[-1]
    assert now.active.path(last) == path == now.timeline_files[last].path
    assert_same_rows(table.read(), rows)
    with pytest.raises(CorruptInstantError, match="completed twice"):
        table.upsert(batch([("c", 1, "z", "c1")]))
    assert [(one.kind, one.path) for one in verify(table.state).findings] == [(FindingKind.CORRUPT_INSTANT, again)]
    table.storage.delete(again)
    table.upsert(batch([("c", 1, "z", "c1")]))
    assert verify(table.state).findings == ()


def test_a_second_completion_with_the_same_content_is_no_matter(table: LocalTable) -> None:
    path, again = completed(table)
    table.storage.create(again, table.storage.read(path))
    table.upsert(batch([("c", 1, "z", "c1")]))
    assert verify(table.state).findings == ()


def test_a_rollback_takes_both_away(table: LocalTable) -> None:
    path, again = completed(table)
    table.storage.create(again, table.storage.read(path))
    table.rollback()
    assert table.storage.head(path) is None
    assert table.storage.head(again) is None


def test_a_savepoint_that_was_completed_twice_is_one_and_goes_with_both_files(table: LocalTable) -> None:
    """As an object store leaves it, where the first creation came late."""
    table.savepoint(name="good")
    path, again = completed(table, Action.SAVEPOINT)
    table.storage.create(again, table.storage.read(path))
    assert [one.name for one in list_savepoints(table.state)] == ["good"]
    table.delete_savepoint("good")
    assert list_savepoints(table.state) == []
    assert verify(table.state).findings == ()
