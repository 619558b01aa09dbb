"""Scan plans as DataFrames: Spark's own Parquet reader over the live base files, the rows of logs added, pinned to one instant."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import broadcast, col

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.model.instant import InstantRange
from lakehouse_engine.model.keys import COMMIT_TIME, META_COLUMNS
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.read.slice_reader import SliceChanges
from lakehouse_engine.spark.schema import to_spark_schema
from lakehouse_engine.sql.lexer import quote_name

_FILE, _ROW = "__file_name", "__row_index"


def scan(spark: SparkSession, plan: ScanPlan, *, meta_columns: bool = False) -> DataFrame:
    """The rows of a plan. User columns, with the meta columns in front if asked for; later commits do not change the result.

    The logs of slices are read here and now, by this process; their rows are sent to the executors, and so are the positions of the
    base file rows that they replace.
    """
    meta = pa.schema([pa.field(name, pa.string()) for name in META_COLUMNS])
    stored = pa.schema([*meta, *plan.schema])
    wanted = ([*META_COLUMNS] if meta_columns else []) + plan.schema.names
    changed = _changed(plan)
    whole = [file.path for file in plan.files] + [base for base, changes in changed if base and not len(changes.removed)]
    frames = [_files(spark, plan, stored, whole)] if whole else []
    touched = [(base, changes) for base, changes in changed if base and len(changes.removed)]
    if touched:
        frames.append(_without_removed(spark, _files(spark, plan, stored, [base for base, _ in touched]), touched))
    added = [changes.added for _, changes in changed if changes.added.num_rows]
    if added:
        # Spark reads nothing behind an empty chunk, so there must be none.
        frames.append(spark.createDataFrame(pa.concat_tables(added).combine_chunks(), to_spark_schema(added[0].schema)))
    if not frames:
        return spark.createDataFrame([], to_spark_schema(stored)).select(*map(_quoted, wanted))
    if plan.commit_range is not None:
        frames = [frame.where(_within(plan.commit_range)) for frame in frames]
    return reduce(DataFrame.unionAll, [frame.select(*map(_quoted, wanted)) for frame in frames])


def _files(spark: SparkSession, plan: ScanPlan, stored: pa.Schema, paths: Sequence[str]) -> DataFrame:
    uris = [plan.storage.uri(path) for path in paths]
    # Without recursiveFileLookup Spark would read partition columns from the directories' names; ours are in the files.
    return spark.read.schema(to_spark_schema(stored)).option("recursiveFileLookup", "true").parquet(*uris)


def _changed(plan: ScanPlan) -> list[tuple[str | None, SliceChanges]]:
    """The base file of every slice with logs, and what they change."""
    if plan.reader is None:
        return []
    reader, columns = plan.reader, [*(META_COLUMNS if plan.reader.has_meta_columns else ()), *plan.schema.names]
    bases = [piece.slice.base_file for piece in plan.logged]
    changes = LocalRunner(os.cpu_count() or 1).run(lambda piece: reader.changes(piece, columns), plan.logged, name="logs")
    return [(base.path if base else None, changed) for base, changed in zip(bases, changes, strict=True)]


def _without_removed(spark: SparkSession, frame: DataFrame, touched: Sequence[tuple[str | None, SliceChanges]]) -> DataFrame:
    """A frame over base files less the rows that logs replace or delete."""
    positions = [(str(base).rpartition("/")[2], changes.removed) for base, changes in touched]
    names = pa.DictionaryArray.from_arrays(
        pa.array(np.repeat(np.arange(len(positions), dtype=np.int32), [len(rows) for _, rows in positions])),
        pa.array([name for name, _ in positions]),
    ).dictionary_decode()
    removed = pa.table({_FILE: names, _ROW: pa.array(np.concatenate([rows for _, rows in positions]))})
    numbered = frame.withColumn(_FILE, col("_metadata.file_name")).withColumn(_ROW, col("_metadata.row_index"))
    return numbered.join(broadcast(spark.createDataFrame(removed)), [_FILE, _ROW], "left_anti")


def _quoted(name: str) -> Column:
    return col(quote_name(name))


def _within(window: InstantRange) -> Column:
    time = col(COMMIT_TIME)
    parts = [time.isNotNull()]
    if window.begin is not None:
        parts.append(time > window.begin)
    if window.end is not None:
        parts.append(time <= window.end)
    return reduce(lambda left, right: left & right, parts)
