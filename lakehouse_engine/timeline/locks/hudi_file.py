"""Lock file of Hudi's `FileSystemBasedLockProvider` (the same in 0.15.0 and 1.2.0), for tables that Hudi writes too.

The lock is the file `lock` in a directory: creating it takes the lock, deleting it releases it. With an expiry, a writer that wants the
lock deletes a file that was not touched for so many minutes. Three things in Hudi make that weaker than it looks, and shape this code:

- releasing deletes the file twice (`LockManager.unlock` also closes the provider, which deletes it): a lock taken in between is gone
  a moment later. So a new file must last a moment before it counts.
- on a local file system Hudi checks for the file and then opens it, and two writers may do so at once; its content is then not what
  was written here. So the content is checked, after that moment and before anything is published.
- nothing keeps a slow holder's file from expiring: here it is touched while a write runs (`keep`).
- a dead holder's file stays, by default for ever: if it was a process of this engine on this machine, the file is deleted.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from datetime import datetime

from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import LockError, StorageError, StoredFileExistsError, StoredFileNotFoundError
from lakehouse_engine.options import LockOptions
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.locks.holder import Holder, parse_holder
from lakehouse_engine.timeline.locks.probe import storage_now_ms
from lakehouse_engine.timeline.locks.provider import Patience, timed_out
from lakehouse_engine.timeline.processes import begin_work, end_work, is_at_work, may_be_at_work, parse_signature

logger = logging.getLogger(__name__)

LOCK_NAME = "lock"
_SETTLES = 0.025
"""Seconds that a lock file must last before it counts."""
_TURN = 0.1
"""Seconds after a release in which this process does not take the lock again, because others only poll for it."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1
_LOOKS_AT_AGE = 1.0
"""Seconds between two checks of a lock file's age."""
_STACK = 20
"""Maximum stack frames in the lock file, as in Hudi's."""

_RELEASED: dict[str, float] = {}


