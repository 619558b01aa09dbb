"""One run of a scenario by a schedule, and what must hold at its end."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Protocol

from lakehouse_engine.commit.heartbeat import HEARTBEATS
from lakehouse_engine.errors import InstantCleanedError, LakehouseError, StorageError
from lakehouse_engine.services.metadata import indexing
from lakehouse_engine.verify import verify
from tests.crash.checker import check_no_orphans, check_recovered, look
from tests.crash.harness import shape
from tests.crash.scenarios import COLUMNS, PROBES, batch, by_key
from tests.crash.timeline import Violation, expect
from tests.explorer.actors import RECONCILE_SCHEMA, Me
from tests.explorer.disk import Disk, Turned
from tests.explorer.oracle import LOCK, Oracle, Rows
from tests.explorer.scenarios import MOR, Scenario, Start
from tests.explorer.turns import LOST, Schedule, Step, Turns
from tests.explorer.world import BEGINNING, World, in_world
from tests.support.local_table import LocalTable
from tests.support.metadata_checks import check_metadata
from tests.support.versions import tables_of

NUMBERS = itertools.count(1)
_CLEANERS = frozenset({"cleans", "archives", "serves"})
"""Actors after which moments of before may be gone."""
_LATER = 3600.0
"""Seconds after which whatever died is known to be dead, also by its heartbeat alone."""


class AnyCase(Protocol):
    """What is explored: actors, and how a schedule of theirs is carried out. `scenario` has `faults` and `faulty`."""

    @property
    def scenario(self) -> Any: ...

    @property
    def actors(self) -> tuple[str, ...]: ...

    def run(self, schedule: Schedule, seen: Seen) -> Outcome: ...


@dataclass(frozen=True)
class Case:
    """A scenario on a table type, in a table version."""

    scenario: Scenario
    kind: str
    version: int = 6

    def __str__(self) -> str:
        return f"{self.scenario.name}, {self.kind}" + ("" if self.version == 6 else f", v{self.version}")

    @property
    def actors(self) -> tuple[str, ...]:
        return tuple(self.scenario.acts)

    def run(self, schedule: Schedule, seen: Seen) -> Outcome:
        """Carry out a schedule: the same one always makes the same calls."""
        return _run(self, schedule, seen)


@dataclass
class Outcome:
    """What a run did, and what it violated, if anything."""

    case: AnyCase
    schedule: Schedule
    trace: list[Step]
    looks: int
    violation: BaseException | None = None
    told: list[str] = field(default_factory=list)


@dataclass
class Seen:
    """Ends that were looked at closely: another end of the same form is no news."""

    shapes: set[Any] = field(default_factory=set)


@lru_cache
def _started(start: Callable[[str], Start], kind: str, version: int) -> Start:
    with in_world(World()), tables_of(version):
        return start(kind)


def run(case: AnyCase, schedule: Schedule, seen: Seen | None = None) -> Outcome:
    """Carry out a schedule of a case, without what is known of other ends."""
    return case.run(schedule, seen or Seen())


def _run(case: Case, schedule: Schedule, seen: Seen) -> Outcome:
    scenario, start = case.scenario, _started(case.scenario.start, case.kind, case.version)
    disk = start.disk.copy(f"memory://explorer/{next(NUMBERS):08}")
    world = World(now=BEGINNING + 60, skews=scenario.skews, machines=scenario.machines)
    oracle = Oracle(disk, [start.rows], dict(start.at), scenario.foreign, moments=dict(start.moments))
    turns = Turns(schedule, world.now)
    faulty = any(event.what == LOST for event in schedule.events)
    actors = {
        name: Me(
            name,
            LocalTable(Turned(disk, partial(_watched, turns, oracle, name))),
            oracle,
            turns,
            (*scenario.may_fail.get(name, ()), *((StorageError,) if faulty else ())),
        )
        for name in scenario.acts
    }
    with in_world(world):
        world.turns = turns
        turns.run({name: partial(act, actors[name]) for name, act in scenario.acts.items()})
        world.turns, world.now = None, turns.now
        outcome = Outcome(case, schedule, turns.trace, oracle.looks, turns.violation or raised(turns))
        outcome.told = [f"{me.name}: {error!r}" for me in actors.values() for error in me.failed]
        if outcome.violation is None:
            try:
                _check_end(case, disk, oracle, world, seen, whole=turns.faults == 0)
            except (Violation, LakehouseError, AssertionError) as error:
                outcome.violation = error
    return outcome


def _watched(turns: Turns, oracle: Oracle, name: str, verb: str, path: str) -> None:
    try:
        oracle.watch(name, verb, path)
    except Exception as error:  # noqa: BLE001 - whatever a look at the table raises is a violation
        turns.stop(error)


def raised(turns: Turns) -> BaseException | None:
    return next((actor.error for actor in turns.actors.values() if actor.error is not None), None)


def _check_end(case: Case, disk: Disk, oracle: Oracle, world: World, seen: Seen, *, whole: bool) -> None:
    """I5, I8: moments of before are as they were, and the next write leaves the table in order."""
    oracle.check_now()
    if case.scenario.foreign and not whole:
        disk.delete(LOCK)  # Hudi's has no end by itself: somebody has to remove what a dead job left, as the error says
    found = look(disk, COLUMNS)
    state = shape(disk, found), tuple(frozenset(rows.items()) for _, rows in sorted(oracle.at.items()))
    if state in seen.shapes:
        return
    if whole and not case.scenario.foreign:
        check_no_orphans(disk, found)
    table, world.now = LocalTable(disk, {RECONCILE_SCHEMA: "true"}), world.now + _LATER
    expect(_read(table) == oracle.rows, f"the engine reads {_read(table)}, not {dict(oracle.rows)}")
    written = table.upsert(batch(PROBES)).instant
    assert written is not None
    rows = {**oracle.settled(), **by_key(*PROBES)}
    after = look(disk, COLUMNS)
    expect(after.rows == rows, f"after the next write rows are {after.rows}, not {rows}")
    check_recovered(disk, after)
    _serve(case, disk, table, rows)
    _check_leftovers(disk, table, after.pending)
    oracle.moments[written] = table.state.order.moment(written)
    for time, then in {**oracle.at, written: rows}.items():
        _check_moment(case, table, oracle.moment(time), then)
    if case.scenario.has_metadata:
        expect(check_metadata(disk), "the metadata table is gone")
    report = verify(table.state)
    expect(not report.findings, f"verify finds {report.findings}")
    seen.shapes.add(state)


def _serve(case: Case, disk: Disk, table: LocalTable, rows: Rows) -> None:
    """Every plan of a service that is pending can be carried out, and changes no row."""
    services = (table.run_compaction, table.run_clustering) if case.kind == MOR else (table.run_clustering,)
    for run in services:
        while run().instant is not None:
            pass
    for build, _ in indexing.planned_builds(table.state):
        indexing.run(disk, build.requested_time, lock_timeout_ms=60_000)
    served = look(disk, COLUMNS)
    expect(served.rows == rows, f"after the services rows are {served.rows}, not {rows}")
    check_recovered(disk, served, services=("logcompaction", "clean"))


def _check_moment(case: Case, table: LocalTable, time: str, then: Rows) -> None:
    try:
        rows = _read(table, as_of=time)
    except InstantCleanedError:
        expect(_CLEANERS & set(case.actors), f"{time} is not there any more")
        return
    expect(rows == then, f"as of {time} rows are {rows}, not {dict(then)}")


def _check_leftovers(disk: Disk, table: LocalTable, pending: Mapping[str, str]) -> None:
    """A writer that died between its heartbeat and its instant leaves the one: archiving takes it, of whose instant there is none."""
    if any(entry.name not in pending for entry in disk.walk(HEARTBEATS)):
        table.archive(50, 60)
    left = [entry.path for folder in (HEARTBEATS, ".hoodie/.locks/waiting") for entry in disk.walk(folder)]
    expect(not left and disk.head(LOCK) is None, f"left over: {left or LOCK}")


def _read(table: LocalTable, **query: Any) -> Any:
    read = table.read(**query)
    rows = by_key(*((row["id"], row["ts"], row["part"], row["v"]) for row in read.to_pylist()))
    expect(len(rows) == read.num_rows, f"keys are read twice: {read.to_pylist()}")
    return rows
