"""The lock object of Hudi's StorageBasedLockProvider: who has it, who takes it over, and what is lost with it."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
import uuid

import pytest

from lakehouse_engine.errors import LockError, LockTimeoutError, OptionError
from lakehouse_engine.options import LockOptions
from lakehouse_engine.storage.objects.store import ObjectStorage
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.timeline.locks.storage_lock import LOCK_OBJECT, StorageLock
from tests.object_store.dbt_store import Store, s3_store

__all__ = ["s3_store"]
SHORT = LockOptions(validity_seconds=2, renew_seconds=1)


@pytest.fixture
def storage(s3_store: Store) -> ObjectStorage:
    return ObjectStorage.at(s3_store.place(f"l-{uuid.uuid4().hex}"), s3_store.options)


def lock(storage: ObjectStorage, options: LockOptions = SHORT) -> StorageLock:
    return StorageLock(storage, LOCK_OBJECT, options, storage.root)


def soon() -> float:
    return time.monotonic() + 0.3


def nothing() -> None:
    """Nobody is told."""


def told(storage: ObjectStorage) -> dict[str, object]:
    found: dict[str, object] = json.loads(storage.read(LOCK_OBJECT))
    return found


def test_it_is_had_by_one_and_says_what_hudi_reads(storage: ObjectStorage) -> None:
    first, second = lock(storage), lock(storage)
    first.acquire(soon(), nothing)
    known = told(storage)
    assert set(known) == {"expired", "validUntil", "owner"}
    assert known["expired"] is False
    assert isinstance(known["validUntil"], int)
    with pytest.raises(LockTimeoutError, match="process"):
        second.acquire(soon(), nothing)
    assert first.confirm()
    first.release()
    assert told(storage)["expired"] is True
    second.acquire(soon(), nothing)
    second.release()


def test_it_is_renewed_as_long_as_it_is_held(storage: ObjectStorage) -> None:
    first = lock(storage)
    first.acquire(soon(), nothing)
    before = told(storage)["validUntil"]
    time.sleep(3)
    assert told(storage)["validUntil"] > before  # type: ignore[operator]
    assert first.confirm()
    with pytest.raises(LockTimeoutError):
        lock(storage).acquire(soon(), nothing)
    first.release()


def test_one_of_a_holder_that_died_is_taken_over_after_its_time(storage: ObjectStorage) -> None:
    """A writer of Hudi that was killed leaves this."""
    now = time.time_ns() // 1_000_000
    storage.create(LOCK_OBJECT, json.dumps({"validUntil": now + 1000, "expired": False, "owner": str(uuid.uuid4())}).encode())
    with pytest.raises(LockTimeoutError, match="owner"):
        lock(storage).acquire(soon(), nothing)
    late = lock(storage, LockOptions(validity_seconds=1, renew_seconds=1))
    late.acquire(time.monotonic() + 10, nothing)
    assert late.confirm()
    late.release()


def test_one_of_a_process_of_this_machine_that_was_killed_is_taken_over_at_once(storage: ObjectStorage) -> None:
    long = LockOptions(validity_seconds=300, renew_seconds=30)
    code = (
        "import os, sys, pickle, time\n"
        "from lakehouse_engine.timeline.locks.storage_lock import LOCK_OBJECT, StorageLock\n"
        "storage, options = pickle.loads(sys.stdin.buffer.read())\n"
        "StorageLock(storage, LOCK_OBJECT, options, 't').acquire(time.monotonic() + 10, lambda: None)\n"
        "os._exit(9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code], input=pickle.dumps((storage, long)), check=False, timeout=60)
    assert killed.returncode == 9
    assert told(storage)["expired"] is False
    mine = lock(storage, long)
    mine.acquire(time.monotonic() + 5, nothing)
    mine.release()


def test_a_wrong_clock_of_this_machine_takes_no_lock_away(storage: ObjectStorage) -> None:
    """A writer whose clock is behind says a time that is over by ours, but by the store's it has just renewed it."""
    now = time.time_ns() // 1_000_000
    storage.create(LOCK_OBJECT, json.dumps({"validUntil": now - 60_000, "expired": False, "owner": "another"}).encode())
    with pytest.raises(LockTimeoutError):
        lock(storage, LockOptions(validity_seconds=300, renew_seconds=30)).acquire(time.monotonic() + 2, nothing)


def test_locks_of_services_keep_other_processes_out_too(storage: ObjectStorage) -> None:
    storage.create(".hoodie/.locks/service.lock", json.dumps({"validUntil": 2**50, "expired": False, "owner": "another"}).encode())
    with pytest.raises(LockTimeoutError, match="another"), TableLock(storage, 300, file=".hoodie/.locks/service.lock"):
        pytest.fail("it is somebody else's")


def test_whoever_lost_it_publishes_nothing(storage: ObjectStorage) -> None:
    first = lock(storage)
    first.acquire(soon(), nothing)
    taken = {"validUntil": time.time_ns() // 1_000_000 + 60_000, "expired": False, "owner": "another"}
    storage.overwrite(LOCK_OBJECT, json.dumps(taken).encode())
    time.sleep(2)
    with pytest.raises(LockError, match="took it over"):
        first.confirm()
    first.release()
    assert told(storage)["owner"] == "another"


def test_what_is_no_lock_is_not_taken_over(storage: ObjectStorage) -> None:
    storage.create(LOCK_OBJECT, b"{torn")
    with pytest.raises(LockError, match="no lock that can be read"):
        lock(storage).acquire(soon(), nothing)
    assert storage.read(LOCK_OBJECT) == b"{torn"


def test_times_that_hudi_refuses_are_refused() -> None:
    with pytest.raises(OptionError, match="a tenth"):
        LockOptions.read({"hoodie.write.lock.storage.validity.timeout.secs": "60", "hoodie.write.lock.storage.renew.interval.secs": "7"})
