from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.cli.main import cli
from lakehouse_engine.commit.concurrency.executors import lock_file
from lakehouse_engine.commit.transaction import begin
from lakehouse_engine.errors import LockTimeoutError
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.heartbeats import heartbeat_file
from lakehouse_engine.timeline.lock import LOCK_FILE, TableLock
from lakehouse_engine.timeline.locks.waiting import forget_dead, waiting_for
from lakehouse_engine.timeline.processes import begin_work, end_work
from tests.unit.timeline.locks.tables import BESIDE_HUDI

ROWS = pa.table({"id": ["a", "b"], "n": pa.array([1, 2], pa.int64())})


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    lake = Lakehouse(str(tmp_path / "w"))
    made = lake.create_table("s.t", schema=ROWS.schema, record_key=["id"], table_type="mor", properties=BESIDE_HUDI)
    made.upsert(ROWS)
    made.upsert(ROWS)
    return made


def _request(table: HoodieTable, time: str, action: Action) -> None:
    ActiveTimeline(table.storage, table.state.format).create_requested(Instant(time, action, State.REQUESTED))


def test_a_table_that_nobody_writes_has_no_writers(table: HoodieTable) -> None:
    table.compact("schedule")
    assert table.writers() == []
    shown = CliRunner().invoke(cli, ["writers", table.path])
    assert (shown.exit_code, shown.output) == (0, "nobody\n")


def test_a_write_is_shown_with_its_process_and_the_one_that_waits_for_it(table: HoodieTable) -> None:
    refused: list[LockTimeoutError] = []

    def wait() -> None:
        try:
            with TableLock(table.storage, 60_000):
                pass
        except LockTimeoutError as error:
            refused.append(error)

    waiter = threading.Thread(target=wait, name="the other")
    with begin(table.storage, lock_timeout_ms=1000) as transaction:
        transaction.start(Action.DELTA_COMMIT)
        waiter.start()
        deadline = time.monotonic() + 60
        while len(table.writers()) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        writing, waiting = table.writers()
        answer = json.loads(CliRunner().invoke(cli, ["--json", "writers", table.path]).stdout)
        transaction.abandon()
    waiter.join(60)
    assert (writing.state, writing.program, writing.pid, writing.action) == ("writing", "lakehouse", os.getpid(), "deltacommit")
    assert writing.heartbeat_seconds is not None
    assert (waiting.state, waiting.thread, waiting.instant) == ("waiting", "the other", None)
    assert f"process {os.getpid()}" in str(waiting.waits_for)
    assert [one["state"] for one in answer] == ["writing", "waiting"]
    assert refused == []
    assert table.writers() == []


def test_writers_of_hudi_the_dead_and_a_running_compaction_are_told_apart(table: HoodieTable) -> None:
    planned = str(table.compact("schedule").instant)
    for instant, age in (("20260101000000000", 30), ("20260101000000001", 300)):
        _request(table, instant, Action.DELTA_COMMIT)
        table.storage.create(heartbeat_file(instant), b"")
        then = time.time() - age
        os.utime(f"{table.path}/{heartbeat_file(instant)}", (then, then))
    _request(table, "20260101000000002", Action.DELTA_COMMIT)
    with TableLock(table.storage, file=lock_file(planned)):
        found = table.writers()
    assert [(one.instant, one.state, one.program) for one in found] == [
        ("20260101000000000", "writing", "hudi"),
        ("20260101000000001", "dead", "hudi"),
        ("20260101000000002", "dead", None),
        (planned, "running", "lakehouse"),
    ]


def test_who_holds_the_lock_without_an_instant_is_shown_hudi_too(table: HoodieTable) -> None:
    with TableLock(table.storage):
        (holding,) = table.writers()
    assert (holding.state, holding.pid, holding.instant) == ("holding", os.getpid(), None)
    table.storage.create(".hoodie/lock", json.dumps({"lockCreateTime": "2026-01-01 10:00:00.000", "lockThreadName": "main"}).encode())
    (holding,) = table.writers()
    assert (holding.state, holding.program, holding.thread) == ("holding", "hudi", "main")


def test_a_process_that_was_killed_while_it_waited_waits_no_more(table: HoodieTable) -> None:
    known = json.loads(begin_work("gone"))
    end_work("gone")
    alive = {**known, "pid": 1}  # there is one of that number now, which began at another time
    for name, said in {"gone": {**known, "pid": 2**22 - 1}, "again": alive, "elsewhere": {**known, "host": "elsewhere"}}.items():
        table.storage.create(f".hoodie/.locks/waiting/{name}", json.dumps(said).encode())
    assert [one.host for one in waiting_for(table.storage, LOCK_FILE)] == ["elsewhere"]
    forget_dead(table.storage, LOCK_FILE)
    assert [entry.name for entry in table.storage.list(".hoodie/.locks/waiting")] == ["elsewhere"]


def test_locks_of_compactions_go_with_archiving_unless_they_are_pending_or_held(table: HoodieTable) -> None:
    done = str(table.compact("schedule").instant)
    table.compact("run")
    table.upsert(ROWS)
    planned = str(table.compact("schedule").instant)
    held = "20260101000000000"
    for left in (done, planned):  # by processes that were killed after the commit, and before they removed it
        with TableLock(table.storage, file=lock_file(left)):
            pass

    def locks() -> set[str]:
        return {entry.path for entry in table.storage.list(".hoodie/.locks") if entry.name.startswith("compaction-")}

    with TableLock(table.storage, file=lock_file(held)):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(table.archive).result()
        assert locks() == {lock_file(planned), lock_file(held)}
    table.archive()
    assert locks() == {lock_file(planned)}
    assert table.compact("run").instant == planned
    assert locks() == set()
