"""Who meets whom, on which table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lakehouse_engine.errors import (
    InstantCleanedError,
    InstantNotFoundError,
    LakehouseError,
    LockTimeoutError,
    MissingFileError,
    RollbackError,
    TimelineError,
    TimelineRestoredError,
    UnseenFileError,
)
from lakehouse_engine.services.metadata.building import build
from lakehouse_engine.write.create import TableSpec, create_table
from tests.crash.scenarios import SCHEMA, Row, batch, by_key
from tests.explorer import actors as do
from tests.explorer import hudi
from tests.explorer.disk import Disk
from tests.explorer.oracle import Rows
from tests.explorer.turns import CRASH, LOST, PAUSE
from tests.support.local_table import LocalTable
from tests.support.metadata_checks import buildable
from tests.support.versions import version_of_new_tables
from tests.unit.timeline.locks.tables import BESIDE_HUDI

COW, MOR = "cow", "mor"
BOTH = (COW, MOR)
NINE = {"hoodie.write.table.version": "9", "hoodie.index.type": "SIMPLE"}
"""Keys are looked up in their partition: with a global index a writer keeps the lock."""


@dataclass
class Start:
    """A table, and its rows as of each of its commits. `moments` as of the oracle."""

    disk: Disk
    at: dict[str, Rows] = field(default_factory=dict)
    moments: dict[str, str] = field(default_factory=dict)
    rows: Rows = field(default_factory=dict)

    @property
    def table(self) -> LocalTable:
        return LocalTable(self.disk)

    def then(self, instant: str | None, rows: Rows) -> None:
        assert instant is not None
        self.rows = self.at[instant] = rows
        self.moments[instant] = self.table.state.order.moment(instant)


_START: tuple[Row, ...] = (("n", 1, "x", "0"), ("a", 1, "x", "a1"), ("b", 1, "x", "b1"), ("c", 1, "y", "c1"))


def _create(kind: str, properties: Mapping[str, str] | None = None) -> Start:
    start = Start(Disk("memory://explorer/start"))
    spec = TableSpec("explored", SCHEMA, ["id"], ["ts"], ["part"], kind, properties=dict(properties or {}), version=version_of_new_tables())
    create_table(start.disk, spec)
    if spec.properties.get("hoodie.metadata.enable") == "true":
        build(start.disk, buildable(start.table.state), lock_timeout_ms=5000)
    return start


def plain(kind: str, properties: Mapping[str, str] | None = None) -> Start:
    """Two partitions, two commits."""
    start = _create(kind, properties)
    start.then(start.table.insert(batch(_START[:3])).instant, by_key(*_START[:3]))
    start.then(start.table.upsert(batch(_START[3:])).instant, by_key(*_START))
    return start


def shared(kind: str) -> Start:
    """As `plain`, and Hudi writes it, too."""
    return plain(kind, BESIDE_HUDI)


def logged(kind: str, properties: Mapping[str, str] | None = None) -> Start:
    """With a third commit, which is a log, or a second version of a file."""
    start = plain(kind, properties)
    row = ("a", 2, "x", "a2")
    start.then(start.table.upsert(batch([row])).instant, {**start.rows, **by_key(row)})
    return start


def counted(kind: str) -> Start:
    """The third commit counts n."""
    start = plain(kind)
    row = ("n", 2, "x", "1")
    start.then(start.table.upsert(batch([row])).instant, {**start.rows, **by_key(row)})
    return start


def saved(kind: str, properties: Mapping[str, str] | None = None) -> Start:
    """A savepoint, and two commits after it."""
    start = plain(kind, properties)
    start.table.savepoint(name="good")
    for number in (2, 3):
        row = ("a", number, "x", f"a{number}")
        start.then(start.table.upsert(batch([row])).instant, {**start.rows, **by_key(row)})
    return start


def aged(kind: str, properties: Mapping[str, str] | None = None) -> Start:
    """Commits enough for a clean and for archiving."""
    start = plain(kind, properties)
    for number in (2, 3, 4):
        row = ("a", number, "x", f"a{number}")
        start.then(start.table.upsert(batch([row])).instant, {**start.rows, **by_key(row)})
    if kind == MOR:
        start.then(start.table.compact().instant, start.rows)
    return start


@dataclass(frozen=True)
class Scenario:
    """`acts` by actor, in the order in which they go on by themselves. `may_fail`: what an actor may be told instead of success.

    `faults`: what may happen to an actor besides. `skews`: seconds by which clocks are ahead. `machines`: each actor is on one of its own.
    `has_metadata`: the table has a metadata table, which has to be right at the end.
    """

    name: str
    start: Callable[[str], Start]
    acts: Mapping[str, do.Act]
    kinds: tuple[str, ...] = BOTH
    may_fail: Mapping[str, tuple[type[LakehouseError], ...]] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    faulty: tuple[str, ...] = ()
    skews: Mapping[str, float] = field(default_factory=dict)
    machines: bool = False
    foreign: frozenset[str] = frozenset()
    has_metadata: bool = False


# Rows of one key that meet have the same ordering value, so that the later commit counts.
A2, A3, B2, C2 = ("a", 2, "x", "a2"), ("a", 3, "x", "a3"), ("b", 2, "x", "b2"), ("c", 2, "y", "c2")
A5, A6, B5, D1, E1 = ("a", 5, "x", "a5"), ("a", 5, "x", "a6"), ("b", 5, "x", "b5"), ("d", 1, "x", "d1"), ("e", 1, "x", "e1")
F1, G1 = ("f", 1, "y", "f1"), ("g", 1, "w", "g1")

SCENARIOS = (
    Scenario("two upserts of one file", plain, {"one": do.upsert(A2, D1), "two": do.upsert(("a", 2, "x", "other"), B2)}),
    Scenario("two inserts into one small file", plain, {"one": do.insert(D1), "two": do.insert(E1)}),
    Scenario("two counters", plain, {"one": do.increment_by_state("n"), "two": do.increment_by_instant("n")}),
    Scenario("two counters by state", plain, {"one": do.increment_by_state("n"), "two": do.increment_by_state("n")}, (COW,)),
    Scenario("upsert, delete and overwrite", plain, {"one": do.upsert(A2, D1), "two": do.delete("a", "c"), "three": do.overwrite(E1)}),
    Scenario("disjoint upserts and a reader", plain, {"one": do.upsert(A2), "two": do.upsert(C2, G1), "reads": do.reader()}),
    Scenario("overwrite and a follower", plain, {"one": do.overwrite(D1), "two": do.upsert(C2), "follows": do.follower()}),
    Scenario("two upserts and a follower", plain, {"one": do.upserts([A2], [F1]), "follows": do.follower(4)}),
    Scenario(
        "wrong clocks",
        plain,
        {"one": do.upserts([A2], [C2]), "two": do.upserts([("a", 2, "x", "other")]), "follows": do.follower()},
        skews={"one": 200.0, "two": -200.0},
    ),
    Scenario(
        "clocks that are an hour wrong",
        plain,
        {"one": do.upsert(A2), "two": do.upsert(("a", 2, "x", "other")), "three": do.upsert(B2), "follows": do.follower()},
        may_fail={"one": (TimelineError,), "two": (TimelineError,)},
        skews={"one": 3600.0, "two": -3600.0},
    ),
    Scenario("savepoint beside writes", plain, {"one": do.upsert(A2), "saves": do.savepoint(), "two": do.upsert(B2)}),
    Scenario(
        "savepoint beside a clean",
        aged,
        {"cleans": do.clean(), "saves": do.savepoint_before(2), "one": do.upsert(A5)},
        may_fail={"saves": (InstantCleanedError,)},
    ),
    Scenario(
        "savepoint beside archiving",
        aged,
        {"serves": do.in_turn(do.clean(), do.archive()), "saves": do.savepoint_before(2), "one": do.upsert(A5)},
        may_fail={"saves": (InstantCleanedError, InstantNotFoundError)},
    ),
    Scenario(
        "clean and savepoint", aged, {"cleans": do.clean(), "saves": do.savepoint_before(2)}, may_fail={"saves": (InstantCleanedError,)}
    ),
    Scenario(
        "archiving and savepoint",
        aged,
        {"archives": do.archive(), "saves": do.savepoint_before(3)},
        may_fail={"saves": (InstantCleanedError, InstantNotFoundError)},
    ),
    Scenario("restore and a write", saved, {"restores": do.restore("good"), "one": do.upsert(A5, D1)}),
    Scenario(
        "restore beside a write",
        saved,
        {"restores": do.restore("good"), "one": do.upsert(A5, D1), "reads": do.reader()},
        may_fail={"reads": (TimelineRestoredError, MissingFileError)},
    ),
    Scenario(
        "restore and a reader",
        saved,
        {"restores": do.restore("good"), "reads": do.reader()},
        may_fail={"reads": (TimelineRestoredError, MissingFileError)},
    ),
    Scenario(
        "restore beside a counter",
        saved,
        {"restores": do.restore("good"), "one": do.increment_by_state("n"), "two": do.increment_by_instant("n")},
    ),
    Scenario("restore beside a follower", saved, {"restores": do.restore("good"), "one": do.upsert(A5), "follows": do.follower()}),
    Scenario(
        "rollback beside writes",
        logged,
        {"back": do.rollback(), "one": do.upsert(A5), "two": do.increment_by_state("n")},
        may_fail={"back": (RollbackError,)},
    ),
    Scenario(
        "rollback beside a counter",
        counted,
        {"one": do.increment_by_state("n"), "back": do.rollback()},
        may_fail={"back": (RollbackError,)},
    ),
    Scenario(
        "clean and archive beside a reader",
        aged,
        {"serves": do.in_turn(do.clean(), do.archive()), "one": do.upsert(A5), "reads": do.reader(3)},
        may_fail={"reads": (MissingFileError,)},
    ),
    Scenario("clean beside a counter", aged, {"cleans": do.clean(), "one": do.increment_by_state("n"), "two": do.upsert(A5)}),
    Scenario(
        "dying writers",
        plain,
        {"one": do.upsert(A2, D1), "two": do.upsert(("a", 2, "x", "other")), "reads": do.reader(1)},
        faults=(CRASH, LOST),
        faulty=("one",),
    ),
    Scenario(
        "a counter that dies",
        plain,
        {"one": do.increment_by_state("n"), "two": do.increment_by_instant("n")},
        faults=(CRASH, LOST, PAUSE),
        faulty=("one",),
    ),
    Scenario("a dying restore", saved, {"restores": do.restore("good"), "one": do.upsert(A5)}, faults=(CRASH,), faulty=("restores",)),
    Scenario(
        "a dying rollback",
        logged,
        {"back": do.rollback(), "one": do.upsert(A5)},
        faults=(CRASH,),
        faulty=("back",),
        may_fail={"back": (RollbackError,)},
    ),
    Scenario(
        "a dying clean",
        aged,
        {"cleans": do.clean(), "saves": do.savepoint(), "one": do.upsert(A5)},
        faults=(CRASH,),
        faulty=("cleans",),
    ),
    Scenario("dying archiving", aged, {"archives": do.archive(), "one": do.upsert(A5)}, faults=(CRASH,), faulty=("archives",)),
    Scenario(
        "paused readers and writers",
        plain,
        {"one": do.upsert(A2), "two": do.upsert(B2), "reads": do.reader(1)},
        faults=(PAUSE,),
        faulty=("one", "reads"),
    ),
    Scenario("rows that are staged", plain, {"one": do.upsert_staged(A2, D1), "two": do.upsert_staged(B2)}),
    Scenario("another column meanwhile", plain, {"one": do.upsert_staged(A2, D1), "adds": do.add_column("w")}),
    Scenario(
        "a worker with a disk of its own",
        plain,
        {"one": do.upsert_elsewhere(A2, D1), "two": do.upsert(B2)},
        may_fail={"one": (UnseenFileError,)},
    ),
    Scenario(
        "an attempt that is late",
        plain,
        {"one": do.upsert_twice(A2, D1), "late": do.late_attempt("one")},
        faults=(CRASH, PAUSE),
        faulty=("late",),
    ),
    Scenario("Hudi and an upsert of one file", shared, {"one": do.upsert(A2, D1), "hudi": hudi.upserts([B2])}, foreign=frozenset({"hudi"})),
    Scenario(
        "Hudi and upserts of other files", shared, {"one": do.upserts([A2], [B2]), "hudi": hudi.upserts([C2])}, foreign=frozenset({"hudi"})
    ),
    Scenario(
        "Hudi, and a counter", shared, {"one": do.increment_by_state("n"), "hudi": hudi.upserts([C2])}, (COW,), foreign=frozenset({"hudi"})
    ),
    Scenario(
        "Hudi and a follower",
        shared,
        {"one": do.upsert(A2), "hudi": hudi.upserts([C2]), "follows": do.follower(4)},
        foreign=frozenset({"hudi"}),
    ),
    Scenario(
        "a dying Hudi",
        shared,
        {"hudi": hudi.upserts([C2, B2]), "one": do.impatient(do.upsert(A2))},
        faults=(CRASH, PAUSE),
        faulty=("hudi",),
        foreign=frozenset({"hudi"}),
        may_fail={"one": (LockTimeoutError,)},
    ),
)
