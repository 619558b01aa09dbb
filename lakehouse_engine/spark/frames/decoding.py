"""Files and slices that executors read and merge in each query; nothing of them is on the driver.

A task of the job reads some of them one after the other, part by part. The job's closure carries the plan: it is bound to these files,
whatever is committed later. Spark does not know which columns it could skip, so only requested ones are read.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast

from lakehouse_engine.files.row_pool import SpillTo
from lakehouse_engine.read.arrow_scan import ReadTask, SliceTask, iter_task
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.schema import to_spark_schema
from lakehouse_engine.spark.session import prepare_executors
from lakehouse_engine.spark.tasks.parcels import Packing, Parcels
from lakehouse_engine.spark.tasks.runner import Unpacking, pack
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.local import LocalStorage

_MOST, _OPENING = 128 * 1024 * 1024, 4 * 1024 * 1024
"""Bytes per task, and the cost of opening a slice: Spark's defaults for its own scans. A slice is never split."""

_BATCH = 1 << 16
"""Rows per batch to the JVM."""

_HELD = 256 * 1024 * 1024
"""Bytes of log rows of one slice that a task holds in memory; more go to temporary files of the executor."""

Task = ReadTask | SliceTask


def decoded(spark: SparkSession, storage: Storage, tasks: Sequence[Task], schema: pa.Schema, options: Mapping[str, Any]) -> DataFrame:
    """Rows of all tasks, with the columns of `schema` (plain types, at least one).

    Reads nothing yet. On a cluster the executors are first asked whether they can read. Raises as `prepare_executors`; errors of
    `iter_task` happen on executors and show as Spark's `PythonException` with name and text.
    """
    prepare_executors(spark, storage, options)
    abilities = abilities_of(spark)
    groups = grouped(tasks, abilities.parallelism)
    packing = Packing(storage, inline=sys.maxsize)
    pack(packing, read_group, groups)
    parcels, numbers = packing.sealed(), spark.range(0, len(groups), 1, len(groups))
    if packing.size <= abilities.most_in_closure:
        return numbers.mapInArrow(_reading(parcels), to_spark_schema(schema))
    parts = pa.table({"id": range(len(groups)), "part": pa.array([parcels.part(number) for number in range(len(groups))], pa.binary())})
    rows = _reading_rows(parcels.without(len(groups)))
    # A broadcast, so that each task finds its part by number.
    return numbers.join(broadcast(abilities.frame(parts)), "id").mapInArrow(rows, to_spark_schema(schema))


def grouped(tasks: Sequence[Task], parallelism: int) -> list[tuple[Task, ...]]:
    """Group tasks so that small ones share a Spark task and all are about equal; the largest come first."""
    sizes = {number: _size(task) + _OPENING for number, task in enumerate(tasks)}
    most = min(_MOST, max(_OPENING, sum(sizes.values()) // parallelism))
    found: list[list[Task]] = []
    held = most + 1
    for number in sorted(sizes, key=lambda number: sizes[number], reverse=True):
        if not found or held + sizes[number] > most:
            found.append([])
            held = 0
        found[-1].append(tasks[number])
        held += sizes[number]
    return [tuple(group) for group in found]


def _size(task: Task) -> int:
    return task.piece.slice.size if isinstance(task, SliceTask) else task.file.size


def _reading(parcels: Parcels) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        unpacking = Unpacking(parcels)
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            yield from unpacking.carry_out(number)

    return rows


def _reading_rows(shared: Parcels) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Like `_reading`, for parts that are rows; `shared` are the values beside them."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        unpacking = Unpacking(shared)
        for part in (part for batch in batches for part in batch.column("part").to_pylist()):
            yield from unpacking.carry_out_part(part)

    return rows


def read_group(tasks: Sequence[Task]) -> Iterator[pa.RecordBatch]:
    """Function that an executor runs."""
    # Spark cleans its own folders when a worker is killed.
    spark_folder = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
    with tempfile.TemporaryDirectory(prefix="lakehouse-logs-", dir=spark_folder) as folder:
        for number, task in enumerate(tasks):
            for table in iter_task(task, SpillTo(LocalStorage(folder), str(number), _HELD)):
                yield from table.to_batches(max_chunksize=_BATCH)
