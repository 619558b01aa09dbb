"""The interface of a lock provider, and how it waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from lakehouse_engine.errors import LockTimeoutError
from lakehouse_engine.options import LOCK_TIMEOUT_MS


class LockProvider(Protocol):
    """Keeps other processes out between `acquire` and `release`. Used by one thread at a time, and never entered twice."""

    def acquire(self, deadline: float, on_wait: Callable[[], None]) -> None:
        """Take the lock; `on_wait` is called if that is not possible at once.

        Raises `LockTimeoutError` with the holder if it is not free by `deadline` (seconds, monotonic clock).
        """
        ...

    def release(self) -> None:
        """Release the lock; failures are logged, because the work under it is done."""
        ...

    def confirm(self) -> bool:
        """True if the lock was held all the time; False if it was lost, and is taken again. Raises `LockError` if another program has it.
        """
        ...

    def keep(self) -> None:
        """Show that the holder is alive, if the lock can expire."""
        ...

    def forget(self) -> None:
        """In a forked child: drop what belongs to the parent, without releasing the lock."""
        ...


class Patience:
    """Pauses that grow from `shortest` to `longest` (seconds) until `deadline`; some attempts are always made."""

    TRIES = 3
    """Attempts even without a timeout: another process may just be reading who holds the lock."""

    def __init__(
        self, deadline: float, shortest: float, longest: float, on_wait: Callable[[], None], tries: int | None = None
    ) -> None:
        self._on_wait = on_wait
        self._deadline, self._pause, self._longest, self._most = deadline, shortest, longest, tries
        self._tries = 0

    def pause(self) -> bool:
        """Wait for the next attempt; False if there is none."""
        self._tries += 1
        if self._most is not None and self._tries >= self._most:
            return False
        if self._tries >= self.TRIES and time.monotonic() >= self._deadline:
            return False
        if self._tries == self.TRIES:
            self._on_wait()
        time.sleep(self._pause if self._tries < self.TRIES else min(self._pause, max(0.0, self._deadline - time.monotonic())))
        self._pause = min(self._longest, self._pause * 2)
        return True


def timed_out(table: str, holder: str, waited: float) -> LockTimeoutError:
    """`waited` in seconds."""
    return LockTimeoutError(
        f"the table is locked by {holder}; it was not free within {waited:g} s. Wait for that writer, or raise {LOCK_TIMEOUT_MS.key}",
        table=table,
    )
