"""Writers killed with SIGKILL at random moments: the next one repairs the table by itself, and no acknowledged row is lost."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.table import HoodieTable
from tests.crash.checker import check_recovered, look
from tests.crash.processes import acknowledged, errors_of, finish, forked, make, start, wait_ready
from tests.crash.writer import as_batch, rows_of
from tests.support.local_table import LocalTable
from tests.support.readers import assert_same_rows, read_with_hudi_rs, user_columns

KILLS = int(os.environ.get("LAKEHOUSE_KILLS", "30"))
COLUMNS = ("part", "n")
LONGEST = 0.6
"""Seconds that a writer lives at most: some writes and services."""
Rows = dict[str, tuple[Any, ...]]


class Expected:
    """What the table may hold, told by the log of its writers.

    `possible` has more than one entry while a restore was begun and not acknowledged; what is found then says which one is true.
    """

    def __init__(self, log: Path) -> None:
        self.log, self.read = log, 0
        self.possible: list[Rows] = [{}]
        self.history: dict[str, Rows] = {}
        self.last, self.counts = -1, Counter[str]()

    def update(self) -> None:
        lines = self.log.read_text().splitlines()
        for line in lines[self.read :]:
            word, *rest = line.split()
            if word.isdigit():
                self.last = int(rest[0])
                self.possible = [{**rows, **rows_of("w", self.last)} for rows in self.possible]
                self.history[word] = self.possible[0]
            elif word == "restoring":
                self.possible = [*self.possible, self._as_of(rest[0])]
            elif word == "restored":
                self.possible = [self._as_of(rest[0])]
            self.counts["upsert" if word.isdigit() else " ".join([word, *rest]) if word == "did" else word] += 1
        self.read = len(lines)

    def _as_of(self, instant: str) -> Rows:
        return self.history[max(time for time in self.history if time <= instant)]

    def check(self, rows: Rows) -> None:
        """Every acknowledged row is there; what else is there is of the commit after the last one."""
        self.update()
        following = [{**possible, **rows_of("w", self.last + 1)} for possible in self.possible]
        assert rows in (*self.possible, *following), f"rows are {rows}, possible are {self.possible}"
        self.possible = [dict(rows)] if rows in self.possible else [self.possible[following.index(rows)]]


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_acknowledged_rows_survive_kills_at_random_moments(table_type: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("LAKEHOUSE_CRASH_SEED", random.SystemRandom().randrange(10**6)))
    print(f"LAKEHOUSE_CRASH_SEED={seed}")
    chance, began = random.Random(seed), time.monotonic()
    storage, log = make(tmp_path / "t", table_type), tmp_path / "log"
    expected, pending, cleaned = Expected(log), 0, set[str]()
    for kill in range(KILLS):
        process = forked(tmp_path / "t", log, seed + kill)
        wait_ready(log, process, kill + 1)
        # From the very start, when it repairs what the one before left, to some actions later.
        process.join(chance.uniform(0, LONGEST))
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL, f"writer {kill} failed: {process.exitcode}"
        found = look(storage, COLUMNS, cleaned)
        pending += bool(found.pending)
        expected.check(found.rows)
    table = LocalTable(storage)
    table.upsert(as_batch(rows_of("w", expected.last + 1)))
    table.compact() if table_type == "mor" else None
    table.clean(2)
    found = look(storage, COLUMNS, cleaned)
    check_recovered(storage, found)
    assert found.rows == {**expected.possible[0], **rows_of("w", expected.last + 1)}
    read = table.read()
    assert {row["id"]: (row["part"], row["n"]) for row in read.to_pylist()} == found.rows
    assert_same_rows(user_columns(read_with_hudi_rs(tmp_path / "t")), read)
    print(f"{table_type}: {KILLS} kills, {pending} left something pending; {dict(expected.counts)}; {time.monotonic() - began:.1f} s")
    assert pending, "no kill hit an action; the moments are too early or too late"


def test_writers_at_once_are_put_in_order_and_lose_nothing(tmp_path: Path) -> None:
    storage, commits = make(tmp_path / "t"), 25
    names = [f"w{number}" for number in range(4)]
    began = time.time() + 3
    processes = {name: start("count", tmp_path / "t", tmp_path / name, name, commits, began) for name in names}
    for name, process in processes.items():
        finish(process, tmp_path / name)
    found = look(storage, COLUMNS)
    check_recovered(storage, found)
    instants = [instant for name in names for instant, _ in acknowledged(tmp_path / name)]
    assert sorted(instants) == found.writes
    assert len(set(instants)) == len(names) * commits
    own = {f"{name}-{number}": ("p1", number) for name in names for number in range(commits)}
    assert found.rows == {**own, "counter": ("p0", len(names) * commits)}
    assert_same_rows(user_columns(read_with_hudi_rs(tmp_path / "t")), HoodieTable(storage).to_arrow())
    print(f"{len(instants)} commits of {len(names)} processes in {time.time() - began:.1f} s")


def test_processes_that_start_in_one_millisecond_get_different_instants(tmp_path: Path) -> None:
    storage = make(tmp_path / "t")
    began = time.time() + 3
    names = [f"w{number}" for number in range(4)]
    processes = [start("insert", tmp_path / "t", tmp_path / name, name, 3, began) for name in names]
    for name, process in zip(names, processes, strict=True):
        finish(process, tmp_path / name)
    instants = Counter(instant for name in names for instant, _ in acknowledged(tmp_path / name))
    assert max(instants.values()) == 1
    assert look(storage, COLUMNS).writes == sorted(instants)


def test_lock_of_a_killed_writer_is_free_at_once(tmp_path: Path) -> None:
    storage, log = make(tmp_path / "t"), tmp_path / "log"
    process = start("upsert", tmp_path / "t", log, "w", 1000)
    wait_ready(log, process)
    while not acknowledged(log):
        assert process.poll() is None, errors_of(log)
        time.sleep(0.005)
    process.kill()
    process.wait()
    began = time.monotonic()
    HoodieTable(storage).delete(pa.table({"id": pa.array([], pa.string())}), options={"hoodie.write.lock.wait_time_ms": 1000})
    assert time.monotonic() - began < 1.5
    check_recovered(storage, look(storage, COLUMNS))