class HudiFileLock:
    """The file `lock` in `folder` of `storage`; `table` names the table in messages."""

    def __init__(self, storage: Storage, folder: str, options: LockOptions, table: str) -> None:
        self._storage, self._options, self._table = storage, options, table
        self._path = f"{folder}/{LOCK_NAME}" if folder else LOCK_NAME
        self._content = b""
        self._looked = float("-inf")

    @property
    def _where(self) -> str:
        return f"{self._storage.root}/{self._path}"

    def acquire(self, deadline: float, on_wait: Callable[[], None]) -> None:
        """Raises `LockTimeoutError` with the file's holder, and `StorageError`."""
        began = time.monotonic()
        time.sleep(max(0.0, _RELEASED.get(self._where, float("-inf")) + _TURN - began))
        pause, retries = self._options.pause_ms, self._options.retries
        shortest, longest = (_SHORTEST_PAUSE, _LONGEST_PAUSE) if pause is None else (pause / 1000, pause / 1000)
        patience = Patience(deadline, shortest, longest, on_wait, None if retries is None else retries + 1)
        while not self._take():
            if not patience.pause():
                holder = f"whoever made {self._where}: {self.holder() or 'nobody any more'}"
                raise timed_out(self._table, holder, time.monotonic() - began)

    def release(self) -> None:
        """Delete the file if this process made it. Failures are logged with the remedy."""
        content, self._content = self._content, b""
        if not content:
            return
        try:
            if self._read() == content:
                self._storage.delete(self._path)
            else:
                logger.warning("%s was taken away while it was held", self._where)
        except StorageError as error:
            logger.warning("%s could not be removed (%s): remove it, or Hudi's writers wait for it", self._where, error)
        _RELEASED[self._where] = time.monotonic()
        end_work(_nonce(content))

    def confirm(self) -> bool:
        """`LockProvider.confirm`. A deleted file is made again; another program's file is left to it."""
        if self._read() == self._content:
            return True
        if self._create():
            logger.warning("%s was deleted by another program while it was held; it is taken again", self._where)
            return False
        raise LockError(
            f"{self._where} was taken by another program while this write held it ({self.holder() or 'it is gone again'}), and nothing is"
            " published; try again",
            table=self._table,
        )

    def keep(self) -> None:
        """Touch the file, so that others see it in use."""
        path = self._storage.local_path(self._path)
        if path is None or not self._options.expire_minutes:
            return
        try:
            os.utime(path)
        except OSError as error:
            logger.warning("%s could not be touched, and may expire: %s", self._where, error.strerror)

    def forget(self) -> None:
        self._content = b""

    def holder(self) -> Holder | None:
        """Maker of the file, as far as it says; None without a file."""
        content = self._read()
        return None if content is None else _described(content)

    def _take(self) -> bool:
        return self._create() or ((self._has_died() or self._has_expired()) and self._create())

    def _create(self) -> bool:
        content = _lock_info()
        try:
            self._storage.create(self._path, content)
        except StoredFileExistsError:
            end_work(_nonce(content))
            return False
        try:
            time.sleep(_SETTLES)
            held = self._read() == content
        except BaseException:
            self._storage.delete(self._path)
            raise
        self._content = content if held else b""
        return held

    def _has_died(self) -> bool:
        """True if the file belonged to a dead process of this engine, and was deleted. (A living one also holds the kernel's lock.)"""
        known = parse_signature(self._read() or b"")
        if "nonce" not in known or may_be_at_work(known):
            return False
        logger.warning("%s is of process %s, which has ended or is done with it: it is removed", self._where, known["pid"])
        self._storage.delete(self._path)
        return True

    def _has_expired(self) -> bool:
        """True if the file was too old, and was deleted."""
        if not self._options.expire_minutes or time.monotonic() < self._looked + _LOOKS_AT_AGE:
            return False
        self._looked = time.monotonic()
        folder = self._path.rpartition("/")[0]
        now, entry = storage_now_ms(self._storage, folder), self._storage.head(self._path)
        if entry is None:
            return True
        if now - entry.modified_ms <= self._options.expire_minutes * 60_000:
            return False
        logger.warning("%s was not touched for %d minutes: it is taken from %s", self._where, self._options.expire_minutes, self.holder())
        self._storage.delete(self._path)
        return True

    def _read(self) -> bytes | None:
        try:
            return self._storage.read(self._path)
        except StoredFileNotFoundError:
            return None


def let_go_of_moved(storage: Storage, folder: str) -> None:
    """Remove the lock file that moved with the table's directory to `folder` while this process held it under its former name."""
    path = f"{folder}/.hoodie/{LOCK_NAME}"
    try:
        ours = is_at_work(_nonce(storage.read(path)))
    except StoredFileNotFoundError:
        return
    if ours:
        storage.delete(path)


def _nonce(content: bytes) -> str:
    """What distinguishes this engine's lock file from all others; empty for others' files."""
    return str(parse_signature(content).get("nonce", ""))


def _lock_info() -> bytes:
    """Fields of Hudi's `LockInfo`, shown to people, and what distinguishes this lock from all others."""
    frames = traceback.extract_stack()[-_STACK - 2 : -2]
    info = {
        "lockCreateTime": f"{datetime.now(UTC).astimezone():%Y-%m-%d %H:%M:%S.%f}"[:-3],
        "lockThreadName": threading.current_thread().name,
        "lockStacksInfo": [f"{frame.name} ({os.path.basename(frame.filename)}:{frame.lineno})" for frame in reversed(frames)],
        **json.loads(begin_work(uuid.uuid4().hex)),
    }
    return json.dumps(info, indent=2).encode()


def _described(content: bytes) -> Holder:
    try:
        known = json.loads(content)
        if "nonce" in known:
            return parse_holder(content.decode())
        return Holder(str(known["lockThreadName"]), str(known["lockCreateTime"]), is_hudi=True)
    except (ValueError, KeyError, TypeError):
        # Hudi 1.2.0 leaves the file empty.
        return Holder(is_hudi=True)
