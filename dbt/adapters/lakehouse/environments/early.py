"""A slow start that runs in a thread ahead of its first use, and is stopped if nothing uses it."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Started = TypeVar("Started")

_waiting: set[EarlyStart] = set()  # type: ignore[type-arg]


class EarlyStart(Generic[Started]):
    """Runs `start` at once in a thread. Its result or error goes to the first caller.

    If the process ends before a caller comes, or at `give_up`, the given `give_up` function is called: it must make `start` return soon and
    end what it began.
    """

    def __init__(self, start: Callable[[], Started], give_up: Callable[[], None]) -> None:
        self._start, self._give_up = start, give_up
        self._outcome: list[Started] = []
        self._error: BaseException | None = None
        # A daemon thread: a process must not wait at its end for what it does not need.
        self._thread = threading.Thread(target=self._run, name="lakehouse-early-start", daemon=True)
        _waiting.add(self)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._outcome.append(self._start())
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            self._error = error

    def result(self) -> Started:
        """Result of `start`, or its error. Waits for it to finish."""
        self._thread.join()
        _waiting.discard(self)
        if self._error is not None:
            raise self._error
        return self._outcome[0]

    def join(self, timeout: float | None = None) -> None:
        """Wait for `start` to finish, unless called from its own thread."""
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def give_up(self) -> None:
        """Stop it; the result is not needed any more."""
        self._give_up()
        self.join(5)
        _waiting.discard(self)


def _give_up_all() -> None:
    for one in list(_waiting):
        one.give_up()


def _settle_all() -> None:
    """A fork copies locks in their current state, but not the thread that would release them."""
    for one in list(_waiting):
        one.join()


atexit.register(_give_up_all)
# The parent owns what was started; a child that ends must not end it.
os.register_at_fork(before=_settle_all, after_in_child=_waiting.clear)
