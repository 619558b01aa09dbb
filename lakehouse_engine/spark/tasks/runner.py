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
"""At most so many of Spark's tasks for each that runs at once: beyond that, several of ours share one. Each costs tens of milliseconds, and
what is left to do at the end of a job is an eighth of it at most.
"""
_WAITING = 1000
"""As many wait where they decide how many executors there will be."""


class SparkRunner:
    """One Spark job for each call, one partition for each task, or for several where they are many. Implements `engine.TaskRunner` for
    tasks of one table.

    A task gets what it needs and no other's: rows of its own, and parts that several tasks hold once for all of them. An expected failure
    travels back as data, so that the driver raises the task's own error and not Spark's text about it.
    """

    def __init__(self, spark: SparkSession, storage: Storage) -> None:
        self._spark, self._storage = spark, storage

    @property
    def parallelism(self) -> int:
        """How many tasks the cluster runs at once, as it says of itself; at least 2."""
        return abilities_of(self._spark).parallelism

    @property
    def _most(self) -> int:
        """Of Spark's tasks in a job. Where executors come as tasks wait for them, there have to be some that do."""
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
            except Exception as error:  # a failed job may raise what is no error of PySpark's
                raise TaskError(f"a {name} task failed in Spark: {error}", task=name, table=self._storage.root) from error
            return [self._result(row["outcome"], row["path"]) for row in sorted(table.to_pylist(), key=lambda row: int(row["number"]))]

    def _result(self, outcome: bytes, path: str | None) -> Any:
        return result_of(outcome if path is None else self._storage.read(path))


def pack(packing: Packing, function: Callable[[Task], Result], tasks: Sequence[Task]) -> None:
    """Parts 0 to n - 1 are the n tasks with `function`; behind them is what several of them share."""
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
    """What a function returned, or the engine's error that it raised, to travel through a DataFrame."""
    try:
        return dumps((function(), None))
    except LakehouseError as error:
        return dumps((None, error))


def result_of(outcome: bytes) -> Any:
    """The other end of `outcome_of`: the result, or the error raised here."""
    result, error = pickle.loads(outcome)
    if error is not None:
        raise error
    return result


def dealt(count: int, most: int) -> list[range]:
    """The numbers of tasks in at most `most` groups of one size, dealt in turn: tasks that are beside each other may be alike in size."""
    groups = min(count, most)
    return [range(first, count, groups) for first in range(groups)]


class Unpacking:
    """Carries out what was packed, in one task of Spark: what parts that follow each other share is unpickled once. What the next one has
    not is let go, for it may hold rows.
    """

    def __init__(self, parcels: Parcels) -> None:
        self._parcels = parcels
        self._shared: dict[int, object] = {}

    def carry_out(self, number: int) -> Any:
        """Call the function of a part with its task."""
        return self.carry_out_part(self._parcels.part(number))

    def carry_out_part(self, data: bytes) -> Any:
        """As `carry_out`, for a part that came in another way."""
        before, self._shared = self._shared, {}

        def load(number: int) -> object:
            if number not in self._shared:
                self._shared[number] = before[number] if number in before else pickle.loads(self._parcels.part(number))
            return self._shared[number]

        function, task = loads(data, load)
        before.clear()
        return function(task)
