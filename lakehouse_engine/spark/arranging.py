"""Rows of a DataFrame on their way into new file groups: dealt to tasks and sorted by Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.model.keys import PARTITION_PATH, RECORD_KEY
from lakehouse_engine.spark.schema import free_name
from lakehouse_engine.spark.tasks.pickling import dumps
from lakehouse_engine.sql.grammar.lexer import quote_name
from lakehouse_engine.write.batch.arrangement import Arrangement, SortMode
from lakehouse_engine.write.batch.input import RowKeying

_KEYS = (RECORD_KEY, PARTITION_PATH)


def arranged(frame: DataFrame, how: Arrangement, keying: RowKeying) -> DataFrame:
    """The rows in the given arrangement. Spark runs the last stage of the query twice for GLOBAL_SORT: it samples the rows first."""
    partition = [quote_name(name) for name in how.partition_columns]
    if not how.order:
        return _gathered(frame, partition, how.mode)
    added = {name: free_name(name, frame.columns) for name in _KEYS if name in how.order}
    keyed = _with_keys(frame, added, keying) if added else frame
    offered = {name.lower() for name in frame.columns}
    order = [quote_name(added.get(name, name)) for name in how.order if name in added or name.lower() in offered]
    return _sorted(keyed, how.mode, partition, order).drop(*added.values())


def _gathered(frame: DataFrame, partition: list[str], mode: SortMode) -> DataFrame:
    """The rows with each partition in one task; with a sort they go partition by partition, so that few files are open at once."""
    if not partition or mode is SortMode.NONE:
        return frame
    gathered = frame.repartition(*partition)
    return gathered if mode is SortMode.PARTITION_PATH_REPARTITION else gathered.sortWithinPartitions(*partition)


def _sorted(frame: DataFrame, mode: SortMode, partition: list[str], order: list[str]) -> DataFrame:
    if not order:
        return frame
    if mode is SortMode.GLOBAL_SORT:
        return frame.sort(*order)
    if mode is SortMode.PARTITION_PATH_REPARTITION_AND_SORT and partition:
        frame = frame.repartition(*partition)
    return frame.sortWithinPartitions(*order)


def _with_keys(frame: DataFrame, added: dict[str, str], keying: RowKeying) -> DataFrame:
    """The rows with their record keys and partition paths, under the names that `added` gives them."""
    names = tuple(added)
    return with_columns(frame, [StructField(name, StringType()) for name in added.values()], lambda rows: _keys(keying, names, rows))


def _keys(keying: RowKeying, names: tuple[str, ...], rows: pa.Table) -> list[pa.ChunkedArray]:
    try:
        keyed = keying.key(rows)
    except LakehouseError:
        # The write keys these rows again, and reports what is wrong with them.
        return [pa.chunked_array([pa.nulls(rows.num_rows, pa.string())]) for _ in names]
    return [keyed.column(name) for name in names]


def with_columns(frame: DataFrame, fields: Sequence[StructField], made: Callable[[pa.Table], list[pa.ChunkedArray]]) -> DataFrame:
    """The rows with more columns, which `made` computes from them in Python on executors."""
    payload, names = dumps(made), [field.name for field in fields]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        function = pickle.loads(payload)
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            for name, column in zip(names, function(rows), strict=True):
                rows = rows.append_column(name, column)
            yield from rows.to_batches()

    return frame.mapInArrow(run, StructType([*frame.schema.fields, *fields]))
