"""Spark DataFrames: their types in tables, and their rows, stored and handed over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from lakehouse_engine.errors import UnsupportedTypeError
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.spark.collect_small import computed_once as once
from lakehouse_engine.spark.collect_small import is_known_empty
from lakehouse_engine.spark.frames.stashed import stash
from lakehouse_engine.spark.schema import to_arrow_type, to_spark_type, with_nullable_members, with_types_of
from lakehouse_engine.spark.settings import AS_STORED
from lakehouse_engine.statements.members import Members, members
from lakehouse_engine.storage.base import Storage

__all__ = ["Members", "computed_once", "fetched", "is_known_empty", "keep_rows", "members", "stored_name", "with_types_of"]


def fetched(frame: DataFrame) -> pa.Table:
    """All rows of a frame, fetched into this process."""
    return with_nullable_members(frame).toArrow()


def stored_name(kind: DataType) -> str:
    """A table's type name for a column of this type: TINYINT and SMALLINT are stored as INT, texts without collation. The original name if
    no table can hold it.
    """
    try:
        return to_spark_type(to_arrow_type(kind, "")).simpleString()
    except UnsupportedTypeError:
        return kind.simpleString()


def computed_once(rows: DataFrame, given: Mapping[str, Any]) -> AbstractContextManager[DataFrame]:
    """A frame that computes the rows of another one once, for the duration of the context. `given` are options of writes."""
    return once(rows, WriteOptions.read(given).driver_bytes)


def keep_rows(rows: DataFrame, storage: Storage, folder: str) -> Callable[[SparkSession], DataFrame]:
    """Store the rows in a folder of a storage, so that another session can read them."""
    if storage.local_path() is None:
        return stash(rows, storage, folder)
    kept, schema = storage.uri(folder), rows.schema
    rows.write.parquet(kept)
    return lambda spark: spark.read.schema(schema).options(**AS_STORED).parquet(kept)
