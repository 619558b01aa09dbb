"""Tasks on Spark executors."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakehouse_engine.errors import LakehouseError, TaskError

Task = TypeVar("Task")
Result = TypeVar("Result")

_RESULT = "number long, outcome binary"


class SparkRunner:
    """One Spark job for each call, one partition for each task. Implements `engine.TaskRunner`.

    An expected failure travels back as data, so that the driver raises the task's own error and not Spark's text about it.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @property
    def parallelism(self) -> int:
        """What the session says of its cluster; 2 where it does not."""
        return max(2, int(self._spark.conf.get("spark.default.parallelism", None) or 2))

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task], *, name: str) -> list[Result]:
        if not tasks:
            return []
        payload = [dumps((function, task)) for task in tasks]

        def partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                numbers = batch.column(0).to_pylist()
                yield pa.record_batch([pa.array(numbers), pa.array([_attempt(payload[number]) for number in numbers], pa.binary())], _NAMES)

        frame = self._spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(partition, _RESULT)
        try:
            table = frame.toArrow()
        except PySparkException as error:
            raise TaskError(f"a {name} task failed in Spark: {error}", task=name) from error
        outcomes = sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))
        return [result_of(outcome) for _, outcome in outcomes]


_NAMES = ["number", "outcome"]


def dumps(value: object) -> bytes:
    """Pickled, closures included."""
    return bytes(cloudpickle.dumps(value))  # type: ignore[no-untyped-call]


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


def _attempt(payload: bytes) -> bytes:
    function, task = pickle.loads(payload)
    return outcome_of(lambda: function(task))
