"""Decides which process may run the plan of a table service: one executor at a time, none while the plan is taken back. The lock dies with
its process.

A write that makes its files without the table lock holds a lock of its own, so that no process drops or moves the table meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from lakehouse_engine.errors import LockError, LockTimeoutError, RollbackError, StorageError
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.lock import WRITES_PREFIX, TableLock, find_lock_holder

logger = logging.getLogger(__name__)

_FOLDER, _PREFIX, _SUFFIX = ".hoodie/.locks", "compaction-", ".lock"
_ALONE = "alone"
"""Used instead of an instant."""


def lock_file(instant_time: str) -> str:
    """Lock of the executor of that instant's plan. All services use the name of the first one that had it."""
    return f"{_FOLDER}/{_PREFIX}{instant_time}{_SUFFIX}"


def write_lock_file(instant_time: str) -> str:
    """The lock of the write of that instant."""
    return f"{_FOLDER}/{WRITES_PREFIX}{instant_time}{_SUFFIX}"


def hold_write_lock(storage: Storage, instant_time: str, until: ExitStack) -> None:
    """Take the lock of the write of an instant, which is its own, until the stack is closed. Others may have the table's lock."""
    path = write_lock_file(instant_time)
    until.enter_context(TableLock(storage, 0, file=path))
    until.callback(_remove, storage, path)


def _remove(storage: Storage, path: str) -> None:
    try:
        storage.delete(path)
    except StorageError as error:
        logger.warning("the lock file %s could not be removed (%s); archiving does", path, error)


def ask_to_be_alone(storage: Storage, until: ExitStack) -> None:
    """Ask writers to keep the table's lock (`is_wanted_alone`), for a caller that waits until no writer works without it."""
    with suppress(LockTimeoutError):  # another one asks already
        hold_write_lock(storage, _ALONE, until)


def is_wanted_alone(storage: Storage) -> bool:
    """True if a process waits until no writer works without the table's lock."""
    return find_lock_holder(storage, write_lock_file(_ALONE)) is not None


def executor_lock(storage: Storage, instant_time: str, timeout_ms: int) -> TableLock:
    """Allows one executor per plan."""
    return TableLock(storage, timeout_ms, file=lock_file(instant_time))


@contextmanager
def executors_kept_out(storage: Storage, instants: Iterable[Instant]) -> Iterator[None]:
    """Hold the executor's lock of every pending plan among `instants` that was ever run.

    Raises `RollbackError` at once if one is running: its executor will want the table lock, which the caller holds, so waiting would be a
    deadlock.
    """
    with ExitStack() as locks:
        for instant in instants:
            path = lock_file(instant.requested_time)
            if not instant.is_completed and storage.head(path) is not None:
                try:
                    locks.enter_context(executor_lock(storage, instant.requested_time, 0))
                except LockTimeoutError as error:
                    raise RollbackError(
                        f"the {instant.action} {instant.requested_time} is running, and would be taken back; wait for it or end it"
                        f" ({error.message})",
                        instant=instant,
                        table=storage.root,
                    ) from error
                locks.callback(storage.delete, path)
        yield


def forget_done(storage: Storage, pending: Iterable[str]) -> None:
    """Remove the locks of plans and writes whose times are not `pending` (any more): who held them was killed before it could.

    The table lock is held. A lock in use stays until its holder finds nothing left to do.
    """
    known = {path for time in pending for path in (lock_file(time), write_lock_file(time))}
    for entry in storage.list(_FOLDER):
        if entry.name.startswith((_PREFIX, WRITES_PREFIX)) and entry.name.endswith(_SUFFIX) and entry.path not in known:
            with suppress(LockError), TableLock(storage, 0, file=entry.path):
                storage.delete(entry.path)
