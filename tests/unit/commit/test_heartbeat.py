from __future__ import annotations

import json
import multiprocessing
import os
import time
from multiprocessing.synchronize import Event
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.commit.heartbeat import Beating
from lakehouse_engine.commit.transaction import Transaction, begin
from lakehouse_engine.errors import CommitConflictError, StorageError, StoredFileExistsError
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.options import LockOptions
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline import processes
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.heartbeats import HEARTBEATS, find_heartbeat, heartbeat_file, live_heartbeat
from lakehouse_engine.write.alter import evolve_schema
from tests.unit.timeline.locks.tables import BESIDE_HUDI

SPAWN = multiprocessing.get_context("spawn")
OPTIONS = LockOptions()
T = "20260101000000000"
ROWS = pa.table({"id": ["a", "b"], "n": pa.array([1, 2], pa.int64())})


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def _table(tmp_path: Path, properties: dict[str, str] | None = None, table_type: str = "cow") -> HoodieTable:
    lake = Lakehouse(str(tmp_path / "w"))
    return lake.create_table("s.t", schema=ROWS.schema, record_key=["id"], properties=properties or {}, table_type=table_type)


def _age(storage: LocalStorage, instant: str, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(f"{storage.root}/{heartbeat_file(instant)}", (then, then))


def test_a_heartbeat_says_which_process_it_is_and_ends_with_it(storage: LocalStorage) -> None:
    beat = Beating(storage, T, 60_000)
    beat.start()
    found = live_heartbeat(storage, T, OPTIONS)
    assert found is not None
    assert (found.pid, found.is_ours, f"process {os.getpid()} on" in str(found)) == (os.getpid(), True, True)
    beat.stop()
    assert find_heartbeat(storage, T, OPTIONS) is None
    assert storage.list(HEARTBEATS) == []


def test_a_heartbeat_is_written_anew_at_every_interval(storage: LocalStorage) -> None:
    beat = Beating(storage, T, 5)
    beat.start()
    _age(storage, T, 1000)
    deadline = time.monotonic() + 30
    while live_heartbeat(storage, T, OPTIONS) is None and time.monotonic() < deadline:
        time.sleep(0.005)
    assert live_heartbeat(storage, T, OPTIONS) is not None
    beat.stop()


def test_an_instant_that_has_a_heartbeat_is_another_writers(storage: LocalStorage) -> None:
    storage.create(heartbeat_file(T), b"")
    with pytest.raises(StoredFileExistsError):
        Beating(storage, T, 60_000).start()
    assert storage.read(heartbeat_file(T)) == b""


@pytest.mark.parametrize(("seconds", "alive"), [(90, True), (150, False)])
def test_hudis_heartbeat_counts_for_two_intervals(storage: LocalStorage, seconds: float, alive: bool) -> None:
    storage.create(heartbeat_file(T), b"")
    _age(storage, T, seconds)
    found = find_heartbeat(storage, T, OPTIONS)
    assert found is not None
    assert (found.is_alive, found.is_ours, "a Hudi writer" in str(found)) == (alive, False, True)


def test_the_clock_of_this_machine_does_not_count(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.create(heartbeat_file(T), b"")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 10_000)
    assert live_heartbeat(storage, T, OPTIONS) is not None


def _beat(root: str, beating: Event, end: Event) -> None:
    Beating(LocalStorage(root), T, 60_000).start()
    beating.set()
    end.wait(60)


def test_a_killed_process_of_this_machine_is_known_to_be_dead_at_once(storage: LocalStorage) -> None:
    beating, end = SPAWN.Event(), SPAWN.Event()
    worker = SPAWN.Process(target=_beat, args=(storage.root, beating, end))
    worker.start()
    assert beating.wait(60)
    assert live_heartbeat(storage, T, OPTIONS) is not None
    worker.kill()
    worker.join(60)
    assert live_heartbeat(storage, T, OPTIONS) is None
    assert "has ended" in str(find_heartbeat(storage, T, OPTIONS))


def test_a_killed_process_is_dead_also_while_its_parent_has_not_asked_for_its_end(storage: LocalStorage) -> None:
    beating, end = SPAWN.Event(), SPAWN.Event()
    worker = SPAWN.Process(target=_beat, args=(storage.root, beating, end))
    worker.start()
    assert beating.wait(60)
    worker.kill()
    assert worker.pid is not None
    os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and its number is still its own
    os.kill(worker.pid, 0)
    assert live_heartbeat(storage, T, OPTIONS) is None
    worker.join(60)


def test_a_process_that_got_the_number_of_a_dead_one_is_not_taken_for_it(storage: LocalStorage) -> None:
    beat = Beating(storage, T, 60_000)
    beat.start()
    body = json.loads(storage.read(heartbeat_file(T)))
    storage.overwrite(heartbeat_file(T), json.dumps({**body, "pid": os.getppid(), "started": "1"}).encode())
    assert live_heartbeat(storage, T, OPTIONS) is None
    beat.stop()


def test_a_process_of_another_machine_is_alive_until_its_heartbeat_expires(storage: LocalStorage) -> None:
    storage.create(heartbeat_file(T), json.dumps({"host": "elsewhere", "boot": "other", "pid": 1, "nonce": "n"}).encode())
    assert live_heartbeat(storage, T, OPTIONS) is not None
    _age(storage, T, 150)
    assert live_heartbeat(storage, T, OPTIONS) is None


def test_a_write_has_a_heartbeat_before_its_instant_and_until_it_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, others = _table(tmp_path), set(processes._AT_WORK)  # tests of writes that die leave some
    seen: list[tuple[str, bool]] = []
    create, complete = ActiveTimeline.create_requested, ActiveTimeline.complete

    def requested(self: ActiveTimeline, instant: Instant, content: bytes = b"") -> Instant:
        seen.append(("requested", live_heartbeat(self.storage, instant.requested_time, OPTIONS) is not None))
        return create(self, instant, content)

    def completed(self: ActiveTimeline, instant: Instant, content: bytes, completed_at: str | None) -> Instant:
        done = complete(self, instant, content, completed_at)
        seen.append(("completed", live_heartbeat(self.storage, instant.requested_time, OPTIONS) is not None))
        return done

    monkeypatch.setattr(ActiveTimeline, "create_requested", requested)
    monkeypatch.setattr(ActiveTimeline, "complete", completed)
    table.upsert(ROWS)
    assert seen == [("requested", True), ("completed", True)]
    assert table.storage.list(HEARTBEATS) == []
    assert others == processes._AT_WORK


def test_a_write_that_fails_leaves_no_heartbeat_and_one_that_died_only_a_dead_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _table(tmp_path)
    with pytest.raises(RuntimeError):
        _fail(table)
    assert table.storage.list(HEARTBEATS) == []
    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "abandon", lambda self: None)
        patched.setattr(LocalStorage, "delete", lambda self, path: False)
        with pytest.raises(RuntimeError):
            _fail(table)
    (left,) = table.storage.list(HEARTBEATS)
    assert live_heartbeat(table.storage, left.name, OPTIONS) is None
    assert table.upsert(ROWS).inserts == 2
    assert table.storage.list(HEARTBEATS) == []


