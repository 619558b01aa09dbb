"""Heartbeat of a write of this process, from before its instant is requested until it is completed or taken back."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lakehouse_engine.errors import StorageError
from lakehouse_engine.options import LockOptions
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import discard
from lakehouse_engine.storage.os_errors import is_full
from lakehouse_engine.timeline.heartbeats import HEARTBEATS, heartbeat_file, live_heartbeat
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.timeline.processes import begin_work, end_work, ended_work

logger = logging.getLogger(__name__)

@dataclass(slots=True)
class Beating:
    """Heartbeat of an instant while this process writes it. `interval_ms` in milliseconds."""

    storage: Storage
    instant_time: str
    interval_ms: int
    _nonce: str = field(default_factory=lambda: uuid.uuid4().hex)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self, *, take_over: bool = False) -> None:
        """Raises `StoredFileExistsError` if another writer has a heartbeat for the same instant, unless it is taken over."""
        body = begin_work(self._nonce)
        try:
            (self.storage.overwrite if take_over else self.storage.create)(heartbeat_file(self.instant_time), body)
        except BaseException:
            end_work(self._nonce)
            raise
        self._thread = threading.Thread(target=self._run, args=(body,), name=f"heartbeat-{self.instant_time}", daemon=True)
        self._thread.start()

    def stop(self, *, pending: bool = False) -> None:
        """End it. A file that cannot be removed is logged: the heartbeat's process is known to be finished.

        `pending`: the instant stays pending, for the next process to take back or finish. The heartbeat says so, because an instant without
        one is Hudi's.
        """
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        end_work(self._nonce)
        path = heartbeat_file(self.instant_time)
        try:
            if not (pending and self._say_ended(path)):
                discard(self.storage, path)
        except StorageError as error:
            logger.warning("the heartbeat of %s could not be ended: %s", self.instant_time, error)

    def _say_ended(self, path: str) -> bool:
        """True if there was room for it. An instant without a heartbeat counts as dead, or as Hudi's, but not as alive."""
        try:
            self.storage.overwrite(path, ended_work(self._nonce))
        except StorageError as error:
            logger.warning("the heartbeat of %s is removed, for it cannot be said in it that it ended: %s", self.instant_time, error)
            return False
        return True

    def _run(self, body: bytes) -> None:
        lock = TableLock(self.storage)
        while not self._stopped.wait(self.interval_ms / 1000):
            self._beat(body)
            lock.keep()

    def _beat(self, body: bytes) -> None:
        try:
            self.storage.overwrite(heartbeat_file(self.instant_time), body)
        except StorageError as error:
            logger.warning("the heartbeat of %s could not be written, and may expire: %s", self.instant_time, error)


@contextmanager
def beating(storage: Storage, instant_time: str, options: LockOptions) -> Iterator[None]:
    """Show that this process works on an instant of the timeline, even one that a dead process began."""
    heartbeat = Beating(storage, instant_time, options.heartbeat_ms)
    try:
        heartbeat.start(take_over=True)
    except StorageError as error:
        if not is_full(error):
            raise
        logger.info("%s has no heartbeat, for which there is no room", instant_time)
    try:
        yield
    except BaseException:
        heartbeat.stop(pending=True)
        raise
    heartbeat.stop()


def remove_stale_heartbeats(storage: Storage, pending: Iterable[str], options: LockOptions) -> None:
    """Remove heartbeats of dead writers whose instants are not `pending`: they died before requesting or after committing them."""
    kept = set(pending)
    for entry in storage.list(HEARTBEATS):
        if entry.name.isdigit() and entry.name not in kept and live_heartbeat(storage, entry.name, options) is None:
            storage.delete(entry.path)


def remove_heartbeat(storage: Storage, instant_time: str) -> None:
    """Remove the heartbeat of an instant that is taken back."""
    storage.delete(heartbeat_file(instant_time))
