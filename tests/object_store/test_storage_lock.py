"""The lock object of Hudi's StorageBasedLockProvider: who has it, who takes it over, and what is lost with it."""

from __future__ import annotations

import json
import time
import uuid

import pytest

from lakehouse_engine.errors import LockError, LockTimeoutError, OptionError
from lakehouse_engine.options import LockOptions
from lakehouse_engine.storage.object_store import ObjectStorage
from lakehouse_engine.timeline.locks.storage_lock import LOCK_OBJECT, StorageLock
from tests.object_store.dbt_store import Store, s3_store

__all__ = ["s3_store"]
SHORT = LockOptions(validity_seconds=2, renew_seconds=1)


@pytest.fixture
def storage(s3_store: Store) -> ObjectStorage:
    return ObjectStorage.at(s3_store.place(f"l-{uuid.uuid4().hex}"), s3_store.options)


def lock(storage: ObjectStorage, options: LockOptions = SHORT) -> StorageLock:
    return StorageLock(storage, "", options, storage.root)


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
    late = lock(storage)
    late.acquire(time.monotonic() + 10, nothing)
    assert late.confirm()
    late.release()


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