def _fail(table: HoodieTable) -> None:
    with begin(table.storage, lock_timeout_ms=1000) as transaction:
        transaction.start(Action.COMMIT)
        raise RuntimeError


def test_heartbeats_of_writers_that_died_after_they_committed_go_with_the_next_action(tmp_path: Path) -> None:
    table = _table(tmp_path)
    instant = table.upsert(ROWS).instant
    table.storage.create(heartbeat_file(str(instant)), b"")
    table.upsert(ROWS)
    assert [entry.name for entry in table.storage.list(HEARTBEATS)] == [instant]
    _age(table.storage, str(instant), 1000)
    table.upsert(ROWS)
    assert table.storage.list(HEARTBEATS) == []


def test_the_heartbeat_of_a_writer_that_died_before_it_requested_its_instant_goes_with_the_next_write(tmp_path: Path) -> None:
    table = _table(tmp_path)
    process = SPAWN.Process(target=_die_before_the_request, args=(table.storage.root,))
    process.start()
    process.join()
    assert process.exitcode == 7
    assert [entry.name for entry in table.storage.list(HEARTBEATS)] != []
    assert _pending(table) == []
    assert table.upsert(ROWS).inserts == 2
    assert table.storage.list(HEARTBEATS) == []


def _die_before_the_request(path: str) -> None:
    ActiveTimeline.create_requested = lambda self, instant, content=b"": os._exit(7)  # type: ignore[method-assign]
    HoodieTable.open(path).upsert(ROWS)


# Beside writers of Hudi


def _hudi_begins(table: HoodieTable, action: Action = Action.COMMIT) -> Instant:
    """What a Hudi writer that is at work has on the timeline."""
    instant = Instant("20260101000000000", action, State.REQUESTED)
    table.storage.create(heartbeat_file(instant.requested_time), b"")
    timeline = ActiveTimeline(table.storage, table.state.format)
    timeline.create_requested(instant, b"")
    return timeline.to_inflight(instant, table.state.format.encode_commit(HoodieCommitMetadata()))


def _pending(table: HoodieTable) -> list[str]:
    return [instant.requested_time for instant in table.timeline.pending()]


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_write_goes_on_beside_a_live_writer_of_hudi_and_leaves_it_alone(tmp_path: Path, table_type: str) -> None:
    table = _table(tmp_path, BESIDE_HUDI, table_type)
    table.upsert(ROWS)
    theirs = _hudi_begins(table, Action.COMMIT if table_type == "cow" else Action.DELTA_COMMIT)
    assert table.upsert(ROWS).updates == 2
    assert table.clean().instant is None
    table.archive()
    assert table.insert_overwrite_table(ROWS.slice(1)).inserts == 1
    assert _pending(table) == [theirs.requested_time]
    assert table.to_arrow().num_rows == 1


