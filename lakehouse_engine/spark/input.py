"""Batches that are Spark DataFrames: computed once, in Python workers, into staged Arrow files or directly into base files."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import UnseenFileError
from lakehouse_engine.spark.abilities import abilities_of, check_session
from lakehouse_engine.spark.arranging import arranged
from lakehouse_engine.spark.collect_small import fetched
from lakehouse_engine.spark.schema import to_arrow_schema
from lakehouse_engine.spark.session import prepare_executors, use_this_interpreter
from lakehouse_engine.spark.tasks.pickling import dumps
from lakehouse_engine.spark.tasks.runner import outcome_of, result_of
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.write.batch.arrangement import Arrangement
from lakehouse_engine.write.batch.given import arrow_input
from lakehouse_engine.write.batch.input import ArrowInput, Input, RowKeying, keyed_schema
from lakehouse_engine.write.request import WriteRequest
from lakehouse_engine.write.source import RowSource, StagedFile, StagedSource
from lakehouse_engine.write.tasks.base_files import FileContext, WriteStatus
from lakehouse_engine.write.tasks.bulk import WORTH_WRITING, write_tables

Made = TypeVar("Made")

_OUTCOME = "outcome binary"
_HELD_BYTES = 64 * 1024 * 1024
"""Rows per table that a Python worker builds from smaller batches."""


@dataclass(frozen=True, slots=True)
class DataFrameInput:
    """Rows of a DataFrame. Implements `write.batch.input.Input`; each use runs the query once.

    Small results come to this process (`small.fetched`); `driver_bytes` is the limit.
    """

    frame: DataFrame
    driver_bytes: int = 0

    @property
    def schema(self) -> pa.Schema:
        return to_arrow_schema(self.frame.schema)

    @property
    def is_query(self) -> bool:
        return True

    def stage(
        self, keying: RowKeying, storage: Storage, folder: Callable[[], str], arrangement: Arrangement | None = None
    ) -> RowSource:
        rows = fetched(self.frame, self.driver_bytes)
        if isinstance(rows, pa.Table):
            return ArrowInput(rows).stage(keying, storage, folder, arrangement)
        below = folder()

        def partition(number: int, batches: Iterator[pa.RecordBatch]) -> tuple[int, StagedFile] | None:
            return _stage_partition(keying, storage, below, number, batches)

        rows = rows if arrangement is None else arranged(rows, arrangement, keying)
        staged = [file for file in each_partition(rows, partition) if file is not None]
        files = tuple(file for _, file in sorted(staged, key=lambda pair: pair[0]))
        _check_seen(storage, below, files)
        return StagedSource(storage, files, keyed_schema(keying.schema))

    def write_files(
        self, keying: RowKeying, context: FileContext, runner: TaskRunner, arrangement: Arrangement
    ) -> list[WriteStatus]:
        rows = fetched(self.frame, self.driver_bytes)
        if isinstance(rows, pa.Table):
            return ArrowInput(rows).write_files(keying, context, runner, arrangement)

        def partition(number: int, batches: Iterator[pa.RecordBatch]) -> list[WriteStatus]:
            return write_tables(context, number, _keyed(keying, number, batches))

        return [status for statuses in each_partition(arranged(rows, arrangement, keying), partition) for status in statuses]


def _check_seen(storage: Storage, folder: str, files: Sequence[StagedFile]) -> None:
    """Raise `UnseenFileError` for rows that an executor staged but this process does not see."""
    seen = {entry.path for entry in storage.list(folder)} if files else set()
    unseen = next((file.path for file in files if file.path not in seen), None)
    if unseen is not None:
        raise UnseenFileError(
            f"an executor staged rows in {unseen!r}, which is not there for the driver: the executors' directory must be the driver's"
            " (mount it under the same path on every worker); nothing was written",
            table=storage.root,
            path=unseen,
        )


def _stage_partition(
    keying: RowKeying, storage: Storage, folder: str, number: int, batches: Iterator[pa.RecordBatch]
) -> tuple[int, StagedFile] | None:
    """Write one partition's keyed rows to their own file. A retried attempt has another name, and only one is reported."""
    path, rows = f"{folder}/{number:05d}-{uuid.uuid4()}.arrow", 0
    schema = keyed_schema(keying.schema)
    sink = writer = None
    for keyed in _keyed(keying, number, batches):
        if writer is None:
            sink = storage.open_output(path)
            writer = pa.ipc.new_file(sink, schema)
        writer.write_table(keyed)
        rows += keyed.num_rows
    if writer is None or sink is None:
        return None
    writer.close()
    sink.close()
    return number, StagedFile(path, rows)


def _keyed(keying: RowKeying, number: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    rows = 0
    for table in _larger(batches):
        yield keying.key(table, task=number, first_row=rows)
        rows += table.num_rows


def _larger(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Combine batches into larger tables: costs per batch (keys, meta columns, lookups) add up over Spark's small ones."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= WORTH_WRITING or size >= _HELD_BYTES:
            yield pa.Table.from_batches(held).combine_chunks()
            held, rows, size = [], 0, 0
    if rows:
        yield pa.Table.from_batches(held).combine_chunks()


def each_partition(frame: DataFrame, function: Callable[[int, Iterator[pa.RecordBatch]], Made]) -> list[Made]:
    """Run `function(partition number, batches)` on every partition; returns its result or raises its error here."""
    payload = dumps(function)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        outcome = outcome_of(lambda: pickle.loads(payload)(number, batches))
        yield pa.record_batch([pa.array([outcome], pa.binary())], ["outcome"])

    outcomes = abilities_of(frame.sparkSession).handed_over(frame.mapInArrow(run, _OUTCOME), given=frame)
    return [result_of(outcome) for outcome in outcomes.column(0).to_pylist()]


def as_input(data: Any, driver_bytes: int = 0) -> Input:
    """A Spark DataFrame, Arrow table, record batch (reader) or pandas frame as a write's input. Raises as `arrow_input`.

    `driver_bytes` is `lakehouse.stage.driver.max.bytes`.
    """
    if isinstance(data, DataFrame):
        check_session(data.sparkSession)
        use_this_interpreter(data.sparkSession)
        return DataFrameInput(data, driver_bytes)
    return arrow_input(data)


def prepare_inputs(request: WriteRequest, storage: Storage, options: Mapping[str, Any]) -> None:
    """Prepare a write whose rows executors compute. Raises as `prepare_executors`."""
    for data in (request.data, request.delete_keys, request.replaced_rows):
        if isinstance(data, DataFrameInput):
            prepare_executors(data.frame.sparkSession, storage, options)
