"""Scan plans as DataFrames: Spark's own Parquet reader over the live base files, pinned to one instant."""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col

from lakehouse_engine.model.instant import InstantRange
from lakehouse_engine.model.keys import COMMIT_TIME, META_COLUMNS
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.spark.schema import to_spark_schema


def scan(spark: SparkSession, plan: ScanPlan, *, meta_columns: bool = False) -> DataFrame:
    """The rows of a plan. User columns, with the meta columns in front if asked for; later commits do not change the result."""
    meta = pa.schema([pa.field(name, pa.string()) for name in META_COLUMNS])
    stored = to_spark_schema(pa.schema([*meta, *plan.schema]))
    wanted = ([*META_COLUMNS] if meta_columns else []) + plan.schema.names
    if not plan.files:
        return spark.createDataFrame([], stored).select(*map(_quoted, wanted))
    paths = [plan.storage.uri(file.path) for file in plan.files]
    # Without recursiveFileLookup Spark would read partition columns from the directories' names; ours are in the files.
    frame = spark.read.schema(stored).option("recursiveFileLookup", "true").parquet(*paths)
    if plan.commit_range is not None:
        frame = frame.where(_within(plan.commit_range))
    return frame.select(*map(_quoted, wanted))


def _quoted(name: str) -> Column:
    return col("`" + name.replace("`", "``") + "`")


def _within(window: InstantRange) -> Column:
    time = col(COMMIT_TIME)
    parts = [time.isNotNull()]
    if window.begin is not None:
        parts.append(time > window.begin)
    if window.end is not None:
        parts.append(time <= window.end)
    return reduce(lambda left, right: left & right, parts)