def test_a_dead_writer_of_hudi_is_taken_back_with_its_heartbeat(tmp_path: Path) -> None:
    table = _table(tmp_path, BESIDE_HUDI)
    theirs = _hudi_begins(table)
    _age(table.storage, theirs.requested_time, 150)
    table.upsert(ROWS)
    assert _pending(table) == []
    assert table.storage.list(HEARTBEATS) == []


def test_without_optimistic_concurrency_control_a_live_writer_is_refused_beside(tmp_path: Path) -> None:
    table = _table(tmp_path)
    theirs = _hudi_begins(table)
    with pytest.raises(CommitConflictError, match=r"a Hudi writer.*docs/concurrency\.md"):
        table.upsert(ROWS)
    assert _pending(table) == [theirs.requested_time]


@pytest.mark.parametrize("what", ["savepoint", "restore", "rollback", "add_columns", "compact"])
def test_what_cannot_be_beside_hudis_writers_waits_for_them_and_then_names_them(tmp_path: Path, what: str) -> None:
    table = _table(tmp_path, BESIDE_HUDI, "mor")
    first = str(table.upsert(ROWS).instant)
    table.upsert(ROWS)
    theirs = _hudi_begins(table, Action.DELTA_COMMIT)
    impatient = HoodieTable.open(table.path, options={"hoodie.write.lock.wait_time_ms": 300})
    calls = {
        "savepoint": lambda: impatient.savepoint(),
        "restore": lambda: impatient.restore(to=first),
        "rollback": lambda: impatient.rollback(),
        "add_columns": lambda: evolve_schema(table.storage, pa.schema([("more", pa.int64())]), lock_timeout_ms=300),
        "compact": lambda: impatient.compact(),
    }
    with pytest.raises(CommitConflictError, match=r"another writer is at work.*wait_time_ms"):
        calls[what]()
    assert _pending(table) == [theirs.requested_time]
    ActiveTimeline(table.storage, table.state.format).complete(theirs, table.state.format.encode_commit(HoodieCommitMetadata()))
    calls[what]()


@pytest.mark.parametrize(("age", "left"), [(10.0, True), (150.0, False)])
def test_a_young_rollback_and_clean_of_hudi_are_left_to_it(tmp_path: Path, age: float, left: bool) -> None:
    table = _table(tmp_path, BESIDE_HUDI)
    table.upsert(ROWS)
    timeline = ActiveTimeline(table.storage, table.state.format)
    then = time.time() - age
    for action in (Action.ROLLBACK, Action.CLEAN):
        instant = timeline.create_requested(Instant(f"2026010100000000{action is Action.CLEAN:d}", action, State.REQUESTED), b"torn")
        os.utime(f"{table.path}/{table.state.format.timeline_folder}/{table.state.format.file_name(instant)}", (then, then))
    table.upsert(ROWS)
    table.clean()
    assert len(_pending(table)) == (2 if left else 0)


@pytest.mark.parametrize(("seconds", "left"), [(1.0, True), (150.0, False)])
def test_a_rollback_that_hudi_keeps_a_heartbeat_of_is_left_to_it_while_that_lives(tmp_path: Path, seconds: float, left: bool) -> None:
    table = _table(tmp_path, BESIDE_HUDI)
    table.upsert(ROWS)
    timeline = ActiveTimeline(table.storage, table.state.format)
    rollback = timeline.create_requested(Instant("20260101000000000", Action.ROLLBACK, State.REQUESTED), b"torn")
    path = heartbeat_file(rollback.requested_time)
    table.storage.create(path, b"")
    os.utime(f"{table.path}/{path}", (time.time() - seconds,) * 2)
    # Its own file is old: it is a long one.
    os.utime(f"{table.path}/{table.state.format.timeline_folder}/{table.state.format.file_name(rollback)}", (time.time() - 300,) * 2)
    table.upsert(ROWS)
    assert _pending(table) == ([rollback.requested_time] if left else [])


def test_what_a_failed_rollback_of_ours_leaves_is_finished_by_the_next_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = _table(tmp_path, BESIDE_HUDI)
    table.upsert(ROWS)
    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "abandon", lambda self: None)
        with pytest.raises(RuntimeError):
            _fail(table)
    with monkeypatch.context() as patched:

        def refuse(*given: object) -> None:
            raise StorageError("no answer")

        patched.setattr(ActiveTimeline, "complete", refuse)
        with pytest.raises(StorageError):
            table.upsert(ROWS)
    assert len(_pending(table)) == 1
    table.upsert(ROWS)
    assert _pending(table) == []
    assert table.storage.list(HEARTBEATS) == []


def test_a_heartbeat_that_cannot_say_that_it_ended_is_removed(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    beat = Beating(storage, T, 60_000)
    beat.start()

    def full(self: LocalStorage, path: str, data: bytes) -> None:
        raise StorageError("no space left on device", path=path)

    monkeypatch.setattr(LocalStorage, "overwrite", full)
    beat.stop(pending=True)
    assert find_heartbeat(storage, T, OPTIONS) is None
