"""Rows of a query kept for another session: in memory if they are few, else in files of a storage that executors write and read."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakehouse_engine.options.write import DRIVER_BYTES
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.collect_small import fetched
from lakehouse_engine.spark.input import each_partition
from lakehouse_engine.spark.session import prepare_executors
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.os_errors import as_storage_errors


@dataclass(frozen=True, slots=True)
class StashedRows:
    """`files` of `storage`, one per partition, in order, with the columns of `schema`."""

    storage: Storage
    files: tuple[str, ...]
    schema: StructType

    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows in a session. If executors cannot read them, running it fails with the storage's error in Spark's text."""
        if not self.files:
            return spark.createDataFrame([], self.schema)
        count = len(self.files)
        return spark.range(0, count, 1, count).mapInArrow(_reading(self.storage, self.files), self.schema)


def stash(frame: DataFrame, storage: Storage, folder: str) -> Callable[[SparkSession], DataFrame]:
    """Run a query once; the result gives its rows in any session of the process while the `folder` of the storage exists.

    Raises what the query raises, and as `prepare_executors`.
    """
    prepare_executors(frame.sparkSession, storage, {})
    rows = fetched(frame, DRIVER_BYTES.default, DRIVER_BYTES.default)  # kept in memory as long as the result is
    if isinstance(rows, pa.Table):
        return lambda spark: abilities_of(spark).column_frame(rows)

    def write(number: int, batches: Iterator[pa.RecordBatch]) -> tuple[int, str] | None:
        return _write(storage, folder, number, batches)

    written = sorted(file for file in each_partition(rows, write) if file is not None)
    return StashedRows(storage, tuple(path for _, path in written), frame.schema).frame


def _write(storage: Storage, folder: str, number: int, batches: Iterator[pa.RecordBatch]) -> tuple[int, str] | None:
    """File of one partition. A repeated attempt writes another name, which goes with the folder."""
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return None
    path = f"{folder}/{number:05d}-{uuid.uuid4()}.arrow"
    with as_storage_errors("write", path, storage.root), storage.open_output(path) as sink, pa.ipc.new_stream(sink, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)
    return number, path


def _reading(storage: Storage, files: Sequence[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            with storage.open_input(files[number]) as source, pa.ipc.open_stream(source) as reader:
                yield from reader

    return rows
