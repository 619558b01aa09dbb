"""Who meets a table service whose plan is run beside writers: the same scenarios of a compaction and of a clustering."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from lakehouse_engine.errors import (
    ClusteringError,
    CompactionError,
    InstantNotFoundError,
    LakehouseError,
    MissingFileError,
    RollbackError,
    TimelineRestoredError,
)
from tests.crash.scenarios import batch, by_key
from tests.explorer import actors as do
from tests.explorer.scenarios import A5, A6, B5, BOTH, C2, D1, E1, MOR, NINE, Scenario, Start, logged, saved
from tests.explorer.turns import CRASH, LOST, PAUSE
from tests.support.local_table import LocalTable

I1 = ("i", 1, "x", "i1")
_A7, _A8 = ("a", 7, "x", "a7"), ("a", 8, "x", "a8")


@dataclass(frozen=True)
class Service:
    """`start` makes a table that has work for it, `schedule` plans it, `serve` plans and runs it, `run` runs what is planned.

    `outrun`: what a run is told when writers changed all of its plan, `undone`: when its plan was taken back.
    """

    name: str
    kinds: tuple[str, ...]
    start: Callable[..., Start]
    schedule: Callable[[LocalTable], Any]
    serve: do.Act
    run: do.Act
    outrun: tuple[type[LakehouseError], ...]
    undone: tuple[type[LakehouseError], ...]

    def planned(self, kind: str, properties: Mapping[str, str] | None = None) -> Start:
        """The plan waits to be run."""
        start = self.start(kind, properties)
        assert self.schedule(start.table).instant is not None
        return start

    def planned_later(self, kind: str, properties: Mapping[str, str] | None = None) -> Start:
        """A savepoint, and a plan that is made after it."""
        start = saved(kind, properties)
        assert self.schedule(start.table).instant is not None
        return start


def spread(kind: str, properties: Mapping[str, str] | None = None) -> Start:
    """As `logged`, with a second file in x."""
    start = logged(kind, properties)
    start.then(start.table.bulk_insert(batch([I1])).instant, {**start.rows, **by_key(I1)})
    return start


COMPACTION = Service(
    "compaction",
    (MOR,),
    logged,
    lambda table: table.schedule_compaction(),
    do.compact(),
    do.run_compaction(),
    outrun=(),
    undone=(CompactionError,),
)
CLUSTERING = Service(
    "clustering",
    BOTH,
    spread,
    lambda table: table.schedule_clustering("v"),
    do.cluster("v"),
    do.run_clustering(),
    outrun=(ClusteringError,),
    undone=(ClusteringError,),
)


def beside(service: Service) -> tuple[Scenario, ...]:
    """The service beside writers, readers, other executors and what takes it back."""
    name, outrun, undone = service.name, {"runs": service.outrun}, {"runs": service.undone}
    scenario = partial(Scenario, kinds=service.kinds)
    return (
        scenario(
            f"{name} beside writes", service.start, {"runs": service.serve, "one": do.upsert(A5), "two": do.upsert(B5, A6)}, may_fail=outrun
        ),
        scenario(
            f"{name} beside a counter", service.planned, {"runs": service.run, "one": do.increment_by_state("n")}, may_fail=outrun
        ),
        scenario(
            f"{name} beside a follower",
            service.planned,
            {"runs": service.run, "one": do.upsert(A5), "follows": do.follower()},
            may_fail=outrun,
        ),
        scenario(
            f"two executors of a {name}",
            service.planned,
            {"runs": service.run, "too": service.run, "one": do.delete("a")},
            may_fail={"runs": service.outrun, "too": service.outrun},
        ),
        scenario(f"{name} beside an overwrite", service.planned, {"runs": service.run, "one": do.overwrite(D1)}, may_fail=outrun),
        scenario(
            f"{name} beside a restore",
            service.planned_later,
            {"runs": service.run, "restores": do.restore("good"), "one": do.upsert(A5)},
            may_fail={**undone, "restores": (RollbackError,)},
        ),
        scenario(
            f"{name} and a restore",
            service.planned_later,
            {"runs": service.run, "restores": do.restore("good")},
            may_fail={**undone, "restores": (RollbackError,)},
        ),
        scenario(
            f"a dying executor of a {name}",
            service.planned,
            {"runs": service.run, "one": do.upsert(A5)},
            faults=(CRASH, PAUSE),
            faulty=("runs",),
            may_fail=outrun,
        ),
    )


_TAKEN_BACK = {"runs": CLUSTERING.undone, "back": (RollbackError, InstantNotFoundError)}

_CLUSTERING = (
    Scenario("clustering beside inserts", spread, {"runs": CLUSTERING.serve, "one": do.insert(D1), "two": do.insert(E1)}),
    Scenario(
        "clustering of a stream of upserts",
        spread,
        {"runs": do.until_clustered("v", attempts=4), "one": do.upserts([A5], [_A7, B5], [_A8])},
    ),
    Scenario("clustering beside a reader", CLUSTERING.planned, {"runs": CLUSTERING.run, "reads": do.reader(3), "one": do.upsert(C2)}),
    Scenario(
        "clustering beside a clean and a reader",
        CLUSTERING.planned,
        {"serves": do.in_turn(CLUSTERING.run, do.clean()), "one": do.upsert(A5), "reads": do.reader(3)},
        may_fail={"serves": CLUSTERING.outrun, "reads": (MissingFileError,)},
    ),
    Scenario(
        "clustering beside a savepoint", CLUSTERING.planned, {"runs": CLUSTERING.run, "saves": do.savepoint(), "one": do.upsert(C2)}
    ),
    Scenario(
        "clustering and the rollback of its plan",
        CLUSTERING.planned,
        {"runs": CLUSTERING.run, "back": do.rollback_of_plan(), "one": do.upsert(C2)},
        may_fail=_TAKEN_BACK,
    ),
    Scenario(
        "rollback of a clustering",
        CLUSTERING.planned,
        {"runs": do.in_turn(CLUSTERING.run, do.rollback()), "one": do.upsert(A5)},
        may_fail={"runs": (ClusteringError, RollbackError)},
    ),
    Scenario(
        "a write to a clustering whose executor died",
        CLUSTERING.planned,
        {"runs": CLUSTERING.run, "one": do.upsert(A5), "too": CLUSTERING.run},
        faults=(CRASH, LOST),
        faulty=("runs",),
        may_fail={"runs": CLUSTERING.outrun, "too": CLUSTERING.outrun},
    ),
    Scenario(
        "a dying rollback of a clustering's plan",
        CLUSTERING.planned,
        {"back": do.rollback_of_plan(), "runs": CLUSTERING.run, "one": do.upsert(A5)},
        faults=(CRASH,),
        faulty=("back",),
        may_fail=_TAKEN_BACK,
    ),
    Scenario(
        "a restore over a clustering, and a reader",
        CLUSTERING.planned_later,
        {"restores": do.in_turn(CLUSTERING.run, do.restore("good")), "reads": do.reader(), "one": do.upsert(A5)},
        may_fail={"restores": CLUSTERING.undone, "reads": (TimelineRestoredError, MissingFileError)},
    ),
)

SERVICES = (*beside(COMPACTION), *beside(CLUSTERING), *_CLUSTERING)


def _at_once(service: Service) -> tuple[Scenario, ...]:
    """Beside writers of version 9 that make their files at once."""
    scenario = partial(Scenario, kinds=service.kinds, may_fail={"runs": service.outrun})
    start, planned = partial(service.start, properties=NINE), partial(service.planned, properties=NINE)
    return (
        scenario(f"at once: {service.name} beside writes", start, {"runs": service.serve, "one": do.upsert(A5), "two": do.upsert(C2)}),
        scenario(f"at once: {service.name} of a plan", planned, {"runs": service.run, "one": do.upsert(A5), "two": do.upsert(B5)}),
    )


SERVICES_AT_ONCE = (
    *_at_once(COMPACTION),
    *_at_once(CLUSTERING),
    Scenario(
        "at once: clustering of a stream of upserts",
        partial(spread, properties=NINE),
        {"runs": do.until_clustered("v", attempts=4), "one": do.upserts([A5], [B5]), "two": do.upserts([C2], [D1])},
    ),
    Scenario(
        "at once: a dying executor of a clustering",
        partial(CLUSTERING.planned, properties=NINE),
        {"runs": CLUSTERING.run, "one": do.upsert(A5), "two": do.upsert(C2)},
        faults=(CRASH, PAUSE),
        faulty=("runs",),
        may_fail={"runs": CLUSTERING.outrun},
    ),
)
