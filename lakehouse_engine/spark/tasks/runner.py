"""Tasks on Spark executors."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from lakehouse_engine.engine import packed
from lakehouse_engine.errors import LakehouseError, TaskError
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.tasks.parcels import Packing, Parcels
from lakehouse_engine.spark.tasks.pickling import dumps, dumps_beside, loads, shared_parts
from lakehouse_engine.storage.base import Storage

Task = TypeVar("Task")
Result = TypeVar("Result")

_RESULT = "number long, outcome binary, path string"
_NAMES = ["number", "outcome", "path"]
_ROUNDS = 8
"""Maximum Spark tasks per concurrently running one; beyond it, several of ours share a task. Each costs tens of milliseconds, and the idle
tail of a job is an eighth of it at most.
"""
_WAITING = 1000
"""Minimum of waiting tasks, if they determine the number of executors."""


class SparkRunner:
    """One Spark job per call, one partition per task, or per group of tasks if there are many. Implements `engine.TaskRunner` for tasks of
    one table.

    A task receives only its own rows and the parts it shares with others, which are sent once. An expected failure travels back as data, so
    that the driver raises the task's own error instead of Spark's text.
    """

    def __init__(self, spark: SparkSession, storage: Storage) -> None:
        self._spark, self._storage = spark, storage

    @property
    def parallelism(self) -> int:
        """Number of tasks that the cluster runs at once, by its own account; at least 2."""
        return abilities_of(self._spark).parallelism

    @property
    def _most(self) -> int:
        """Number of Spark tasks in a job. If executors appear when tasks wait, some tasks have to wait."""
        grows = str(self._spark.conf.get("spark.dynamicAllocation.enabled", "false")).lower() == "true"
        return max(_ROUNDS * self.parallelism, _WAITING if grows else 0)

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task], *, name: str) -> list[Result]:
        if not tasks:
            return []
        with Packing(self._storage) as packing:
            pack(packing, function, tasks)
            parcels, order = packing.sealed(), dealt(len(tasks), self._most)

            def partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                unpacking = Unpacking(parcels)
                for number in (number for batch in batches for place in batch.column(0).to_pylist() for number in order[place]):
                    outcome, path = parcels.result(outcome_of(partial(unpacking.carry_out, number)))
                    yield pa.record_batch([pa.array([number]), pa.array([outcome], pa.binary()), pa.array([path], pa.string())], _NAMES)

            frame = self._spark.range(0, len(order), 1, len(order)).mapInArrow(partition, _RESULT)
            try:
                table = frame.toArrow()
            except Exception as error:  # a failed job may raise errors that are not PySpark's
                raise TaskError(f"a {name} task failed in Spark: {error}", task=name, table=self._storage.root) from error
            return [self._result(row["outcome"], row["path"]) for row in sorted(table.to_pylist(), key=lambda row: int(row["number"]))]

    def _result(self, outcome: bytes, path: str | None) -> Any:
        return result_of(outcome if path is None else self._storage.read(path))


def pack(packing: Packing, function: Callable[[Task], Result], tasks: Sequence[Task]) -> None:
    """Parts 0 to n - 1 are the n tasks with `function`; shared parts follow."""
    shared = shared_parts(tasks)
    numbers = {id(part): len(tasks) + number for number, part in enumerate(shared)}
    met: set[int] = set()
    for task in tasks:
        data, beside = dumps_beside((function, packed(task)), numbers)
        packing.add(data)
        met |= beside
    for part in shared:
        packing.add(dumps(part) if numbers[id(part)] in met else b"")


def outcome_of(function: Callable[[], object]) -> bytes:
    """A function's result or engine error, in a form that travels through a DataFrame."""
    try:
        return dumps((function(), None))
    except LakehouseError as error:
        return dumps((None, error))


def result_of(outcome: bytes) -> Any:
    """Inverse of `outcome_of`: the result, or the error raised here."""
    result, error = pickle.loads(outcome)
    if error is not None:
        raise error
    return result


def dealt(count: int, most: int) -> list[range]:
    """Numbers of tasks in at most `most` equal groups, dealt in turn, because neighbouring tasks may be alike in size."""
    groups = min(count, most)
    return [range(first, count, groups) for first in range(groups)]


class Unpacking:
    """Runs packed tasks in one Spark task. What consecutive parts share is unpickled once, and released when the next part does not need
    it, because it may hold rows.
    """

    def __init__(self, parcels: Parcels) -> None:
        self._parcels = parcels
        self._shared: dict[int, object] = {}

    def carry_out(self, number: int) -> Any:
        """Call the function of a part with its task."""
        return self.carry_out_part(self._parcels.part(number))

    def carry_out_part(self, data: bytes) -> Any:
        """Like `carry_out`, for a part that came another way."""
        before, self._shared = self._shared, {}

        def load(number: int) -> object:
            if number not in self._shared:
                self._shared[number] = before[number] if number in before else pickle.loads(self._parcels.part(number))
            return self._shared[number]

        function, task = loads(data, load)
        before.clear()
        return function(task)
