"""Locks a table that is about to be dropped or moved, so that no process works on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from lakehouse_engine.errors import LockTimeoutError
from lakehouse_engine.options import LockOptions
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.lock import LOCK_FILE, TableLock
from lakehouse_engine.timeline.locks.storage_lock import LOCK_OBJECT


@contextmanager
def table_at_rest(
    storage: Storage, folder: str, *, lock_timeout_ms: int, instead: LockOptions | None = None
) -> Iterator[TableLock]:
    """Hold every lock of the table in `folder` of `storage`: the table's own, which is yielded, and those of running compactions. `instead`
    is used if nothing is left that names the lock.

    Processes that wait for one get `TableNotFoundError` once the directory is gone. Raises `LockTimeoutError` with the holder.
    """
    with ExitStack() as locks:
        try:
            lock = locks.enter_context(TableLock(storage, lock_timeout_ms, file=f"{folder}/{LOCK_FILE}", instead=instead))
            for entry in storage.list(f"{folder}/{LOCK_FILE.rpartition('/')[0]}"):
                if not entry.is_directory and not entry.path.endswith((LOCK_FILE, LOCK_OBJECT)):
                    # Its executor wants the table lock, which is held here: waiting would be a deadlock.
                    locks.enter_context(TableLock(storage, 0, file=entry.path))
        except LockTimeoutError as error:
            raise LockTimeoutError(
                f"somebody is at work on the table {folder}, and nothing is changed: {error.message}", table=folder, path=folder
            ) from error
        yield lock
