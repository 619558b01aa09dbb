"""Lock object of Hudi's `StorageBasedLockProvider` (1.1 and later), for tables in object stores.

`.hoodie/.locks/table_lock.json` says who has the lock (`owner`), until when (`validUntil`, milliseconds since the epoch by the owner's
clock), and whether it was released (`expired`). It is made with If-None-Match and changed with If-Match, so that one of several takers
wins. A holder renews it from a thread of its own. A lock that is neither released nor renewed is taken over after its time plus the allowed
clock drift (Hudi's `CLOCK_DRIFT_BUFFER_MS`), by this machine's clock and the store's; that of a dead process of this machine at once.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from lakehouse_engine.errors import LockError, StorageError
from lakehouse_engine.options import LockOptions
from lakehouse_engine.storage.base import Tag, TaggedStorage
from lakehouse_engine.timeline.locks.holder import Holder, parse_holder
from lakehouse_engine.timeline.locks.probe import storage_now_ms
from lakehouse_engine.timeline.locks.provider import Patience, timed_out
from lakehouse_engine.timeline.processes import begin_work, end_work, may_be_at_work, parse_signature

logger = logging.getLogger(__name__)

LOCK_OBJECT = ".hoodie/.locks/table_lock.json"
_DRIFT_MS = 500
"""Allowed difference of two machines' clocks, as in Hudi."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_LOOKS_AT_AGE = 1.0
"""Seconds between two checks of an apparently expired lock; each makes an object to read the store's clock."""
_MARGIN = 0.5
"""Seconds before the end of a lock's time in which nothing is published any more."""


@dataclass(frozen=True, slots=True)
class LockFileData:
    """JSON of the lock object (`StorageLockData`); times in milliseconds since the epoch."""

    expired: bool
    valid_until: int
    owner: str
    """Distinguishes one acquisition from all others: any text, for Hudi. Ours names the process."""

    def to_json(self) -> bytes:
        return json.dumps({"validUntil": self.valid_until, "expired": self.expired, "owner": self.owner}).encode()

    @classmethod
    def from_json(cls, data: bytes) -> LockFileData:
        """Raises `ValueError` for other content."""
        known = json.loads(data)
        if not isinstance(known, dict) or "owner" not in known:
            raise ValueError("no owner")
        return cls(bool(known["expired"]), int(known["validUntil"]), str(known["owner"]))

    @property
    def is_past(self) -> bool:
        """True if its time is over by this machine's clock."""
        return self.valid_until + _DRIFT_MS < _now_ms()

    @property
    def has_died(self) -> bool:
        """True if it belongs to a process of this machine that has ended, or is done with it."""
        known = parse_signature(self.owner.encode())
        return "nonce" in known and not may_be_at_work(known)


