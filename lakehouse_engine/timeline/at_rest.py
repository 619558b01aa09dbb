"""Locks a table that is about to be dropped or moved, so that no process works on it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from lakehouse_engine.errors import LockTimeoutError
from lakehouse_engine.options import LockOptions
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.lock import LOCK_FILE, WRITES_PREFIX, TableLock
from lakehouse_engine.timeline.locks.storage_lock import LOCK_OBJECT

_PAUSE = 0.05
"""Seconds between two looks at whether writers are done."""


@contextmanager
def table_at_rest(
    storage: Storage, folder: str, *, lock_timeout_ms: int, instead: LockOptions | None = None
) -> Iterator[TableLock]:
    """Hold every lock of the table in `folder` of `storage`: the table's own, which is yielded, and those of writers and of compactions
    that run outside it. `instead` applies if nothing is left that says what the lock is.

    It waits for writers with a lock of their own without holding the table's lock, which they need to commit. A process that waits for a
    lock meanwhile gets `TableNotFoundError` once the directory is gone. Raises `LockTimeoutError` naming the holder.
    """
    deadline, wait_ms = time.monotonic() + lock_timeout_ms / 1000, lock_timeout_ms
    while True:
        with ExitStack() as locks:
            try:
                lock = _taken(storage, folder, wait_ms, instead, locks)
            except LockTimeoutError as error:
                raise LockTimeoutError(
                    f"somebody is at work on the table {folder}, and nothing is changed: {error.message}", table=folder, path=folder
                ) from error
            if lock is not None:
                yield lock
                return
        time.sleep(_PAUSE)
        wait_ms = max(0, int((deadline - time.monotonic()) * 1000))


def _taken(storage: Storage, folder: str, wait_ms: int, instead: LockOptions | None, locks: ExitStack) -> TableLock | None:
    """The table's lock, with all others; None where a writer is to be waited for, which there is time for."""
    lock = locks.enter_context(TableLock(storage, wait_ms, file=f"{folder}/{LOCK_FILE}", instead=instead))
    for entry in storage.list(f"{folder}/{LOCK_FILE.rpartition('/')[0]}"):
        if not entry.is_directory and not entry.path.endswith((LOCK_FILE, LOCK_OBJECT)):
            # Its holder wants the table lock, which is held here: waiting for it would be waiting for each other.
            try:
                locks.enter_context(TableLock(storage, 0, file=entry.path))
            except LockTimeoutError:
                if entry.name.startswith(WRITES_PREFIX) and wait_ms > 0:
                    return None
                raise
    return lock
