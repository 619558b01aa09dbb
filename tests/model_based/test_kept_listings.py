"""Random histories of a table that several processes change, one of them dying now and then: a state that keeps listings from look to look
(`TableState.advance`) tells what a state tells that is loaded anew.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.faults import Answer, Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.view import timeline_diff
from lakehouse_engine.view.listings import kept
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.batch.input import ArrowInput
from lakehouse_engine.write.create import TableSpec, create_table
from lakehouse_engine.write.operation import execute_write
from lakehouse_engine.write.request import WriteRequest
from tests.support.local_table import LocalTable, Op

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("day", pa.string())])
DAYS, KEYS, STEPS = ("a", "b", "c", "d"), 24, 30
INDEXES = ("SIMPLE", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "BUCKET")


class Watched(FaultyStorage):
    """Fails at a call, after a look at the table as the calls before have left it."""

    def __init__(self, inner: Storage, call: int, look: Callable[[], None]) -> None:
        super().__init__(inner, call, Fault.TRANSIENT)
        self._fails_at, self._look = call, look

    def _mutate(self, name: str, act: Callable[[], Answer]) -> Answer:
        if len(self.mutations) + 1 == self._fails_at:
            self._look()
        return super()._mutate(name, act)


class History:
    """`advanced` are states of two processes that go on with what they know; `table` is changed by a third, which knows nothing."""

    def __init__(self, number: int) -> None:
        self.chance = random.Random(number)
        self.storage, self.ts, self.names = MemoryStorage(), 0, 0
        self.kind, self.index = self.chance.choice(("cow", "mor")), self.chance.choice(INDEXES)
        self.table = self._made()
        self.advanced = [TableState.load(self.storage) for _ in range(2)]
        self.counted: Counter[str] = Counter()

    def _made(self) -> LocalTable:
        properties = {"hoodie.index.type": self.index, "hoodie.bucket.index.num.buckets": "2"}
        spec = TableSpec("t", SCHEMA, ("id",), ("ts",), ("day",), self.kind, properties=properties)
        create_table(self.storage, spec)
        return LocalTable(self.storage)

    def rows(self, most: int = 5) -> pa.Table:
        ids, self.ts = self.chance.sample(range(KEYS), self.chance.randint(1, most)), self.ts + 1
        days = [self.chance.choice(DAYS) if self.chance.random() < 0.2 else DAYS[one % len(DAYS)] for one in ids]
        return pa.table({"id": ids, "ts": [self.ts] * len(ids), "day": days}, schema=SCHEMA)

    def run(self) -> None:
        """One of the two looks often, the other seldom."""
        for _ in range(STEPS):
            self.step()
            for number, often in enumerate((0.6, 0.1)):
                if self.chance.random() < often:
                    self.look(number)

    def step(self) -> None:
        name = self.chance.choices(list(_STEPS), [weight for weight, _ in _STEPS.values()])[0]
        try:
            _STEPS[name][1](self)
            self.counted[name] += 1
        except LakehouseError:
            self.counted["refused"] += 1

    def die(self) -> None:
        """Who upserts does not come to the end."""
        dying = FaultyStorage(self.storage, self.chance.randint(1, 30), self.chance.choice((Fault.CRASH_BEFORE, Fault.CRASH_AFTER)))
        options = LocalTable(self.storage)._write_options()
        try:
            execute_write(dying, WriteRequest(Op.UPSERT, ArrowInput(self.rows()), options), LocalRunner(1))
        except SimulatedCrash:
            # What it left is looked at before the next one takes it back.
            self.look(0)

    def give_up(self) -> None:
        """Who upserts comes upon an error and takes everything back, without an instant that tells of it; meanwhile somebody looks."""
        failing = Watched(self.storage, self.chance.randint(8, 24), lambda: self.look(0))
        execute_write(failing, WriteRequest(Op.UPSERT, ArrowInput(self.rows()), LocalTable(self.storage)._write_options()), LocalRunner(1))

    def upsert_as_one_who_knows(self) -> None:
        number, rows = self.chance.randrange(2), self.rows()
        before = len(self.stored()) - len(set(self.stored()))
        request = WriteRequest(Op.UPSERT, ArrowInput(rows), LocalTable(self.storage)._write_options())
        execute_write(self.storage, request, LocalRunner(1), self.advanced[number])
        stored = self.stored()
        found = dict(zip(stored, self.table.read(["ts"]).column("ts").to_pylist(), strict=True))
        assert {found[key] for key in self.keys(rows)} == {self.ts}
        # An insert that overwrites a partition looks nothing up, and may bring a key that is stored elsewhere.
        assert len(stored) - len(found) <= before

    def stored(self) -> list[tuple[Any, ...]]:
        return self.keys(self.table.read())

    def keys(self, rows: pa.Table) -> list[tuple[Any, ...]]:
        names = ["id"] if self.index.startswith("GLOBAL") else ["id", "day"]
        return [tuple(row.values()) for row in rows.select(names).to_pylist()]

    def save(self) -> None:
        self.names += 1
        self.table.savepoint(name=f"s{self.names}")

    def restore(self) -> None:
        self.table.restore(to=self.chance.choice(self.table.instants() or ["0"]), cascade=True)

    def make_anew(self) -> None:
        for entry in self.storage.list(""):
            if entry.is_directory:
                self.storage.delete_tree(entry.path)
            else:
                self.storage.delete(entry.path)
        self.storage.delete_tree(".hoodie")
        self.table = self._made()

    def look(self, number: int) -> None:
        now = self.advanced[number] = self.advanced[number].advance()
        fresh = TableState.load(self.storage)
        # What is being written shows in a listing, and in no row.
        writing = any(one.action.is_write for one in fresh.timeline.pending())
        if not writing:
            assert slices(now) == slices(fresh)
        if writing or self.chance.random() < 0.3:
            assert rows(now, self.table) == rows(fresh, self.table)
        self.counted["kept"] += now.view.rests_on_kept


def slices(state: TableState) -> dict[str, Any]:
    """What the state says of the table's files, now and before."""
    view, instants = state.view, [one.requested_time for one in state.timeline.completed().writes()]
    partitions = [path for path in view.partitions() if view.file_groups(path)]
    return {
        "groups": {path: view.file_groups(path) for path in partitions},
        "strays": {path: view.strays(path) for path in partitions},
        "slices": view.latest_slices(),
        "before": {one: view.slices_as_of(one) for one in instants[-3:]},
    }


