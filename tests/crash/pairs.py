"""Pairs of actions: one dies at each of its calls, another comes upon that table and dies at each of its own, then a write recovers.

Takes long, so its name keeps it out of the usual collection: `make nightly`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pytest

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from tests.crash.checker import Found, Rows, check_recovered, check_rows, look
from tests.crash.harness import Harness, at, shape
from tests.crash.scenarios import CASES, COLUMNS, PROBES, Case, batch, by_key, copy_of, open_table
from tests.support.local_table import LocalTable

LATE = ("late", 1, "y", "l1")


@dataclass(frozen=True)
class Second:
    """The action that comes second; `after` makes the rows that it leaves out of those that it found and of the oldest commit's."""

    name: str
    act: Callable[[LocalTable, str], object]
    after: Callable[[Rows, Rows], Rows] = lambda rows, _: rows
    types: tuple[str, ...] = ("cow", "mor")


SECONDS = [
    Second("upsert", lambda table, _: table.upsert(batch([LATE])), lambda rows, _: {**rows, **by_key(LATE)}),
    Second(
        "delete",
        lambda table, _: table.delete(pa.table({"id": ["a"]})),
        lambda rows, _: {key: row for key, row in rows.items() if key != "a"},
    ),
    Second("compaction", lambda table, _: table.compact(), types=("mor",)),
    Second("clustering", lambda table, _: table.cluster("v")),
    Second("clean", lambda table, _: table.clean(1)),
    Second("archive", lambda table, _: table.archive(2, 3)),
    Second("savepoint", lambda table, _: table.savepoint(name="between")),
    Second("restore", lambda table, oldest: table.restore(to=oldest, cascade=True), lambda _, oldest: oldest),
]
PAIRS = [(case, second) for case in CASES for second in SECONDS if case.table_type in second.types]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("case", "second"), PAIRS, ids=[f"{case}, then {second.name}" for case, second in PAIRS])
def test_an_action_upon_the_remains_of_another_one_loses_nothing(case: Case, second: Second) -> None:
    pair = Pair(case, second)
    for call, name in enumerate(pair.first.calls(), 1):
        with at(f"crash before call {call}, {name}"):
            pair.check(call)
    print(f"{case}, then {second.name}: {pair.points} points, {len(pair.seen)} different tables")
    if not pair.points:
        pytest.skip("the second action has nothing to do on what the first one leaves")


class Pair:
    def __init__(self, case: Case, second: Second) -> None:
        self.first, self.second = Harness(case), second
        self.oldest = min(self.first.start.history, default="")
        self.points, self.seen = 0, set[object]()
        self._begun = set[object]()

    def check(self, call: int) -> None:
        """The first action dies before that call; then every point of the second one."""
        crashed = copy_of(self.first.start.storage)
        self.first.run(FaultyStorage(crashed, call, Fault.CRASH_BEFORE))
        left = look(crashed, COLUMNS)
        state = shape(crashed, left)
        if state in self._begun:
            return
        self._begun.add(state)
        trial = FaultyStorage(copy_of(crashed))
        refused = self._act(trial)
        for inner, name in enumerate(trial.mutations, 1):
            storage = copy_of(crashed)
            with at(f"crash after call {inner} of the {self.second.name}, {name}"):
                self._act(FaultyStorage(storage, inner, Fault.CRASH_AFTER))
                self._check_left(storage, left, refused=refused)

    def _act(self, storage: FaultyStorage) -> bool:
        """Whether it was refused, by a typed error."""
        try:
            self.second.act(open_table(storage), self.oldest)
        except SimulatedCrash:
            return False
        except LakehouseError:
            return True
        return False

    def _check_left(self, storage: MemoryStorage, left: Found, *, refused: bool) -> None:
        self.points += 1
        found = look(storage, COLUMNS)
        state = shape(storage, found)
        if state in self.seen:
            return
        self.seen.add(state)
        settled = self.first.settled(left)
        allowed = [left.rows, settled, *self.first.between()]
        if not refused:
            allowed += [self.second.after(rows, self.first.start.history.get(self.oldest, {})) for rows in (left.rows, settled)]
        check_rows(found, *allowed)
        with at("the next write"):
            open_table(storage).upsert(batch(PROBES))
        repaired = look(storage, COLUMNS)
        check_rows(repaired, *({**rows, **by_key(*PROBES)} for rows in allowed))
        check_recovered(storage, repaired)
        stored = open_table(storage).read().to_pylist()
        check_rows(repaired, by_key(*((row["id"], row["ts"], row["part"], row["v"]) for row in stored)))
