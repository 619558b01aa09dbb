"""Crashes an action at a storage call, lets the next write recover, and checks the table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lakehouse_engine.errors import CommitOutcomeUnknownError, LakehouseError
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from tests.crash.checker import Found, Rows, check_kept, check_recovered, check_rows, look
from tests.crash.scenarios import COLUMNS, PROBES, Scenario, batch, by_key, copy_of, open_table


@contextmanager
def at(point: str) -> Iterator[None]:
    """Name the point that fails."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{point}: {error!r}") from error


FAULTS = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.LOST_ACK, Fault.TRANSIENT, Fault.PERSISTENT)


def calls_of(scenario: Scenario, start: MemoryStorage) -> list[str]:
    """Every mutating call that the action makes when all goes well."""
    storage = FaultyStorage(copy_of(start))
    scenario.act(open_table(storage))
    return storage.mutations


def run(scenario: Scenario, storage: FaultyStorage) -> tuple[Rows, ...]:
    """Run the action to its end, whichever it is; which rows the table may have then."""
    try:
        scenario.act(open_table(storage))
    except (SimulatedCrash, CommitOutcomeUnknownError):
        return scenario.before, scenario.after
    except LakehouseError:
        return (scenario.before,)
    return (scenario.after,)


def check_point(scenario: Scenario, start: MemoryStorage, call: int, fault: Fault) -> None:
    """One point: crash, look, write on, look again."""
    storage = copy_of(start)
    before = look(storage, COLUMNS)
    allowed = run(scenario, FaultyStorage(storage, call, fault))
    left = look(storage, COLUMNS)
    check_rows(left, *allowed)
    check_kept(before, left)
    write_on(storage, left)


def write_on(storage: Storage, left: Found) -> None:
    """The next write, of a process that knows nothing of what happened: it repairs the table, loses no row and adds its own."""
    with at("the next write"):
        open_table(storage).upsert(batch(PROBES))
    repaired = look(storage, COLUMNS)
    check_rows(repaired, {**left.rows, **by_key(*PROBES)})
    check_kept(left, repaired)
    check_recovered(storage, repaired)
    read = open_table(storage).to_arrow().to_pylist()
    check_rows(repaired, by_key(*((row["id"], row["ts"], row["part"], row["v"]) for row in read)))


def recovery_calls(crashed: MemoryStorage) -> int:
    """How many mutating calls the next write makes before it requests an instant of its own."""
    storage = FaultyStorage(copy_of(crashed))
    open_table(storage).upsert(batch(PROBES))
    own = [number for number, call in enumerate(storage.mutations) if call.endswith("commit.requested")]
    return own[-1]


def check_recovery(scenario: Scenario, start: MemoryStorage, call: int) -> int:
    """The write dies before `call`; then the recovery dies in its turn after each of its calls, and the write after that recovers.

    Returns how many points that were. Dying before a call leaves what dying after the one before it leaves, since recoveries write
    no data files.
    """
    crashed = copy_of(start)
    run(scenario, FaultyStorage(crashed, call, Fault.CRASH_BEFORE))
    left, points = look(crashed, COLUMNS), recovery_calls(crashed)
    for inner in range(1, points + 1):
        storage = copy_of(crashed)
        recovering = FaultyStorage(storage, inner, Fault.CRASH_AFTER)
        try:
            open_table(recovering).upsert(batch(PROBES))
        except SimulatedCrash:
            pass
        else:
            raise AssertionError(f"the recovery made fewer than {inner} calls")
        with at(f"crash before call {call}, then after call {inner} of the recovery, {recovering.mutations[-1]}"):
            write_on(storage, left)
    return points
