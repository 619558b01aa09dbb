from __future__ import annotations

import pytest

from lakehouse_engine.errors import StorageError
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage


def run(storage: FaultyStorage) -> None:
    for name in "abc":
        storage.create(name, b"1")


@pytest.mark.parametrize(
    ("fault", "error", "left"),
    [
        (Fault.CRASH_BEFORE, SimulatedCrash, ["a"]),
        (Fault.CRASH_AFTER, SimulatedCrash, ["a", "b"]),
        (Fault.LOST_ACK, StorageError, ["a", "b"]),
        (Fault.TRANSIENT, StorageError, ["a"]),
        (Fault.PERSISTENT, StorageError, ["a"]),
    ],
)
def test_fault_happens_at_the_chosen_mutation(fault: Fault, error: type[BaseException], left: list[str]) -> None:
    inner = MemoryStorage()
    with pytest.raises(error):
        run(FaultyStorage(inner, 2, fault))
    assert [entry.name for entry in inner.list()] == left


def test_run_without_a_fault_enumerates_the_points() -> None:
    storage = FaultyStorage(MemoryStorage())
    run(storage)
    storage.delete("a")
    storage.open_output("d").close()
    storage.read("b")
    assert storage.mutations == ["create a", "create b", "create c", "delete a", "open_output d"]


def test_nothing_works_after_a_crash() -> None:
    storage = FaultyStorage(MemoryStorage(), 1, Fault.CRASH_AFTER)
    with pytest.raises(SimulatedCrash):
        storage.create("a", b"1")
    for attempt in (lambda: storage.read("a"), lambda: storage.delete("a"), storage.list):
        with pytest.raises(SimulatedCrash):
            attempt()


def test_later_mutations_work_after_a_transient_fault_and_fail_after_a_persistent_one() -> None:
    transient = FaultyStorage(MemoryStorage(), 1, Fault.TRANSIENT)
    persistent = FaultyStorage(MemoryStorage(), 1, Fault.PERSISTENT)
    for storage in (transient, persistent):
        with pytest.raises(StorageError):
            storage.create("a", b"1")
    transient.create("a", b"1")
    with pytest.raises(StorageError):
        persistent.create("a", b"1")
