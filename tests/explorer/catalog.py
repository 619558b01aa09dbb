"""Who meets whom in a catalog: schemas, tables and views that come and go beside those who write and read them.

What everybody was told must be what one could have been told that did all of it in some order, and lead to what is there at the end. Half a
table is never left, but by who died.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from lakehouse_engine.catalog.catalog import Catalog
from lakehouse_engine.catalog.places import Place, what_is_at
from lakehouse_engine.errors import LakehouseError
from tests.crash.timeline import expect
from tests.explorer.disk import Disk, Turned
from tests.explorer.run import NUMBERS, Outcome, Seen, raised
from tests.explorer.turns import Schedule, Turns
from tests.explorer.world import BEGINNING, World, in_world
from tests.support.catalog_acts import NAMES, carry_out, name_of, relations
from tests.support.catalog_model import VIEW, Relations, spread, step
from tests.support.linear import Op, is_linear

Done = tuple[Any, ...]
"""An operation: what, a name, and what belongs to it."""


@dataclass(frozen=True)
class CatalogScenario:
    """`acts`: what each actor does, one after the other. `faults` as of `scenarios.Scenario`. `errors`: what may be told besides what the
    model says, by actor: nothing has happened then.
    """

    name: str
    acts: Mapping[str, tuple[Done, ...]]
    faults: tuple[str, ...] = ()
    faulty: tuple[str, ...] = ()
    errors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class CatalogCase:
    scenario: CatalogScenario

    def __str__(self) -> str:
        return self.scenario.name

    @property
    def actors(self) -> tuple[str, ...]:
        return tuple(self.scenario.acts)

    def run(self, schedule: Schedule, seen: Seen) -> Outcome:
        """See `run.Case.run`."""
        start = _started()
        disk = start.copy(f"memory://explorer/{next(NUMBERS):08}")
        world, log = World(now=BEGINNING + 60), _Log(self.scenario)
        turns = Turns(schedule, world.now)
        with in_world(world):
            world.turns = turns
            turns.run({name: partial(log.act, name, Catalog(Turned(disk, _unwatched))) for name in self.scenario.acts})
            world.turns, world.now = None, turns.now + 3600
            outcome = Outcome(self, schedule, turns.trace, 0, turns.violation or raised(turns), log.told)
            if outcome.violation is None:
                try:
                    _check_end(Catalog(disk), log, whole=turns.faults == 0)
                    outcome.looks = 1
                except (LakehouseError, AssertionError) as error:
                    outcome.violation = error
        return outcome


def _unwatched(verb: str, path: str) -> None:
    """The end is what is looked at."""


START: Relations = frozenset({("t", frozenset({("a", "0")})), ("u", frozenset({("b", "0")}))})


@lru_cache
def _started() -> Disk:
    """The schema `s` with the tables `t` and `u`."""
    with in_world(World()):
        disk = Disk("memory://explorer/start")
        catalog = Catalog(disk)
        for name, rows in sorted(START):
            carry_out(catalog, "create", name)
            carry_out(catalog, "upsert", name, tuple(rows))
        return disk


@dataclass
class _Log:
    """What actors called and were told, in the order of these moments."""

    scenario: CatalogScenario
    ops: list[Op] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    _moments: int = 0

    def act(self, actor: str, catalog: Catalog) -> None:
        for what, *given in self.scenario.acts[actor]:
            begin = self._moment()
            number = len(self.ops)
            self.ops.append(Op(what, tuple(given), begin))
            try:
                answer = carry_out(catalog, what, *given)
            except LakehouseError as error:
                answer = type(error).__name__
                self.told.append(f"{actor}: {error!r}")
                if answer in self.scenario.errors.get(actor, ()):
                    self.ops[number] = Op("nothing", (given[0],), begin, self._moment(), None)
                    continue
            self.ops[number] = Op(what, tuple(given), begin, self._moment(), answer)

    def _moment(self) -> float:
        self._moments += 1
        return self._moments


def _check_end(catalog: Catalog, log: _Log, *, whole: bool) -> None:
    found = relations(catalog)
    ops = [one for op in log.ops if op.what != "nothing" for one in spread(op, NAMES)]
    told = "\n".join(map(str, log.ops))
    expect(is_linear(ops, START, step, found), f"no order leads to {sorted(map(str, found))}:\n{told}")
    for name in NAMES if whole else ():
        place = what_is_at(catalog.storage, name_of(name).path)
        expect(place in (Place.TABLE, Place.FREE), f"{name} is half a table: {place}")
    _check_goes_on(catalog, found)


def _check_goes_on(catalog: Catalog, found: Relations) -> None:
    """Every name can be used again: for a write, or a new table, also where somebody died; and nothing is left of a schema that goes."""
    for name in NAMES:
        there = dict(found).get(name)
        if there == VIEW:
            continue
        if there is None:
            carry_out(catalog, "create", name)
        carry_out(catalog, "upsert", name, (("probe", "1"),))
        expect(("probe", "1") in carry_out(catalog, "read", name), f"{name} does not go on")
    carry_out(catalog, "drop_schema", "t")
    left = [entry.path for entry in catalog.storage.walk("s")]
    expect(not left, f"a schema that was dropped leaves {left}")


A1, A2, N1, T1 = (("a", "1"),), (("a", "2"),), (("n", "1"),), (("c", "1"),)

SCENARIOS = (
    CatalogScenario(
        "a schema dropped beside a writer", {"drops": (("drop_schema", "t"),), "writes": (("upsert", "t", A1), ("upsert", "u", A1))}
    ),
    CatalogScenario(
        "a schema dropped beside who makes a table in it",
        {"drops": (("drop_schema", "t"),), "makes": (("create", "n"), ("upsert", "n", N1), ("read", "n"))},
    ),
    CatalogScenario(
        "a schema dropped beside a writer who makes another table",
        {"writes": (("upsert", "t", A1), ("create", "n"), ("upsert", "n", N1)), "drops": (("drop_schema", "t"),)},
    ),
    CatalogScenario(
        "a schema dropped beside a build",
        {"drops": (("drop_schema", "t"),), "builds": (("fill", "n", N1), ("replace", "t", T1))},
        errors={"builds": ("StorageError",)},
    ),
    CatalogScenario(
        "a schema dropped beside a rename and a view",
        {"drops": (("drop_schema", "t"),), "moves": (("rename", "t", "n"),), "views": (("view", "n"),)},
        errors={"moves": ("RelationNotFoundError",)},
    ),
    CatalogScenario("two drop a schema", {"drops": (("drop_schema", "t"),), "too": (("drop_schema", "t"), ("create", "t"))}),
    CatalogScenario(
        "a table dropped beside a writer", {"drops": (("drop", "t"), ("create", "t")), "writes": (("upsert", "t", A1), ("read", "t"))}
    ),
    CatalogScenario(
        "a table dropped twice", {"drops": (("drop", "t"),), "too": (("drop", "t"), ("create", "t")), "makes": (("create", "t"),)}
    ),
    CatalogScenario("two make one table", {"makes": (("create", "n"), ("upsert", "n", N1)), "too": (("create", "n"), ("drop", "n"))}),
    CatalogScenario("two build one table", {"builds": (("fill", "n", N1),), "too": (("fill", "n", T1),), "drops": (("drop", "n"),)}),
    CatalogScenario(
        "a table renamed beside a writer",
        {"moves": (("rename", "t", "n"),), "writes": (("upsert", "t", A1), ("upsert", "n", A2))},
    ),
    CatalogScenario("two rename one table", {"moves": (("rename", "t", "n"),), "too": (("rename", "t", "n"), ("create", "t"))}),
    CatalogScenario(
        "a table renamed to a name that is taken", {"moves": (("rename", "t", "n"),), "makes": (("create", "n"), ("upsert", "n", N1))}
    ),
    CatalogScenario("a renamed table dropped", {"moves": (("rename", "t", "n"),), "drops": (("drop", "n"), ("drop", "t"))}),
    CatalogScenario(
        "a table replaced beside a writer", {"builds": (("replace", "t", T1),), "writes": (("upsert", "t", A1), ("read", "t"))}
    ),
    CatalogScenario(
        "a table replaced and dropped", {"builds": (("replace", "t", T1),), "drops": (("drop", "t"),), "reads": (("read", "t"),)}
    ),
    CatalogScenario("a view beside a table of its name", {"views": (("view", "n"),), "makes": (("create", "n"),)}),
    CatalogScenario(
        "dying droppers",
        {"drops": (("drop", "t"), ("drop_schema", "t")), "writes": (("upsert", "t", A1), ("upsert", "u", A1))},
        faults=("crash",),
        faulty=("drops",),
    ),
    CatalogScenario(
        "dying makers",
        {"makes": (("create", "n"), ("rename", "t", "n")), "drops": (("drop_schema", "t"),)},
        faults=("crash",),
        faulty=("makes",),
        errors={"makes": ("RelationNotFoundError",)},
    ),
)
CASES = tuple(CatalogCase(scenario) for scenario in SCENARIOS)
