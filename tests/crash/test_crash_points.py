"""Every mutating storage call of every write, crashed in every way; then every call of the recovery from it."""

from __future__ import annotations

import pytest

from lakehouse_engine.errors import StorageError, TableExistsError, TableNotFoundError
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from tests.crash.checker import check_rows, look
from tests.crash.harness import FAULTS, at, calls_of, check_point, check_recovery, write_on
from tests.crash.scenarios import COLUMNS, SCENARIOS, START, Scenario, batch, create, open_table

EACH = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


@EACH
def test_action_survives_every_fault_at_every_call(scenario: Scenario) -> None:
    start = scenario.setup()
    calls = calls_of(scenario, start)
    for call, name in enumerate(calls, 1):
        for fault in FAULTS:
            with at(f"{fault} at call {call} of {len(calls)}, {name}"):
                check_point(scenario, start, call, fault)
    print(f"{scenario.name}: {len(calls)} calls x {len(FAULTS)} faults")


@EACH
def test_recovery_survives_a_crash_at_every_call(scenario: Scenario) -> None:
    start, points = scenario.setup(), 0
    for call, name in enumerate(calls_of(scenario, start), 1):
        with at(name):
            points += check_recovery(scenario, start, call)
    print(f"{scenario.name}: {points} points in recoveries")
    assert points


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.LOST_ACK])
def test_create_table_is_there_or_not(fault: Fault) -> None:
    trial = FaultyStorage(MemoryStorage())
    create(trial)
    for call in range(1, len(trial.mutations) + 1):
        storage = MemoryStorage()
        with pytest.raises((SimulatedCrash, StorageError)):
            create(FaultyStorage(storage, call, fault))
        try:
            create(storage)
        except TableExistsError:
            assert fault is not Fault.CRASH_BEFORE
        check_rows(look(storage, COLUMNS), {})
        open_table(storage).insert(batch(START))
        write_on(storage, look(storage, COLUMNS))


def test_no_write_makes_a_table_where_there_is_none() -> None:
    storage = MemoryStorage()
    create(storage)
    table = open_table(storage)
    for entry in storage.walk():
        storage.delete(entry.path)
    with pytest.raises(TableNotFoundError):
        table.insert(batch(START))
    assert storage.walk() == []
