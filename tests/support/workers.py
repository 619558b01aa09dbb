"""Runners that behave as a cluster does: workers with disks of their own, attempts that freeze and go on later."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import LateAttemptError
from lakehouse_engine.storage.base import Storage

WAIT = 60


class Workers(LocalRunner):
    """Runs file tasks on a storage of their own, and then `afterwards`."""

    def __init__(self, disk: Callable[[], Storage] | None = None, afterwards: Callable[[list[Any]], None] = lambda results: None) -> None:
        super().__init__(1)
        self._disk, self._afterwards = disk, afterwards

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any], *, name: str) -> list[Any]:
        if not tasks or not hasattr(tasks[0], "context"):
            return super().run(function, tasks, name=name)
        disk = self._disk() if self._disk is not None else None
        moved = tasks if disk is None else [replace(task, context=replace(task.context, storage=disk)) for task in tasks]
        results = super().run(function, moved, name=name)
        self._afterwards(results)
        return results


class Paused:
    """A storage that holds the first call of a kind until `go` is set, and says that it got there."""

    def __init__(self, inner: Storage, where: Callable[[str, str], bool]) -> None:
        self._inner, self._where = inner, where
        self.there, self.go = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._inner, name)

        def held(path: str = "", *arguments: Any) -> Any:
            if not self.there.is_set() and self._where(name, path):
                self.there.set()
                assert self.go.wait(WAIT)
            return call(path, *arguments)

        return held if callable(call) else call


class Retrying(LocalRunner):
    """As a cluster whose worker freezes: the first file task pauses, is run again, and goes on once the write is over."""

    def __init__(self, where: Callable[[str, str], bool]) -> None:
        super().__init__(1)
        self._where = where
        self.paused: Paused | None = None
        self.outcome: list[object] = []
        self._thread: threading.Thread | None = None

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any], *, name: str) -> list[Any]:
        if self.paused is None and tasks and hasattr(tasks[0], "context"):
            storage = self.paused = Paused(tasks[0].context.storage, self._where)
            late = replace(tasks[0], context=replace(tasks[0].context, storage=storage))
            self._thread = threading.Thread(target=self._attempt, args=(function, late))
            self._thread.start()
            assert storage.there.wait(WAIT)
        return super().run(function, tasks, name=name)

    def _attempt(self, function: Callable[[Any], Any], task: Any) -> None:
        try:
            self.outcome.append(function(task))
        except (LateAttemptError, OSError) as error:
            self.outcome.append(error)

    def go_on(self) -> object:
        assert self.paused is not None
        assert self._thread is not None
        self.paused.go.set()
        self._thread.join(WAIT)
        [outcome] = self.outcome
        return outcome


def marker(name: str, path: str) -> bool:
    return name == "create" and ".marker." in path


def data_file(name: str, path: str) -> bool:
    return not path.startswith(".hoodie/") and (name == "open_output" or (name == "create" and ".log." in path))


class Second:
    """The last look: the second time that an attempt asks whether its write is open."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, name: str, path: str) -> bool:
        self.asked += name == "head" and path.endswith(".open")
        return self.asked == 2
