"""What reads and writes is repeated when others were faster: freely at first, then in its turn."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.commit.expected import repeated
from lakehouse_engine.errors import ChangedSinceReadError
from lakehouse_engine.timeline.lock import TableLock

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    made = Lakehouse(str(tmp_path)).create_table("s.t", schema=SCHEMA, record_key=["id"])
    made.insert(pa.table({"id": [0], "n": [0]}, schema=SCHEMA))
    return made


def newest(table: HoodieTable) -> str:
    last = table.timeline.completed().writes().last()
    assert last is not None
    return last.requested_time


def overtaken(table: HoodieTable) -> ChangedSinceReadError:
    read = newest(table)
    table.insert(pa.table({"id": [len(table.timeline)], "n": [0]}, schema=SCHEMA))
    with pytest.raises(ChangedSinceReadError) as refused:
        table.upsert(pa.table({"id": [0], "n": [1]}, schema=SCHEMA), expected_instant=read)
    return refused.value


@pytest.mark.parametrize(("retries", "locked"), [(1, [False, True]), (2, [False, False, True]), (4, [False, False, True, True, True])])
def test_who_was_overtaken_twice_or_has_one_try_left_holds_the_lock(table: HoodieTable, retries: int, locked: list[bool]) -> None:
    error, tried = overtaken(table), list[tuple[bool, bool]]()

    def again() -> None:
        tried[-1] = (tried[-1][0], TableLock(table.storage).is_held)

    def attempt() -> None:
        tried.append((TableLock(table.storage).is_held, False))
        raise error

    with pytest.raises(ChangedSinceReadError):
        repeated(attempt, retries, again)
    assert [held for held, _ in tried] == locked
    assert not TableLock(table.storage).is_held
    assert [held for _, held in tried[:-1]] == locked[1:]


def test_without_repetitions_the_first_conflict_is_told(table: HoodieTable) -> None:
    error, tried = overtaken(table), []

    def attempt() -> None:
        tried.append(1)
        raise error

    with pytest.raises(ChangedSinceReadError):
        repeated(attempt, 0)
    assert len(tried) == 1


def test_many_that_count_in_one_row_all_have_their_turn(table: HoodieTable) -> None:
    together, path = threading.Barrier(12), table.path

    def increment(_: int) -> None:
        mine, first = HoodieTable.open(path), list[int]()

        def attempt() -> None:
            read = newest(mine)
            (n,) = mine.to_arrow(["n"]).column("n").to_pylist()
            if not first:
                first.append(n)
                together.wait(60)
            mine.upsert(pa.table({"id": [0], "n": [n + 1]}, schema=SCHEMA), expected_instant=read)

        repeated(attempt, 2)

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(increment, range(12)))
    assert table.to_arrow(["n"]).column("n").to_pylist() == [12]
