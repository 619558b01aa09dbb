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


class SparkRunner:
    """One Spark job for each call, one partition for each task. Implements `engine.TaskRunner` for tasks of one table.

    A task gets what it needs and no other's: rows of its own, and parts that several tasks hold once for all of them. An expected failure
    travels back as data, so that the driver raises the task's own error and not Spark's text about it.
    """

    def __init__(self, spark: SparkSession, storage: Storage) -> None:
        self._spark, self._storage = spark, storage

    @property
    def parallelism(self) -> int:
        """How many tasks the cluster runs at once, as it says of itself; at least 2."""
        return abilities_of(self._spark).parallelism

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task], *, name: str) -> list[Result]:
        if not tasks:
            return []
        with Packing(self._storage) as packing:
            pack(packing, function, tasks)
            parcels, count = packing.sealed(), len(tasks)

            def partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                for number in (number for batch in batches for number in batch.column(0).to_pylist()):
                    outcome, path = parcels.result(outcome_of(partial(carry_out, parcels, number)))
                    yield pa.record_batch([pa.array([number]), pa.array([outcome], pa.binary()), pa.array([path], pa.string())], _NAMES)

            frame = self._spark.range(0, count, 1, count).mapInArrow(partition, _RESULT)
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


def carry_out(parcels: Parcels, number: int) -> Any:
    """Call the function of a part that was packed with its task."""
    return carry_out_part(parcels.part(number), parcels)


def carry_out_part(data: bytes, parcels: Parcels) -> Any:
    """As `carry_out`, for a part that came in another way; `parcels` has what it shares with others."""
    function, task = loads(data, lambda part: pickle.loads(parcels.part(part)))
    return function(task)
