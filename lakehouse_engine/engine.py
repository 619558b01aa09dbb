"""The interface of a runtime, and the runtime that needs no cluster."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar, runtime_checkable

from lakehouse_engine.options import TASK_THREADS
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import in_object_store

REQUESTS_AT_ONCE = 8
"""Connections of one process to an object store."""
_TOGETHER = 4
"""Parts of shared work per task that runs at once."""
Task = TypeVar("Task")
Result = TypeVar("Result")


class TaskRunner(Protocol):
    """Maps a module-level function over picklable, frozen task descriptions. A task with `packed` can be made small for sending.

    Results come back in task order. If a task fails, `run` raises `TaskError` (or the task's own `LakehouseError`). Tasks may run more than
    once (Spark retries), so a function names its files by attempt or overwrites its own.
    """

    @property
    def parallelism(self) -> int:
        """Number of tasks that run at once; work is divided into multiples of it."""
        ...

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task], *, name: str) -> list[Result]: ...


@runtime_checkable
class Packable(Protocol):
    """A task for this process, in which tasks share the rows of a batch."""

    def packed(self) -> Packable:
        """The same task with only the shared rows that it needs, to be sent to another process."""
        ...


def packed(task: Any) -> Any:
    """A task in the form in which it is sent."""
    return task.packed() if isinstance(task, Packable) else task


class LocalRunner:
    """Runs tasks in threads of this process; Arrow releases the interpreter lock during its work.

    `waiting` threads are for tasks that mostly wait for a store (None: as many as the others).
    """

    def __init__(self, threads: int = 1, *, waiting: int | None = None) -> None:
        self._threads = max(1, threads)
        self.waiting = self._threads if waiting is None else waiting

    @property
    def parallelism(self) -> int:
        return self._threads

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task], *, name: str) -> list[Result]:
        if self._threads == 1 or len(tasks) <= 1:
            return [function(task) for task in tasks]
        with ThreadPoolExecutor(min(self._threads, len(tasks)), thread_name_prefix=name) as pool:
            try:
                return list(pool.map(function, tasks))
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise


def local_runner(options: Mapping[str, Any]) -> LocalRunner:
    """Runner of this process, with as many threads as the options say, or as there are processors."""
    asked, processors = TASK_THREADS.read(options), len(os.sched_getaffinity(0))
    return LocalRunner(asked or processors, waiting=asked or max(processors, REQUESTS_AT_ONCE))


def shared_out(items: Sequence[Task], runner: TaskRunner) -> list[tuple[Task, ...]]:
    """Items in order, in equal parts for one task each, for items that are cheaper together. Each runner slot gets several parts."""
    size = max(1, -(-len(items) // (_TOGETHER * runner.parallelism)))
    return [tuple(items[first : first + size]) for first in range(0, len(items), size)]


def weighed_out(items: Sequence[Task], weights: Sequence[int], runner: TaskRunner) -> list[tuple[Task, ...]]:
    """Items in parts of about equal weight, for work with a fixed cost per part: in this process as many as run at once, heaviest first, so
    that none waits long. Other runners get parts like `shared_out`.
    """
    if not isinstance(runner, LocalRunner):
        return shared_out(items, runner)
    parts: list[list[Task]] = [[] for _ in range(min(runner.parallelism, len(items)))]
    lightest = [(0, number) for number in range(len(parts))]
    for place in sorted(range(len(items)), key=lambda place: -weights[place]):
        weight, number = lightest[0]
        parts[number].append(items[place])
        heapq.heapreplace(lightest, (weight + max(1, weights[place]), number))
    return [tuple(part) for part in parts]


def looking_runner(runner: TaskRunner, storage: Storage) -> TaskRunner:
    """Runner for tasks that inspect files: more of them at once in this process, if the files are in an object store."""
    if isinstance(runner, LocalRunner) and in_object_store(storage):
        return LocalRunner(max(runner.waiting, runner.parallelism))
    return runner
