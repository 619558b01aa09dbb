"""Keep the executors of compactions away while their plans are taken back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from lakehouse_engine.errors import LockTimeoutError, RollbackError
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.lock import TableLock


@contextmanager
def executors_kept_out(storage: Storage, instants: Iterable[Instant]) -> Iterator[None]:
    """Hold the executor's lock of every pending compaction among `instants`.

    Raises `RollbackError` at once where one is running: its executor will want the table lock, which the caller holds, so waiting for it
    would be waiting for each other.
    """
    with ExitStack() as locks:
        for instant in instants:
            path = f".hoodie/.locks/compaction-{instant.requested_time}.lock"
            if instant.action is Action.COMPACTION and not instant.is_completed and storage.head(path) is not None:
                try:
                    locks.enter_context(TableLock(storage, 0, file=path))
                except LockTimeoutError as error:
                    raise RollbackError(
                        f"the compaction {instant.requested_time} is running, and would be taken back; wait for it or end it"
                        f" ({error.message})",
                        instant=instant,
                        table=storage.root,
                    ) from error
                locks.callback(storage.delete, path)
        yield
