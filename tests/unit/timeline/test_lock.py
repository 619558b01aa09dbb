from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from lakehouse_engine.errors import LockError, LockTimeoutError, StorageError, TableNotFoundError
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.storage.overlaid import OverlaidStorage
from lakehouse_engine.timeline.lock import LOCK_FILE, TableLock, lock_holder
from lakehouse_engine.timeline.locks import kernel as lock_module

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture(params=["local", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return LocalStorage(str(tmp_path)) if request.param == "local" else MemoryStorage(f"memory://{tmp_path}")


@pytest.fixture(autouse=True)
def _table_is_there(tmp_path: Path) -> None:
    (tmp_path / ".hoodie").mkdir()


def _hold(root: str, held: Event, release: Event) -> None:
    with TableLock(LocalStorage(root), 30_000):
        held.set()
        release.wait(60)


def _increment(root: str, times: int) -> None:
    counter = Path(root, "counter")
    for _ in range(times):
        with TableLock(LocalStorage(root), 60_000):
            value = int(counter.read_text())
            time.sleep(0.0005)
            counter.write_text(str(value + 1))


def test_threads_exclude_each_other(storage: Storage) -> None:
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with TableLock(storage, 30_000):
                inside += 1
                most = max(most, inside)
                time.sleep(0.0005)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_processes_exclude_each_other(tmp_path: Path) -> None:
    (tmp_path / "counter").write_text("0")
    workers = [SPAWN.Process(target=_increment, args=(str(tmp_path), 60)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    assert (tmp_path / "counter").read_text() == "120"


def test_lock_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    held, release = SPAWN.Event(), SPAWN.Event()
    worker = SPAWN.Process(target=_hold, args=(str(tmp_path), held, release))
    worker.start()
    assert held.wait(60)
    with pytest.raises(LockTimeoutError) as caught, TableLock(LocalStorage(str(tmp_path)), 50):
        pass
    assert f"process {worker.pid} on" in str(caught.value)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    worker.join(60)
    with TableLock(LocalStorage(str(tmp_path)), 1_000) as lock:
        assert lock.is_held


def test_waiting_thread_gets_a_timeout_that_names_the_holder(storage: Storage) -> None:
    failures: list[str] = []

    def wait() -> None:
        try:
            with TableLock(storage, 50):
                pass
        except LockTimeoutError as error:
            failures.append(str(error))

    with TableLock(storage):
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
    assert len(failures) == 1
    assert f"process {os.getpid()}" in failures[0]
    with TableLock(storage, 0):
        pass


def test_lock_may_be_entered_again_by_its_thread_and_is_free_after_the_last_exit(storage: Storage) -> None:
    lock, other = TableLock(storage), TableLock(storage)
    assert not lock.is_held
    with lock, lock, other:
        assert lock.is_held
        assert other.is_held
    assert not lock.is_held
    with pytest.raises(LockError):
        lock.__exit__(None, None, None)


def test_lock_is_released_by_an_exception(storage: Storage) -> None:
    with pytest.raises(RuntimeError), TableLock(storage):
        raise RuntimeError("inside")
    with TableLock(storage, 0):
        pass


def test_lock_file_removed_while_waiting_for_it_is_not_the_one_that_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(str(tmp_path))
    try_lock, removed = lock_module._try_lock, []

    def remove_then_lock(descriptor: int) -> bool:
        if not removed:
            removed.append(storage.delete(LOCK_FILE))
        return try_lock(descriptor)

    monkeypatch.setattr(lock_module, "_try_lock", remove_then_lock)
    with TableLock(storage, 1_000), open(tmp_path / LOCK_FILE, "rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert removed == [True]


def _removed(path: Path) -> None:
    path.unlink()


def _replaced(path: Path) -> None:
    path.unlink()
    path.write_text("")


def _folder_removed(path: Path) -> None:
    shutil.rmtree(path.parent)


@pytest.mark.parametrize("harm", [_removed, _replaced, _folder_removed])
def test_lock_whose_file_somebody_removed_or_replaced_is_not_confirmed(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    storage = LocalStorage(str(tmp_path))
    with TableLock(storage) as lock:
        assert lock.confirm()
        harm(tmp_path / LOCK_FILE)
        with pytest.raises(LockError, match=r"lock file \.hoodie/\.locks/table\.lock was removed or replaced"):
            lock.confirm()
    with TableLock(storage) as lock:
        assert lock.confirm()


def test_lock_of_a_table_that_was_moved_away_says_that_the_table_is_gone(tmp_path: Path) -> None:
    with TableLock(LocalStorage(str(tmp_path))) as lock:
        (tmp_path / ".hoodie").rename(tmp_path / "gone")
        with pytest.raises(TableNotFoundError, match="dropped or renamed"):
            lock.confirm()


def test_lock_file_that_is_a_broken_link_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".hoodie/.locks").mkdir()
    (tmp_path / LOCK_FILE).symlink_to(tmp_path / "nowhere")
    with pytest.raises(StorageError), TableLock(LocalStorage(str(tmp_path))):
        pass


def test_two_tables_do_not_share_a_lock(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / ".hoodie").mkdir(parents=True)
    with TableLock(LocalStorage(str(tmp_path / "a"))) as first, TableLock(LocalStorage(str(tmp_path / "b")), 0) as second:
        assert first.is_held
        assert second.is_held


def test_child_made_by_fork_neither_holds_nor_keeps_the_lock(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    with TableLock(storage):
        child = os.fork()
        if child == 0:
            held = TableLock(storage).is_held
            time.sleep(20)
            os._exit(1 if held else 0)
    try:
        with TableLock(storage, 2_000):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_the_lock_is_had_and_passed_on_without_a_free_block_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage, refused = LocalStorage(str(tmp_path)), []
    write = os.pwrite

    def full(descriptor: int, data: bytes, offset: int) -> int:
        # A file's own blocks can be written anew; none is to be had.
        if offset + len(data) > os.fstat(descriptor).st_size:
            refused.append(data)
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data, offset)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with TableLock(storage) as lock:
            assert lock.is_held
            assert lock_holder(storage) is not None
        assert len(refused) == 1
    with TableLock(storage):
        pass
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with TableLock(storage):
            assert str(os.getpid()) in (tmp_path / LOCK_FILE).read_text()
    assert (len(refused), (tmp_path / LOCK_FILE).read_text().strip()) == (1, "")


def test_looking_who_holds_the_lock_names_a_living_process_and_nobody_after_its_end(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    assert lock_holder(storage) is None
    assert not (tmp_path / LOCK_FILE).exists()
    held, release = SPAWN.Event(), SPAWN.Event()
    worker = SPAWN.Process(target=_hold, args=(str(tmp_path), held, release))
    worker.start()
    assert held.wait(60)
    assert f"process {worker.pid} on" in str(lock_holder(storage))
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    worker.join(60)
    assert lock_holder(storage) is None


def test_somebody_who_only_looks_does_not_keep_a_writer_out_that_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(str(tmp_path))
    with TableLock(storage):
        pass
    look, looking = os.open(tmp_path / LOCK_FILE, os.O_RDONLY), [True]
    fcntl.flock(look, fcntl.LOCK_SH)

    def stop_looking(seconds: float) -> None:
        if looking:
            looking.clear()
            os.close(look)

    monkeypatch.setattr(time, "sleep", stop_looking)
    with TableLock(storage, 0) as lock:
        assert lock.is_held
    assert not looking


def test_the_lock_of_a_table_that_is_gone_is_refused_and_brings_no_directory_back(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path / "gone"))
    with pytest.raises(TableNotFoundError), TableLock(storage):
        pass
    assert not (tmp_path / "gone").exists()


def test_the_lock_of_a_table_that_is_held_elsewhere_is_one_whoever_names_it(storage: Storage, tmp_path: Path) -> None:
    """Its holder drops it through the warehouse, and would wait for itself."""
    for folder in ("s/t", ".held/s/t"):
        (tmp_path / folder / ".hoodie").mkdir(parents=True)
    seen = OverlaidStorage(storage, ".held", {"s.t"})
    with TableLock(storage, 0, file=f".held/s/t/{LOCK_FILE}"):
        assert TableLock(seen, 0, file=f"s/t/{LOCK_FILE}").is_held
        assert not TableLock(storage, 0, file=f"s/t/{LOCK_FILE}").is_held
