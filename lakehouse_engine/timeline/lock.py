"""The table lock: one writer changes the timeline at a time, across threads and processes.

The kernel keeps it (`flock` on a file below `.hoodie/.locks`), so it ends with its process, however that ends: there is no stale
lock to break. `flock` belongs to an open file, not to a thread, so threads of one process queue at a lock in memory first.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Protocol

from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import LockError, LockTimeoutError, StoredFileExistsError, TableNotFoundError
from lakehouse_engine.options import LOCK_TIMEOUT_MS
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.os_errors import as_storage_errors

logger = logging.getLogger(__name__)

LOCK_FILE = ".hoodie/.locks/table.lock"
_TEXT = 1000
"""Most bytes that the holder's text in the lock file has."""
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_TRIES = 3
"""Attempts that even a lock without a timeout makes: somebody may just be looking who holds it."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.002, 0.05


class Lock(Protocol):
    """Excludes other writers of a table between entering and leaving; may be entered again by the thread that holds it."""

    def __enter__(self) -> Lock: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


@dataclass(slots=True)
class _ProcessLock:
    """What the threads of this process share for one table."""

    threads: threading.RLock = field(default_factory=threading.RLock)
    depth: int = 0
    owner: int = 0
    descriptor: int = -1
    holder: str = ""


_LOCKS: dict[str, _ProcessLock] = {}
_LOCKS_GUARD = threading.Lock()


def _forget_after_fork() -> None:
    """A forked child shares the open file: it must close its copy (which unlocks nothing) or the lock would outlive its holder."""
    global _LOCKS_GUARD
    for lock in _LOCKS.values():
        if lock.descriptor >= 0:
            os.close(lock.descriptor)
    _LOCKS.clear()
    _LOCKS_GUARD = threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)


class TableLock:
    """Lock of the table in `storage`; `timeout_ms` is how long entering waits, in milliseconds. `file`: another lock than the table's.

    Entering raises `LockTimeoutError`, which names the holder. In a storage that is not in the local file system only the threads of
    this process are excluded.
    """

    def __init__(self, storage: Storage, timeout_ms: int = LOCK_TIMEOUT_MS.default, *, file: str = LOCK_FILE) -> None:
        self._storage = storage
        self._timeout = timeout_ms / 1000
        self._file = file
        self._path = storage.local_path(file)
        self._key = os.path.realpath(self._path) if self._path else f"{storage.root}/{file}"

    @property
    def is_held(self) -> bool:
        """Whether the calling thread holds the lock, through this object or another one."""
        lock = _LOCKS.get(self._key)
        return lock is not None and lock.depth > 0 and lock.owner == threading.get_ident()

    def __enter__(self) -> TableLock:
        deadline = time.monotonic() + self._timeout
        lock = self._process_lock()
        if not lock.threads.acquire(timeout=max(0.0, self._timeout)):
            raise self._timed_out(_describe(lock.holder))
        try:
            if lock.depth == 0:
                lock.holder = _describe_self()
                if self._path is not None:
                    lock.descriptor = self._lock_file(self._path, deadline, lock.holder)
                lock.owner = threading.get_ident()
            lock.depth += 1
        except BaseException:
            lock.threads.release()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        lock = self._process_lock()
        if lock.depth == 0 or lock.owner != threading.get_ident():
            raise LockError("the table lock is not held by this thread", table=self._storage.root)
        lock.depth -= 1
        if lock.depth == 0:
            descriptor, lock.descriptor, lock.owner, lock.holder = lock.descriptor, -1, 0, ""
            if descriptor >= 0:
                _write_text(descriptor, "")
                os.close(descriptor)
        lock.threads.release()

    def _process_lock(self) -> _ProcessLock:
        with _LOCKS_GUARD:
            return _LOCKS.setdefault(self._key, _ProcessLock())

    def _lock_file(self, path: str, deadline: float, holder: str) -> int:
        """An open descriptor of the lock file with the exclusive lock on it."""
        pause, tries = _SHORTEST_PAUSE, 0
        while True:
            descriptor = self._open(path)
            try:
                with as_storage_errors("lock", self._file, self._storage.root):
                    if _try_lock(descriptor) and _is_current(descriptor, path):
                        _write_text(descriptor, holder)
                        return descriptor
                    other = _read_text(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
            tries += 1
            if tries >= _TRIES and time.monotonic() >= deadline:
                raise self._timed_out(_describe(other))
            time.sleep(pause if tries < _TRIES else min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(_LONGEST_PAUSE, pause * 2)

    def _open(self, path: str) -> int:
        if not os.path.exists(path):
            # The table may have been dropped or renamed while this waited: the lock must not bring its directory back.
            if not os.path.isdir(os.path.dirname(os.path.dirname(path))):
                raise TableNotFoundError(
                    f"there is no Hudi table at {self._storage.root} (any more): it was dropped or renamed, or never made",
                    path=self._storage.root,
                )
            with suppress(StoredFileExistsError):
                self._storage.create(self._file, b"")
        with as_storage_errors("lock", self._file, self._storage.root):
            return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def _timed_out(self, holder: str) -> LockTimeoutError:
        return LockTimeoutError(
            f"the table is locked by {holder}; it was not free within {self._timeout:g} s. Wait for that writer, or raise "
            f"{LOCK_TIMEOUT_MS.key}",
            table=self._storage.root,
        )


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_current(descriptor: int, path: str) -> bool:
    """Whether the file that was locked is still the one with that name; a dropped and re-created table has another."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def lock_holder(storage: Storage, file: str = LOCK_FILE) -> str | None:
    """Who holds a lock of the table in `storage` at this moment, for a message; None where it is free. Neither waits nor changes anything.

    In a storage that is not in the local file system only the threads of this process are known.
    """
    path = storage.local_path(file)
    known = _LOCKS.get(os.path.realpath(path) if path else f"{storage.root}/{file}")
    if known is not None and known.depth:
        return _describe(known.holder)
    if path is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise LockError(f"who holds {file} cannot be told: {error.strerror}", table=storage.root) from error
    try:
        # Shared, and only for a moment: whoever wants the lock meanwhile tries again.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _describe(_read_text(descriptor))
    finally:
        os.close(descriptor)
    return None


def _write_text(descriptor: int, text: str) -> None:
    """Say who holds the lock: a help to those who wait, and no part of the lock.

    On a full disk the lock is taken without it, so that what makes room can run. Blanks stand where no text is: the block of the file
    stays its own, and the next holder needs none.
    """
    size = os.fstat(descriptor).st_size
    content = text.encode()[:_TEXT]
    try:
        if content or size:
            os.pwrite(descriptor, content.ljust(size, b" "), 0)
    except OSError as error:
        if error.errno not in _NO_SPACE:
            raise
        logger.info("the lock is held without naming its holder: %s", error.strerror)
        os.ftruncate(descriptor, 0)  # rather than under the name of another one


def _read_text(descriptor: int) -> str:
    return os.pread(descriptor, _TEXT, 0).decode("utf-8", "replace")


def _describe_self() -> str:
    since = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "thread": threading.current_thread().name, "since": since})


def _describe(holder: str) -> str:
    """The holder that wrote `holder` into the lock file, for a message."""
    try:
        known = json.loads(holder)
        return f"process {known['pid']} on {known['host']} (thread {known['thread']}) since {known['since']}"
    except (ValueError, KeyError, TypeError):
        return "a process that has not named itself"