class StorageLock:
    """The lock object `path` of `storage`; `table` names the table in messages."""

    def __init__(self, storage: TaggedStorage, path: str, options: LockOptions, table: str) -> None:
        self._storage, self._path, self._options, self._table = storage, path, options, table
        self._owner = self._nonce = ""
        self._looked = float("-inf")
        self._guard = threading.Lock()
        self._tag: Tag | None = None
        self._until = 0.0
        """By the monotonic clock, which cannot be set: from then on another process may have the lock."""
        self._lost = ""
        self._stop = threading.Event()

    def acquire(self, deadline: float, on_wait: Callable[[], None]) -> None:
        """Raises `LockTimeoutError` with the lock's owner, and `StorageError`."""
        began, self._nonce = time.monotonic(), uuid.uuid4().hex
        self._owner = begin_work(self._nonce).decode()
        patience = Patience(deadline, _SHORTEST_PAUSE, _LONGEST_PAUSE, on_wait)
        try:
            while not self._take():
                if not patience.pause():
                    raise timed_out(self._table, str(self.holder() or "nobody any more"), time.monotonic() - began)
        except BaseException:
            end_work(self._nonce)
            raise
        self._stop = threading.Event()
        threading.Thread(target=self._renew, args=(self._stop,), name="lakehouse-lock", daemon=True).start()

    def release(self) -> None:
        """Mark the lock as released. Failures are logged: the lock ends by itself."""
        self._stop.set()
        with self._guard:
            tag, self._tag = self._tag, None
            if tag is None:
                return
            try:
                given_back = self._storage.put_tagged(self._path, self._data(expired=True).to_json(), tag)
                # The lock goes with the table.
                if given_back is None and self._storage.head(self._path) is not None:
                    logger.warning("the lock of %s was taken over while it was held", self._table)
            except StorageError as error:
                logger.warning("the lock of %s could not be given back (%s); it ends by itself", self._table, error)
            finally:
                end_work(self._nonce)

    def confirm(self) -> bool:
        """True while the lock is held. An expired one is not taken again: others may have had it. Raises `LockError`."""
        with self._guard:
            if self._tag is not None and time.monotonic() < self._until - _MARGIN:
                return True
            if self._tag is not None and self._prolong():
                return True
        raise LockError(
            f"the lock of {self._table} was lost while this write held it ({self._lost or 'its time was over'}), and nothing is published;"
            " try again",
            table=self._table,
        )

    def keep(self) -> None:
        """Nothing to do: the thread renews it."""

    def forget(self) -> None:
        # The renewing thread, and the holder of the guard, stayed in the parent.
        self._guard, self._tag = threading.Lock(), None
        self._stop.set()

    def holder(self) -> Holder | None:
        """Owner of the lock; None if it is free."""
        found = self._storage.read_tagged(self._path)
        if found is None:
            return None
        try:
            known = LockFileData.from_json(found[0])
        except (ValueError, KeyError, TypeError):
            return Holder()
        return None if known.expired or known.is_past else _holder(known)

    def _take(self) -> bool:
        found = self._storage.read_tagged(self._path)
        if found is not None and not self._is_free(found[0]):
            return False
        asked = time.monotonic()
        tag = self._storage.put_tagged(self._path, self._data().to_json(), None if found is None else found[1])
        with self._guard:
            self._tag, self._until, self._lost = tag, asked + self._options.validity_seconds, ""
        return tag is not None

    def _is_free(self, content: bytes) -> bool:
        try:
            known = LockFileData.from_json(content)
        except (ValueError, KeyError, TypeError) as error:
            raise LockError(
                f"{self._storage.root}/{self._path} is no lock that can be read ({error}); look whether a writer is at work, and delete it",
                table=self._table,
            ) from error
        return known.expired or known.has_died or (known.is_past and self._is_old())

    def _is_old(self) -> bool:
        """True if the object is that old by the store's own clock: a wrong clock of this machine takes no lock away."""
        if time.monotonic() < self._looked + _LOOKS_AT_AGE:
            return False
        self._looked = time.monotonic()
        entry, folder = self._storage.head(self._path), self._path.rpartition("/")[0]
        lasts = self._options.validity_seconds * 1000 + _DRIFT_MS
        return entry is None or storage_now_ms(self._storage, folder) - entry.modified_ms > lasts

    def _renew(self, stop: threading.Event) -> None:
        while not stop.wait(self._options.renew_seconds):
            with self._guard:
                if stop.is_set() or self._tag is None or not self._prolong():
                    return

    def _prolong(self) -> bool:
        """Extend the lock, if it is still the acquired one; errors of the store are reported if they last too long."""
        asked = time.monotonic()
        try:
            tag = self._storage.put_tagged(self._path, self._data().to_json(), self._tag)
        except StorageError as error:
            self._lost = str(error)
            logger.warning("the lock of %s could not be renewed: %s", self._table, error)
            return time.monotonic() < self._until - _MARGIN
        self._tag = tag
        if tag is None:
            self._lost = "another took it over"
            logger.warning("the lock of %s was taken over while it was held", self._table)
            return False
        self._until = asked + self._options.validity_seconds
        return True

    def _data(self, *, expired: bool = False) -> LockFileData:
        until = _now_ms() if expired else _now_ms() + int(self._options.validity_seconds * 1000)
        return LockFileData(expired, until, self._owner)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _holder(known: LockFileData) -> Holder:
    if "nonce" in parse_signature(known.owner.encode()):
        return parse_holder(known.owner)
    return Holder(f"unknown, owner {known.owner}", "an unknown moment", is_hudi=True)
