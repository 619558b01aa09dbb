"""Writers killed with SIGKILL at random moments: the next one repairs the table by itself, and no acknowledged row is lost."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa

from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from tests.crash.checker import check_kept, check_recovered, look
from tests.crash.processes import acknowledged, errors_of, finish, make, start, wait_ready
from tests.crash.writer import rows_of
from tests.support.readers import assert_same_rows, read_with_hudi_rs, user_columns

KILLS = 20
COLUMNS = ("part", "n")


def test_acknowledged_rows_survive_kills_at_random_moments(tmp_path: Path) -> None:
    seed = int(os.environ.get("LAKEHOUSE_CRASH_SEED", random.SystemRandom().randrange(10**6)))
    print(f"LAKEHOUSE_CRASH_SEED={seed}")
    chance = random.Random(seed)
    storage, log = make(tmp_path / "t"), tmp_path / "log"
    found, pending, longest = look(storage, COLUMNS), 0, _duration_of_a_write(tmp_path)
    for kill in range(KILLS):
        process = start("upsert", tmp_path / "t", log, "w", 1000)
        wait_ready(log, process, kill + 1)
        # From the very start, when it repairs what the one before left, to some writes later.
        time.sleep(chance.uniform(0, 2.5 * longest))
        process.kill()
        assert process.wait() == -9, errors_of(log)
        before, found = found, look(storage, COLUMNS)
        check_kept(before, found)
        pending += bool(found.pending)
        _check_acknowledged(found.rows, log)
    process = start("upsert", tmp_path / "t", log, "w", 1)
    finish(process, log)
    before, found = found, look(storage, COLUMNS)
    check_kept(before, found)
    check_recovered(storage, found)
    _check_acknowledged(found.rows, log, exactly=True)
    print(f"{KILLS} kills: {pending} left a pending instant, {len(acknowledged(log))} acknowledged commits of {longest * 1000:.0f} ms")
    table = HoodieTable(LocalStorage(str(tmp_path / "t")))
    read = table.to_arrow()
    assert {row["id"]: (row["part"], row["n"]) for row in read.to_pylist()} == found.rows
    assert_same_rows(user_columns(read_with_hudi_rs(tmp_path / "t")), read)
    rolled_back = sum(action == "rollback" for action in found.completed.values())
    assert rolled_back >= 1, "no kill hit a write; the moments are too early or too late"


def _duration_of_a_write(tmp_path: Path) -> float:
    """Seconds from `ready` to the second acknowledged commit of an undisturbed writer, halved."""
    log = tmp_path / "trial.log"
    make(tmp_path / "trial")
    process = start("upsert", tmp_path / "trial", log, "w", 3)
    wait_ready(log, process)
    began = time.monotonic()
    finish(process, log)
    return max(0.02, (time.monotonic() - began) / 3)


def _check_acknowledged(rows: dict[str, tuple[str, int]], log: Path, *, exactly: bool = False) -> None:
    """Every row of an acknowledged commit is there; what else is there is of the commit after the last one."""
    commits = acknowledged(log)
    wanted: dict[str, tuple[str, int]] = {}
    for _, number in commits:
        wanted.update(rows_of("w", number))
    following = {**wanted, **rows_of("w", len(commits))}
    assert [number for _, number in commits] == list(range(len(commits)))
    assert rows == wanted or (rows == following and not exactly)
    assert len({instant for instant, _ in commits}) == len(commits)


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
