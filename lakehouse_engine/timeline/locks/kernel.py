"""The kernel's lock on a file: it ends with its process, so there is never a stale lock."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress

from lakehouse_engine.errors import LockError, StoredFileExistsError, StoredFileNotFoundError
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.os_errors import as_storage_errors
from lakehouse_engine.timeline.locks.holder import Holder, describe_self, parse_holder
from lakehouse_engine.timeline.locks.provider import Patience, timed_out
from lakehouse_engine.timeline.presence import gone

logger = logging.getLogger(__name__)

_TEXT = 1000
"""Maximum bytes of the holder's text in the lock file."""
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.002, 0.05


class KernelLock:
    """`flock` on `file` of a storage in the local file system, where it is at `path`."""

    def __init__(self, storage: Storage, file: str, path: str) -> None:
        self._storage, self._file, self._path = storage, file, path
        self._descriptor = -1
        self._identity = (-1, -1)
        """Device and inode of the locked file. The inode is not reused while this file is open."""

    def acquire(self, deadline: float, on_wait: Callable[[], None]) -> None:
        """Raises `LockTimeoutError`, and `TableNotFoundError` if there is no table (any more)."""
        began, patience = time.monotonic(), Patience(deadline, _SHORTEST_PAUSE, _LONGEST_PAUSE, on_wait)
        while True:
            descriptor = self._open()
            try:
                with as_storage_errors("lock", self._file, self._storage.root):
                    if _try_lock(descriptor) and self._is_current(descriptor):
                        _write_text(descriptor, describe_self())
                        self._descriptor, self._identity = descriptor, _identity(os.fstat(descriptor))
                        return
                    other = _read_text(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
            if not patience.pause():
                raise timed_out(self._storage.root, str(parse_holder(other)), max(0.0, deadline - began))

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            try:
                _write_text(descriptor, "")
            finally:
                os.close(descriptor)

    def confirm(self) -> bool:
        """True while the locked file still has that name: a process that finds another file, or none, would lock that one.

        Raises `LockError` if it was removed or replaced, and `TableNotFoundError` if the whole table is gone.
        """
        if self._current_identity() == self._identity:
            return True
        self._check_table()
        raise LockError(
            f"the lock file {self._file} was removed or replaced while this write held it: another writer may have come in, and nothing is"
            " published; try again, and let nothing remove files of .hoodie/.locks",
            table=self._storage.root,
        )

    def keep(self) -> None:
        """It does not expire."""

    def forget(self) -> None:
        """A forked child shares the open file: it must close its copy (which unlocks nothing), or the lock would outlive its holder."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> int:
        for last in (False, False, True):
            if not os.path.exists(self._path):
                # The table may have been dropped or renamed during the wait: the lock must not bring its directory back.
                self._check_table()
                with suppress(StoredFileExistsError):
                    self._storage.create(self._file, b"")
            try:
                with as_storage_errors("lock", self._file, self._storage.root):
                    return os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
            except StoredFileNotFoundError:  # removed since it was seen or made
                if last:
                    raise
        raise AssertionError("the last try returns or raises")

    def _check_table(self) -> None:
        if not os.path.isdir(os.path.dirname(os.path.dirname(self._path))):
            raise gone(self._storage)

    def _is_current(self, descriptor: int) -> bool:
        """True if the locked file still has that name; a dropped and re-created table has another one."""
        return _identity(os.fstat(descriptor)) == self._current_identity()

    def _current_identity(self) -> tuple[int, int] | None:
        try:
            with as_storage_errors("look at", self._file, self._storage.root):
                return _identity(os.stat(self._path))
        except StoredFileNotFoundError:
            return None


def kernel_lock_holder(storage: Storage, file: str, path: str) -> Holder | None:
    """Holder of the lock on the file at `path`; None if it is free. Neither waits nor changes anything."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise LockError(f"who holds {file} cannot be told: {error.strerror}", table=storage.root) from error
    try:
        # Shared, and only for a moment: a process that wants the lock meanwhile tries again.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return parse_holder(_read_text(descriptor))
    finally:
        os.close(descriptor)
    return None


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_text(descriptor: int, text: str) -> None:
    """Write the holder into the file, as a help to waiting processes; not part of the lock.

    On a full disk the lock is taken without it, so that what frees space can run. Unused space is blank: the file keeps its block, and the
    next holder needs no new one.
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
        os.ftruncate(descriptor, 0)  # better empty than under another holder's name


def _read_text(descriptor: int) -> str:
    return os.pread(descriptor, _TEXT, 0).decode("utf-8", "replace")
