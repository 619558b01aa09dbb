"""The actions that are crashed: each with the table that it starts from and the rows before and after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar, overload

import pyarrow as pa

from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.write.create import TableSpec, create_table
from tests.crash.checker import Rows
from tests.support.local_table import LocalTable
from tests.support.versions import tables_of, version_of_new_tables

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("part", pa.string()), ("v", pa.string())])
COLUMNS = ("ts", "part", "v")
Row = tuple[str, int, str, str]
Memory = TypeVar("Memory", bound=MemoryStorage)

START: tuple[Row, ...] = (("a", 1, "x", "a1"), ("b", 1, "x", "b1"), ("c", 1, "y", "c1"), ("d", 1, "z", "d1"))
PROBES: tuple[Row, ...] = (("probe", 1, "x", "p"), ("other", 1, "new", "p"))
"""Written after every crash, into a partition that is there and into one that is not."""


def batch(rows: Iterable[Row]) -> pa.Table:
    chosen = list(rows)
    return pa.table([[row[index] for row in chosen] for index in range(4)], schema=SCHEMA)


def by_key(*rows: Row) -> Rows:
    return {row[0]: row[1:] for row in rows}


def open_table(storage: Storage) -> LocalTable:
    return LocalTable(storage)


def create(storage: Storage, table_type: str = "cow") -> None:
    create_table(storage, TableSpec("crashed", SCHEMA, ["id"], ["ts"], ["part"], table_type, version=version_of_new_tables()))


@overload
def copy_of(storage: Storage) -> MemoryStorage: ...
@overload
def copy_of(storage: Storage, copy: Memory) -> Memory: ...
def copy_of(storage: Storage, copy: Memory | None = None) -> Memory | MemoryStorage:
    """All files of a storage in a new one (in `copy`, if that is given)."""
    target = MemoryStorage() if copy is None else copy
    for entry in storage.walk():
        MemoryStorage.create(target, entry.path, storage.read(entry.path))
    return target


@dataclass
class Made:
    """A table and what it held after each of its commits, by instant; `rows` is what it holds now."""

    table_type: str
    storage: MemoryStorage = field(default_factory=MemoryStorage)
    history: dict[str, Rows] = field(default_factory=dict)
    rows: Rows = field(default_factory=dict)

    @property
    def table(self) -> LocalTable:
        return open_table(self.storage)

    @property
    def instants(self) -> list[str]:
        return sorted(self.history)

    def then(self, act: Callable[[LocalTable], object], rows: Rows) -> Made:
        """Do a write or a compaction that leads to `rows`."""
        instant = getattr(act(self.table), "instant", None)
        assert isinstance(instant, str), "nothing was committed"
        self.rows = self.history[instant] = rows
        return self


def _upsert(table: LocalTable) -> None:
    """Updates a, moves c from y to z, adds e to x and f to a new partition, deletes d: a merge, a move, an insert and a new group."""
    rows = [("a", 2, "x", "a2"), ("c", 2, "z", "c2"), ("e", 1, "x", "e1"), ("f", 1, "w", "f1")]
    table.upsert(batch(rows), delete_keys=pa.table({"id": ["d"]}))


_A, _B, _C, _D = START
_AFTER_UPSERT = by_key(("a", 2, "x", "a2"), _B, ("c", 2, "z", "c2"), ("e", 1, "x", "e1"), ("f", 1, "w", "f1"))
_G, _H = ("g", 1, "x", "g1"), ("h", 1, "v", "h1")


def _empty(table_type: str) -> Made:
    made = Made(table_type)
    create(made.storage, table_type)
    return made


def _start(table_type: str) -> Made:
    """Four rows in three partitions, in two commits."""
    made = _empty(table_type)
    made.then(lambda table: table.bulk_insert(batch(START[:3])), by_key(*START[:3]))
    return made.then(lambda table: table.upsert(batch(START[3:])), by_key(*START))


def _dead_writer(table_type: str) -> Made:
    """As `_start`, with the remains of an upsert that died with all its files written."""
    made = _start(table_type)
    trial = FaultyStorage(copy_of(made.storage))
    _upsert(open_table(trial))
    published = next(number for number, call in enumerate(trial.mutations, 1) if call.endswith("commit"))
    try:
        _upsert(open_table(FaultyStorage(made.storage, published, Fault.CRASH_BEFORE)))
    except SimulatedCrash:
        return made
    raise AssertionError("the writer did not die")


def _with_metadata_table(table_type: str) -> Made:
    """As `_start`, with a metadata table as Hudi leaves one: named in the properties, with files of its own."""
    made = _start(table_type)
    ConfigStore(made.storage).update({"hoodie.table.metadata.partitions": "files"})
    made.storage.create(".hoodie/metadata/.hoodie/hoodie.properties", b"hoodie.table.name=crashed_metadata\n")
    made.storage.create(".hoodie/metadata/files/files-0000-0_0-0-0_00000000000000010.hfile", b"stale")
    return made


def _updated(table_type: str) -> Made:
    """As `_start`, then a is updated, b deleted and e added, in one commit each: several slices, or logs of every kind."""
    made = _start(table_type)
    a2, a3, e = ("a", 2, "x", "a2"), ("a", 3, "x", "a3"), ("e", 1, "x", "e1")
    made.then(lambda table: table.upsert(batch([a2, ("d", 2, "z", "d2")])), by_key(a2, _B, _C, ("d", 2, "z", "d2")))
    made.then(lambda table: table.delete(pa.table({"id": ["b"]})), by_key(a2, _C, ("d", 2, "z", "d2")))
    return made.then(lambda table: table.upsert(batch([a3, e])), by_key(a3, _C, ("d", 2, "z", "d2"), e))


def _scheduled(table_type: str) -> Made:
    """As `_updated`, with a compaction planned, and an update behind it."""
    made = _updated(table_type)
    made.table.schedule_compaction()
    a4 = ("a", 4, "x", "a4")
    return made.then(lambda table: table.upsert(batch([a4])), {**made.rows, **by_key(a4)})


def _logs_scheduled(table_type: str) -> Made:
    """As `_updated`, with a log compaction planned."""
    made = _updated(table_type)
    assert made.table.schedule_compaction(log_compaction=True).instant is not None
    return made


def _logs_outdated(table_type: str) -> Made:
    """As `_logs_scheduled`, with an update of the same slice behind it."""
    made, a4 = _logs_scheduled(table_type), ("a", 4, "x", "a4")
    return made.then(lambda table: table.upsert(batch([a4])), {**made.rows, **by_key(a4)})


def _spread(table_type: str) -> Made:
    """As `_start`, with a second file in x, and a changed."""
    made, a2 = _start(table_type), ("a", 2, "x", "a2")
    made.then(lambda table: table.bulk_insert(batch([_G, ("i", 3, "x", "i1")])), {**made.rows, **by_key(_G, ("i", 3, "x", "i1"))})
    return made.then(lambda table: table.upsert(batch([a2])), {**made.rows, **by_key(a2)})


def _clustering_scheduled(table_type: str) -> Made:
    """As `_spread`, with a clustering of all files planned."""
    made = _spread(table_type)
    assert made.table.schedule_clustering("v").instant is not None
    return made


def _clustered(table_type: str) -> Made:
    """As `_spread`, clustered."""
    made = _spread(table_type)
    return made.then(lambda table: table.cluster("v"), made.rows)


def _clustered_and_updated(table_type: str) -> Made:
    """As `_clustered`, with an update of a file that the clustering made."""
    made, a4 = _clustered(table_type), ("a", 4, "x", "a4")
    return made.then(lambda table: table.upsert(batch([a4])), {**made.rows, **by_key(a4)})


def _served(table_type: str) -> Made:
    """A savepoint of the second commit; then updates, a compaction, an overwritten partition and another update: slices for a clean."""
    made = _start(table_type)
    made.table.savepoint(name="good")
    a2, a3 = ("a", 2, "x", "a2"), ("a", 3, "x", "a3")
    made.then(lambda table: table.upsert(batch([a2])), {**made.rows, **by_key(a2)})
    if table_type == "mor":
        made.then(lambda table: table.compact(), made.rows)
    made.then(lambda table: table.insert_overwrite(batch([_H, ("i", 1, "z", "i1")])), by_key(a2, _B, _C, _H, ("i", 1, "z", "i1")))
    made.then(lambda table: table.upsert(batch([a3])), {**made.rows, **by_key(a3)})
    if table_type == "mor":
        made.then(lambda table: table.compact(), made.rows)
    return made.then(lambda table: table.delete(pa.table({"id": ["c"]})), {key: row for key, row in made.rows.items() if key != "c"})


def _cleaned(table_type: str) -> Made:
    made = _served(table_type)
    made.table.clean(1)
    return made


def _archived(table_type: str) -> Made:
    made = _cleaned(table_type)
    made.table.archive(2, 3)
    return made


def _archived_often(table_type: str) -> Made:
    made = _archived(table_type)
    made.table.delete_savepoint("good")
    made.table.clean(1)
    made.table.archive(2, 2, merged=10)
    for n in (2, 3, 4):
        row = ("a", 10 + n, "x", f"a1{n}")
        made.then(lambda table, row=row: table.upsert(batch([row])), {**made.rows, **by_key(row)})  # type: ignore[misc]
        if n < 4:
            made.table.archive(2, 2, merged=10)
    assert len(made.table.state.archived_timeline.files()) == 4
    return made


def _two_savepoints(table_type: str) -> Made:
    made = _archived(table_type)
    made.table.savepoint(name="late")
    k = ("k", 1, "x", "k1")
    return made.then(lambda table: table.upsert(batch([k])), {**made.rows, **by_key(k)})


@dataclass(frozen=True)
class Scenario:
    """`act` is crashed on a copy of what `setup` made. Rows are then those before or, if it took effect, `after` (None: the same).

    `goes_back` is the position, among the commits of the start, of the one that the action goes back to: later ones vanish.
    `releases` says that savepoints may go. `again`: the same action, done again, goes on from where it died; else the next write repairs.
    """

    name: str
    make: Callable[[str], Made]
    act: Callable[[LocalTable], object]
    after: Rows | None = None
    types: tuple[str, ...] = ("cow", "mor")
    goes_back: int | None = None
    releases: bool = False
    again: bool = False


@dataclass(frozen=True)
class Case:
    """A scenario on a table type, in a table version."""

    scenario: Scenario
    table_type: str
    version: int = 6

    def __str__(self) -> str:
        return f"{self.scenario.name}, {self.table_type}" + ("" if self.version == 6 else f", v{self.version}")

    @property
    def act(self) -> Callable[[LocalTable], object]:
        return self.scenario.act

    def setup(self) -> Made:
        return _made(self.scenario.make, self.table_type, self.version)

    def after(self) -> Rows:
        start = self.setup()
        if self.scenario.goes_back is not None:
            return start.history[start.instants[self.scenario.goes_back]]
        return start.rows if self.scenario.after is None else self.scenario.after

    def gone(self) -> set[str]:
        """Instants of the start that the action takes away."""
        start, back = self.setup(), self.scenario.goes_back
        return set() if back is None else {time for time in start.instants if time > start.instants[back]}


@lru_cache
def _made(make: Callable[[str], Made], table_type: str, version: int) -> Made:
    with tables_of(version):
        return make(table_type)


_GH = by_key(_G, _H)
WRITES = [
    Scenario("first bulk insert", _empty, lambda table: table.bulk_insert(batch(START)), by_key(*START)),
    Scenario("bulk insert", _start, lambda table: table.bulk_insert(batch([_G, _H])), {**by_key(*START), **_GH}),
    Scenario("insert", _start, lambda table: table.insert(batch([_G, _H])), {**by_key(*START), **_GH}),
    Scenario("upsert", _start, _upsert, _AFTER_UPSERT),
    Scenario("delete", _start, lambda table: table.delete(pa.table({"id": ["a", "d"]})), by_key(_B, _C)),
    Scenario("insert overwrite", _start, lambda table: table.insert_overwrite(batch([_G, _H])), {**by_key(_C, _D), **_GH}),
    Scenario("overwrite table", _start, lambda table: table.insert_overwrite_table(batch([_G, _H])), _GH),
    Scenario("delete partitions", _start, lambda table: table.delete_partitions(["part=x", "part=z"]), by_key(_C)),
    Scenario("recovery, then upsert", _dead_writer, _upsert, _AFTER_UPSERT),
    Scenario("metadata table drop, then upsert", _with_metadata_table, _upsert, _AFTER_UPSERT),
]
_MOR = ("mor",)
SERVICES = [
    Scenario("compaction schedule", _updated, lambda table: table.schedule_compaction(), types=_MOR, again=True),
    Scenario("compaction run", _scheduled, lambda table: table.run_compaction(), types=_MOR, again=True),
    Scenario("compaction schedule and run", _updated, lambda table: table.compact(), types=_MOR, again=True),
    Scenario("log compaction run", _logs_scheduled, lambda table: table.run_compaction(log_compaction=True), types=_MOR, again=True),
    Scenario(
        "log compaction run behind a later write",
        _logs_outdated,
        lambda table: table.run_compaction(log_compaction=True),
        types=_MOR,
        again=True,
    ),
    Scenario(
        "upsert beside a planned compaction",
        _scheduled,
        lambda table: table.upsert(batch([("a", 5, "x", "a5"), ("g", 1, "x", "g1")]), delete_keys=pa.table({"id": ["d"]})),
        by_key(("a", 5, "x", "a5"), _C, ("e", 1, "x", "e1"), _G),
        types=_MOR,
    ),
    Scenario("clustering schedule", _spread, lambda table: table.schedule_clustering("v"), again=True),
    Scenario("clustering run", _clustering_scheduled, lambda table: table.run_clustering(), again=True),
    Scenario("clustering schedule and run", _spread, lambda table: table.cluster("v"), again=True),
    Scenario(
        "upsert of what a clustering has planned",
        _clustering_scheduled,
        lambda table: table.upsert(batch([("a", 3, "x", "a3"), _H]), delete_keys=pa.table({"id": ["c"]})),
        by_key(("a", 3, "x", "a3"), _B, _D, _G, ("i", 3, "x", "i1"), _H),
    ),
    Scenario("rollback of a planned clustering", _clustering_scheduled, lambda table: table.rollback(_planned(table))),
    Scenario("rollback of a clustering", _clustered, lambda table: table.rollback(), goes_back=-2),
    Scenario("restore over a clustering", _clustered_and_updated, lambda table: table.restore(to=_second(table)), goes_back=1),
    Scenario("restore to a clustering", _clustered_and_updated, lambda table: table.restore(to=table.instants()[-2]), goes_back=-2),
    Scenario("restore over a planned clustering", _clustering_scheduled, lambda table: table.restore(to=_second(table)), goes_back=1),
    Scenario("clean", _served, lambda table: table.clean(1), again=True),
    Scenario("archive", _cleaned, lambda table: table.archive(2, 3), again=True),
    Scenario("archive that merges", _archived_often, lambda table: table.archive(2, 2, merged=4), again=True),
    Scenario("savepoint", _updated, lambda table: table.savepoint(name="here"), again=True),
    Scenario("delete savepoint", _archived, lambda table: table.delete_savepoint("good"), releases=True, again=True),
    Scenario("rollback", _updated, lambda table: table.rollback(), goes_back=-2),
    Scenario("restore", _updated, lambda table: table.restore(to=_second(table)), goes_back=1),
    Scenario("restore beyond the archive", _archived, lambda table: table.restore("good"), goes_back=1),
    Scenario(
        "restore over a savepoint",
        _two_savepoints,
        lambda table: table.restore("good", cascade=True),
        goes_back=1,
        releases=True,
    ),
    Scenario("restore over a planned compaction", _scheduled, lambda table: table.restore(to=_second(table)), types=_MOR, goes_back=1),
]


def _second(table: LocalTable) -> str:
    return [instant.requested_time for instant in table.state.timeline.completed().writes()][1]


def _planned(table: LocalTable) -> str:
    """The clustering that is planned."""
    state = table.state
    return next(one.requested_time for one in state.timeline.pending() if one.action is state.format.clustering_action)


CASES = [Case(scenario, kind) for scenario in [*WRITES, *SERVICES] for kind in scenario.types]

CASES_OF_9 = [Case(case.scenario, case.table_type, 9) for case in CASES]
