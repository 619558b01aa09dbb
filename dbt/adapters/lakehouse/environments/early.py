"""Something slow that is started in a thread before it is asked for, and is not left behind where nobody asks."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Started = TypeVar("Started")

_waiting: set[EarlyStart] = set()  # type: ignore[type-arg]


class EarlyStart(Generic[Started]):
    """Runs `start` at once, in a thread. Its result or its error is for whoever asks first.

    If the process ends and nobody has asked, or at `give_up`, the `give_up` that was given is called: it has to make `start` return soon,
    and to end what that began.
    """

    def __init__(self, start: Callable[[], Started], give_up: Callable[[], None]) -> None:
        self._start, self._give_up = start, give_up
        self._outcome: list[Started] = []
        self._error: BaseException | None = None
        # A daemon: a process that ends must not wait for what it does not need.
        self._thread = threading.Thread(target=self._run, name="lakehouse-early-start", daemon=True)
        _waiting.add(self)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._outcome.append(self._start())
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            self._error = error

    def result(self) -> Started:
        """What `start` returned; raises what it raised. Waits until it is through."""
        self._thread.join()
        _waiting.discard(self)
        if self._error is not None:
            raise self._error
        return self._outcome[0]

    def join(self, timeout: float | None = None) -> None:
        """Wait until `start` is through, unless this is its own thread."""
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def give_up(self) -> None:
        """End it; nobody will ask for the result any more."""
        self._give_up()
        self.join(5)
        _waiting.discard(self)


def _give_up_all() -> None:
    for one in list(_waiting):
        one.give_up()


def _settle_all() -> None:
    """A fork copies locks as they are, but not the thread that would release them."""
    for one in list(_waiting):
        one.join()


atexit.register(_give_up_all)
# What was started is the parent's: a child that ends does not end it.
os.register_at_fork(before=_settle_all, after_in_child=_waiting.clear)