def rows(state: TableState, table: LocalTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.read(state=state).to_pylist())


_STEPS: dict[str, tuple[float, Callable[[History], object]]] = {
    "upsert": (6, lambda one: one.table.upsert(one.rows())),
    "upsert of one who knows": (4, History.upsert_as_one_who_knows),
    "insert": (1, lambda one: one.table.bulk_insert(one.rows(1).set_column(0, "id", pa.array([1000 + one.ts])))),
    "delete": (2, lambda one: one.table.delete(one.rows().select(["id", "day"]))),
    "overwrite": (0.7, lambda one: one.table.insert_overwrite(one.rows(1))),
    "overwrite all": (0.3, lambda one: one.table.insert_overwrite_table(one.rows())),
    "drop": (0.5, lambda one: one.table.delete_partitions([f"day={one.chance.choice(DAYS)}"])),
    "plan": (1, lambda one: one.table.schedule_compaction()),
    "compact": (2, lambda one: one.table.compact()),
    "clean": (2, lambda one: one.table.clean(one.chance.randint(1, 3))),
    "archive": (2, lambda one: one.table.archive(2, one.chance.randint(3, 5))),
    "savepoint": (1, History.save),
    "rollback": (1.5, lambda one: one.table.rollback()),
    "restore": (0.7, History.restore),
    "die": (2, History.die),
    "give up": (3, History.give_up),
    "make anew": (0.6, History.make_anew),
}


def run(numbers: Iterable[int]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for number in numbers:
        history = History(number)
        try:
            history.run()
        except Exception as error:
            raise AssertionError(f"history {number}, {history.kind} {history.index}: {dict(history.counted)}") from error
        counted += history.counted
    return counted


@pytest.mark.parametrize("first", range(0, 40, 4))
def test_a_state_that_keeps_listings_tells_what_one_tells_that_is_loaded_anew(first: int) -> None:
    counted = run(range(first, first + 4))
    assert counted["kept"] > 5 * 4
    assert sum(counted[name] for name in _STEPS) > STEPS * 4 / 2


MUTANTS: dict[str, tuple[Any, Any]] = {
    "_touched_by": (timeline_diff.Moment, lambda self, one: ()),
    "_goes_on_from": (timeline_diff.Moment, lambda self, then: True),
    "is_settled": (kept, lambda files, groups, is_named: True),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_histories_find_listings_that_are_kept_for_too_long(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    kind, mutant = MUTANTS[name]
    monkeypatch.setattr(kind, name, mutant)
    with pytest.raises(AssertionError, match="history"):
        run(range(150))
