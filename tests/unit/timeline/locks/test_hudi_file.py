from __future__ import annotations

import json
import multiprocessing
import os
import threading
import time
from pathlib import Path

import pytest

from lakehouse_engine.errors import LockError, LockTimeoutError, StorageError
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.lock import LOCK_FILE, TableLock, lock_holder
from lakehouse_engine.timeline.locks import hudi_file
from tests.unit.timeline.locks.tables import BESIDE_HUDI, table_in

SPAWN = multiprocessing.get_context("spawn")
LOCK = ".hoodie/lock"
HUDIS = json.dumps({"lockCreateTime": "2026-01-01 10:00:00.000", "lockThreadName": "main", "lockStacksInfo": []}, indent=2).encode()


@pytest.fixture(params=["local", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    made: Storage = LocalStorage(str(tmp_path / "t")) if request.param == "local" else MemoryStorage(f"memory://{tmp_path}")
    table_in(made, BESIDE_HUDI)
    return made


@pytest.fixture
def local(tmp_path: Path) -> LocalStorage:
    made = LocalStorage(str(tmp_path / "t"))
    table_in(made, BESIDE_HUDI)
    return made


def test_while_the_table_is_locked_hudis_lock_file_is_there_and_says_who_holds_it(storage: Storage) -> None:
    with TableLock(storage):
        info = json.loads(storage.read(LOCK))
        assert info["lockThreadName"] == threading.current_thread().name
        assert {"lockCreateTime", "lockStacksInfo", "host", "pid"} <= set(info)
        with TableLock(storage, 0) as again:
            assert again.is_held
        assert storage.head(LOCK) is not None
    assert storage.head(LOCK) is None
    assert lock_holder(storage) is None


def test_a_table_that_names_no_provider_has_no_lock_file(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path / "t"))
    table_in(storage)
    with TableLock(storage):
        assert storage.head(LOCK) is None


@pytest.mark.parametrize(("content", "named"), [(HUDIS, r"a Hudi writer \(thread main\) since 2026"), (b"", "a Hudi writer that has not")])
def test_a_lock_that_hudi_holds_is_waited_for_and_its_holder_named(storage: Storage, content: bytes, named: str) -> None:
    storage.create(LOCK, content)
    with pytest.raises(LockTimeoutError, match=named), TableLock(storage, 60):
        pass
    assert storage.read(LOCK) == content
    assert lock_holder(storage) is not None
    storage.delete(LOCK)
    with TableLock(storage, 0) as lock:
        assert lock.is_held


def test_the_kernels_lock_is_free_after_a_lock_file_that_was_not_to_be_had(local: LocalStorage) -> None:
    local.create(LOCK, HUDIS)
    with pytest.raises(LockTimeoutError), TableLock(local, 10):
        pass
    local.delete(LOCK)
    worker = SPAWN.Process(target=_lock_once, args=(local.root,))
    worker.start()
    worker.join(60)
    assert worker.exitcode == 0


def _lock_once(root: str) -> None:
    with TableLock(LocalStorage(root), 0):
        pass


def test_the_lock_file_goes_when_the_body_raises(storage: Storage) -> None:
    with pytest.raises(RuntimeError), TableLock(storage):
        raise RuntimeError
    assert storage.head(LOCK) is None


def _expiring(tmp_path: Path, minutes: int) -> LocalStorage:
    storage = LocalStorage(str(tmp_path / "t"))
    table_in(storage, {**BESIDE_HUDI, "hoodie.write.lock.filesystem.expire": str(minutes)})
    storage.create(LOCK, HUDIS)
    return storage


def _age(storage: LocalStorage, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(f"{storage.root}/{LOCK}", (then, then))


def test_a_lock_file_that_expired_is_taken_over(tmp_path: Path) -> None:
    storage = _expiring(tmp_path, 5)
    _age(storage, 5 * 60 + 30)
    with TableLock(storage, 0):
        assert storage.read(LOCK) != HUDIS
    assert storage.unpublished(".hoodie") == []


def _hold(root: str, held: object) -> None:
    with TableLock(LocalStorage(root)):
        held.set()  # type: ignore[attr-defined]
        time.sleep(60)


def test_the_lock_file_of_a_killed_process_of_ours_is_taken_over_at_once(local: LocalStorage) -> None:
    held = SPAWN.Event()
    worker = SPAWN.Process(target=_hold, args=(local.root, held))
    worker.start()
    assert held.wait(60)
    with pytest.raises(LockTimeoutError), TableLock(local, 0):
        pass
    worker.kill()
    worker.join(60)
    assert local.head(LOCK) is not None
    with TableLock(local, 10_000):
        assert json.loads(local.read(LOCK))["pid"] == os.getpid()


def test_the_lock_file_of_ours_on_another_machine_is_left(local: LocalStorage) -> None:
    with TableLock(local):
        ours = json.loads(local.read(LOCK))
    local.create(LOCK, json.dumps({**ours, "host": "elsewhere"}).encode())
    with pytest.raises(LockTimeoutError, match="elsewhere"), TableLock(local, 200):
        pass


def test_a_lock_file_younger_than_its_expiry_is_not_taken_over(tmp_path: Path) -> None:
    storage = _expiring(tmp_path, 5)
    _age(storage, 5 * 60 - 30)
    with pytest.raises(LockTimeoutError), TableLock(storage, 0):
        pass
    assert storage.read(LOCK) == HUDIS


def test_a_lock_file_never_expires_by_default(tmp_path: Path) -> None:
    storage = _expiring(tmp_path, 0)
    _age(storage, 1_000_000)
    with pytest.raises(LockTimeoutError), TableLock(storage, 0):
        pass


def test_a_lock_that_is_kept_is_touched_only_where_it_expires(tmp_path: Path, local: LocalStorage) -> None:
    storage = LocalStorage(str(tmp_path / "expiring"))
    table_in(storage, {**BESIDE_HUDI, "hoodie.write.lock.filesystem.expire": "1"})
    for one, touched in ((storage, True), (local, False)):
        with TableLock(one) as lock:
            _age(one, 3000)
            lock.keep()
            assert (time.time() - os.stat(f"{one.root}/{LOCK}").st_mtime < 1000) is touched


def test_a_lock_file_that_hudi_deletes_again_while_it_is_new_is_not_held(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hudi deletes the file twice when it gives the lock back."""
    deleted = []
    sleep = time.sleep

    def delete_once(seconds: float) -> None:
        if seconds == hudi_file._SETTLES and not deleted:
            deleted.append(storage.delete(LOCK))
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", delete_once)
    with TableLock(storage, 5000) as lock:
        assert deleted == [True]
        assert storage.head(LOCK) is not None
        assert lock.confirm()


def test_a_lock_file_that_hudi_opened_at_the_same_moment_is_left_to_it(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = time.sleep

    def overwrite(seconds: float) -> None:
        if seconds == hudi_file._SETTLES:
            storage.overwrite(LOCK, HUDIS)
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", overwrite)
    with pytest.raises(LockTimeoutError, match="a Hudi writer"), TableLock(storage, 100):
        pass
    assert storage.read(LOCK) == HUDIS


def test_a_lost_lock_file_is_noticed_and_taken_again_but_never_from_another(storage: Storage) -> None:
    with TableLock(storage) as lock:
        assert lock.confirm()
        storage.delete(LOCK)
        assert not lock.confirm()
        assert lock.confirm()
        storage.overwrite(LOCK, HUDIS)
        with pytest.raises(LockError, match="taken by another program"):
            lock.confirm()
    assert storage.read(LOCK) == HUDIS


def test_a_lock_file_that_cannot_be_removed_does_not_undo_what_was_done_under_it(
    local: LocalStorage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    delete = LocalStorage.delete

    def refuse(self: LocalStorage, path: str) -> bool:
        if path == LOCK:
            raise StorageError("no", path=path)
        return delete(self, path)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "delete", refuse)
        with TableLock(local):
            pass
    assert "remove it" in caplog.text
    with TableLock(local, 10_000):  # who wants it next knows that nobody holds it
        pass
    assert local.head(LOCK) is None


def test_tries_and_pauses_are_those_that_the_table_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(str(tmp_path / "t"))
    often = {"hoodie.write.lock.client.num_retries": "2", "hoodie.write.lock.client.wait_time_ms_between_retry": "7"}
    table_in(storage, {**BESIDE_HUDI, **often})
    storage.create(LOCK, HUDIS)
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", lambda seconds: pauses.append(seconds) if seconds else None)
    with pytest.raises(LockTimeoutError), TableLock(storage, 600_000):
        pass
    assert pauses == [0.007, 0.007]


def test_the_lock_file_is_where_the_table_says(tmp_path: Path) -> None:
    storage, folder = LocalStorage(str(tmp_path / "t")), tmp_path / "locks"
    table_in(storage, {**BESIDE_HUDI, "hoodie.write.lock.filesystem.path": f"file://{folder}"})
    with TableLock(storage):
        assert (folder / "lock").is_file()
        assert storage.head(LOCK) is None
    assert not (folder / "lock").exists()


@pytest.mark.parametrize("where", ["locks", "hdfs://server/locks", "s3://bucket/locks"])
def test_a_directory_that_is_not_here_or_nowhere_for_sure_is_refused(tmp_path: Path, where: str) -> None:
    storage = LocalStorage(str(tmp_path / "t"))
    table_in(storage, {**BESIDE_HUDI, "hoodie.write.lock.filesystem.path": where})
    with pytest.raises(LockError, match="absolute path"), TableLock(storage):
        pass
    assert lock_file_is_free(storage)


def lock_file_is_free(storage: LocalStorage) -> bool:
    with pytest.raises(LockError, match="absolute path"):
        lock_holder(storage)
    return not (Path(storage.root, LOCK_FILE).read_text().strip())


def test_threads_and_processes_of_ours_exclude_each_other_under_hudis_lock(local: LocalStorage) -> None:
    Path(local.root, "counter").write_text("0")
    workers = [SPAWN.Process(target=_increment, args=(local.root, 3)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert Path(local.root, "counter").read_text() == "6"


def _increment(root: str, times: int) -> None:
    counter = Path(root, "counter")
    for _ in range(times):
        with TableLock(LocalStorage(root), 60_000):
            value = int(counter.read_text())
            time.sleep(0.005)
            counter.write_text(str(value + 1))
