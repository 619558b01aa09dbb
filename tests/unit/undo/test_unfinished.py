"""Restores and rollbacks that begin and cannot go on: the caller is told what readers see, and how it ends."""

from __future__ import annotations

import pickle

import pytest

from lakehouse_engine.api.describe import describe_table
from lakehouse_engine.cli.terminal.errors import exit_code_of
from lakehouse_engine.errors import LakehouseError, RestoreUnfinishedError, RollbackUnfinishedError, StorageError
from lakehouse_engine.model.instant import Action
from lakehouse_engine.repair import repair
from lakehouse_engine.storage.faults import Fault, FaultyStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.view.history import history as table_history
from tests.support.local_table import LocalTable
from tests.support.readers import assert_same_rows
from tests.unit.undo.bringing_back import KINDS, TIMEOUT, copy_of, history

FAULTS = (Fault.TRANSIENT, Fault.PERSISTENT, Fault.LOST_ACK)


def _calls(table: LocalTable, act: str, to: str | None) -> int:
    counting = FaultyStorage(copy_of(table.storage))
    _do(counting, act, to)
    return len(counting.mutations)


def _do(storage: FaultyStorage | MemoryStorage, act: str, to: str | None) -> None:
    table = LocalTable(storage, lock_timeout_ms=TIMEOUT)
    if act == "restore":
        table.restore(to=to)
    else:
        table.rollback()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_restore_that_raised_says_whether_it_has_begun(kind: str, fault: Fault) -> None:
    table, instants = history(kind)
    before, after, unfinished = table.read(), table.read(as_of=instants[0]), 0
    for call in range(1, _calls(table, "restore", instants[0]) + 1):
        storage = copy_of(table.storage)
        try:
            _do(FaultyStorage(storage, call, fault), "restore", instants[0])
            raised: LakehouseError | None = None
        except LakehouseError as error:
            raised = error
        now = LocalTable(storage)
        begun = [one for one in now.state.timeline if one.action is Action.RESTORE]
        assert_same_rows(now.read(), after if begun else before)
        assert isinstance(raised, RestoreUnfinishedError) == (bool(begun) and not begun[0].is_completed), f"call {call}: {raised!r}"
        if isinstance(raised, RestoreUnfinishedError):
            unfinished += 1
            _check_told(now, raised, instants[0])
            repair(storage, lock_timeout_ms=TIMEOUT)
            assert_same_rows(now.read(), after)
            assert describe_table(now.state)["unfinished_restore"] is None
    assert unfinished > 2


def _check_told(table: LocalTable, error: RestoreUnfinishedError, target: str) -> None:
    assert (error.context["target"], "has begun" in str(error), "simulated" in str(error)) == (target, True, True)
    assert exit_code_of(error) == 1
    assert pickle.loads(pickle.dumps(error)).context == error.context
    assert f"the table shows as of {target}" in describe_table(table.state)["unfinished_restore"]
    (note,) = [entry.note for entry in table_history(table.state) if entry.action == "restore"]
    assert f"the table shows as of {target} already" in str(note)


def test_what_cannot_finish_a_restore_says_so_too() -> None:
    table, instants = history("mor")
    calls = _calls(table, "restore", instants[0])
    with pytest.raises(RestoreUnfinishedError):
        _do(FaultyStorage(table.storage, calls - 2, Fault.PERSISTENT), "restore", instants[0])
    broken = LocalTable(FaultyStorage(table.storage, 1, Fault.PERSISTENT), lock_timeout_ms=TIMEOUT)
    with pytest.raises(RestoreUnfinishedError) as caught:
        broken.savepoint()
    assert caught.value.context["target"] == instants[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_rollback_that_raised_says_whether_it_has_begun(kind: str) -> None:
    table, _ = history(kind)
    unfinished = 0
    for call in range(1, _calls(table, "rollback", None) + 1):
        storage = copy_of(table.storage)
        raised: LakehouseError | None = None
        try:
            _do(FaultyStorage(storage, call, Fault.PERSISTENT), "rollback", None)
        except (StorageError, RollbackUnfinishedError) as error:
            raised = error
        begun = [one for one in LocalTable(storage).state.timeline if one.action is Action.ROLLBACK and not one.is_completed]
        assert isinstance(raised, RollbackUnfinishedError) == bool(begun), f"call {call}: {raised!r}"
        unfinished += bool(begun)
        repair(storage, lock_timeout_ms=TIMEOUT)
        assert not list(LocalTable(storage).state.timeline.pending())
    assert unfinished > 1
