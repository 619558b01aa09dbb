"""Every mutating storage call of every action, crashed in every way; then every call of the recovery from it."""

from __future__ import annotations

import time
from contextlib import nullcontext

import pytest

from lakehouse_engine.errors import StorageError, TableExistsError, TableNotFoundError
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from tests.crash.checker import check_rows, look
from tests.crash.harness import FAULTS, Harness, at
from tests.crash.scenarios import CASES, CASES_OF_9, COLUMNS, START, Case, batch, by_key, create, open_table

EACH = pytest.mark.parametrize("case", CASES, ids=str)


@EACH
@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_action_survives_a_fault_at_every_call(case: Case, fault: Fault) -> None:
    harness, began = Harness(case), time.perf_counter()
    calls = harness.calls()
    for call, name in enumerate(calls, 1):
        with at(f"{fault} at call {call} of {len(calls)}, {name}"):
            harness.check_point(call, fault)
    assert calls
    tell(harness, f"{len(calls)} calls", began)


@pytest.mark.parametrize("case", CASES_OF_9, ids=str)
@pytest.mark.parametrize("fault", [Fault.CRASH_AFTER, Fault.LOST_ACK], ids=str)
def test_action_on_a_later_version_survives_a_fault_at_every_call(case: Case, fault: Fault) -> None:
    test_action_survives_a_fault_at_every_call(case, fault)


@pytest.mark.parametrize("case", CASES_OF_9, ids=str)
def test_recovery_of_a_later_version_survives_a_crash_at_every_call(case: Case) -> None:
    test_recovery_survives_a_crash_at_every_call(case)


@EACH
def test_recovery_survives_a_crash_at_every_call(case: Case) -> None:
    harness, began = Harness(case), time.perf_counter()
    points = 0
    for call, name in enumerate(harness.calls(), 1):
        with at(name):
            points += harness.check_recovery(call)
    tell(harness, f"{points} points in recoveries", began)
    assert points


def tell(harness: Harness, what: str, began: float) -> None:
    took = time.perf_counter() - began
    print(f"{harness.case}: {what}, {harness.cases} cases that left {harness.states} different tables, {took:.1f} s")


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.LOST_ACK])
def test_create_table_is_there_or_not(fault: Fault, table_type: str) -> None:
    trial = FaultyStorage(MemoryStorage())
    create(trial, table_type)
    for call in range(1, len(trial.mutations) + 1):
        storage = MemoryStorage()
        is_made = ".aux" in trial.mutations[call - 1]  # a copy of the properties is all that is left to do
        with nullcontext() if is_made and fault is Fault.LOST_ACK else pytest.raises((SimulatedCrash, StorageError)):
            create(FaultyStorage(storage, call, fault), table_type)
        try:
            create(storage, table_type)
        except TableExistsError:
            assert is_made or fault is not Fault.CRASH_BEFORE
        check_rows(look(storage, COLUMNS), {})
        open_table(storage).insert(batch(START))
        check_rows(look(storage, COLUMNS), by_key(*START))


def test_no_write_makes_a_table_where_there_is_none() -> None:
    storage = MemoryStorage()
    create(storage)
    table = open_table(storage)
    for entry in storage.walk():
        storage.delete(entry.path)
    with pytest.raises(TableNotFoundError):
        table.insert(batch(START))
    assert storage.walk() == []
