"""Locks of plan executors: one at a time, and none while the plan is taken back. The lock dies with its process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from lakehouse_engine.errors import LockError, LockTimeoutError, RollbackError
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.lock import TableLock

_FOLDER, _PREFIX, _SUFFIX = ".hoodie/.locks", "compaction-", ".lock"


def lock_file(instant_time: str) -> str:
    """Lock of the executor of that instant's plan. All services use the name of the first one that had it."""
    return f"{_FOLDER}/{_PREFIX}{instant_time}{_SUFFIX}"


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
    """Remove the locks of plans that are not `pending`: their executors died before they could.

    The table lock is held. A lock in use stays until its holder finds nothing left to do.
    """
    known = {lock_file(time) for time in pending}
    for entry in storage.list(_FOLDER):
        if entry.name.startswith(_PREFIX) and entry.name.endswith(_SUFFIX) and entry.path not in known:
            time = entry.name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
            with suppress(LockError), executor_lock(storage, time, 0):
                storage.delete(entry.path)
