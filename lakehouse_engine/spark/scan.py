"""Scan plans as DataFrames: Spark's own Parquet reader over the live base files, the rows of logs added, pinned to one instant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from threading import Lock

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col

from lakehouse_engine.model.instant import InstantRange
from lakehouse_engine.model.keys import COMMIT_TIME, META_COLUMNS
from lakehouse_engine.read.checked import CHECKED
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.spark.partitions import tells_values
from lakehouse_engine.spark.positions import EFFECTS, SliceEffect, bitmaps_of, without_removed
from lakehouse_engine.spark.schema import to_spark_schema
from lakehouse_engine.spark.sent import SENT
from lakehouse_engine.sql.lexer import quote_name

_ROWS_BELOW, _SETTING = "spark.sql.execution.arrow.localRelationThreshold", Lock()
_VERIFY_PAGES = "parquet.page.verify-checksum.enabled"
_PATTERN = re.compile(r"[{}\[\]*?\\]")


def scan(spark: SparkSession, plan: ScanPlan, *, meta_columns: bool = False) -> DataFrame:
    """The rows of a plan. User columns, with the meta columns in front if asked for; later commits do not change the result.

    The logs of slices are read here and now, by this process, unless it read the same slices before; their rows are sent to the
    executors, and so are bitmaps of the base file rows that they replace. Checksums of logs, footers and page headers are checked here,
    unless this process did before; those of pages by whoever reads them. Raises as `read_arrow`, but for damaged pages.
    """
    meta = pa.schema([pa.field(name, pa.string()) for name in META_COLUMNS])
    stored = pa.schema([*meta, *plan.schema])
    wanted = ([*META_COLUMNS] if meta_columns else []) + plan.schema.names
    effects = _effects(plan)
    whole = [file.path for file in plan.files] + [one.base for one in effects if one.base and not len(one.removed)]
    frames = [_files(spark, plan, stored, whole)] if whole else []
    touched = [one for one in effects if one.base and len(one.removed)]
    if touched:
        files = _files(spark, plan, stored, [str(one.base) for one in touched])
        frames.append(without_removed(files, *SENT.get(spark, touched, ["bitmaps"], lambda: _send_bitmaps(spark, touched))))
    adding = [one for one in effects if one.added.num_rows]
    if adding:
        names = wanted if plan.commit_range is None else list(dict.fromkeys([COMMIT_TIME, *wanted]))
        rows = SENT.get(spark, adding, ["rows", *names], lambda: _send_rows(spark, adding, names))
        # Columns of their own, so that two frames of one table can be joined.
        frames.append(rows.selectExpr(*(f"{quote_name(name)} as {quote_name(name)}" for name in names)))
    if not frames:
        return spark.createDataFrame([], to_spark_schema(stored)).selectExpr(*map(quote_name, wanted))
    if plan.commit_range is not None:
        frames = [frame.where(_within(plan.commit_range)) for frame in frames]
    return reduce(DataFrame.unionAll, [frame.selectExpr(*map(quote_name, wanted)) for frame in frames])


def _effects(plan: ScanPlan) -> list[SliceEffect]:
    if plan.reader is None:
        return []
    meta = META_COLUMNS if plan.reader.has_meta_columns else ()
    return EFFECTS.effects(plan.reader, plan.logged, [*meta, *plan.schema.names])


def _send_bitmaps(spark: SparkSession, effects: Sequence[SliceEffect]) -> tuple[DataFrame, int]:
    bitmaps = bitmaps_of(effects)
    return spark.createDataFrame(bitmaps.rows), bitmaps.salt


def _send_rows(spark: SparkSession, effects: Sequence[SliceEffect], names: Sequence[str]) -> DataFrame:
    rows = pa.concat_tables(one.added.select(names) for one in effects).combine_chunks()
    with _sent_as_batches(spark):
        return spark.createDataFrame(rows, to_spark_schema(rows.schema))


@contextmanager
def _sent_as_batches(spark: SparkSession) -> Iterator[None]:
    """Spark keeps Arrow data as it is, and each query decodes the columns it needs; what is below this size it would turn into rows in each
    plan, all columns of it, on the driver."""
    with _SETTING:
        before = spark.conf.get(_ROWS_BELOW)
        spark.conf.set(_ROWS_BELOW, "0")
        try:
            yield
        finally:
            spark.conf.set(_ROWS_BELOW, str(before))


def _files(spark: SparkSession, plan: ScanPlan, stored: pa.Schema, paths: Sequence[str]) -> DataFrame:
    if plan.verify:
        # Spark's reader checks pages when it is told to, never their headers or the footer.
        CHECKED.check(plan.storage, paths)
    # Spark takes paths for patterns.
    uris = [_PATTERN.sub(r"\\\g<0>", plan.storage.uri(path)) for path in paths]
    reader = spark.read.schema(to_spark_schema(stored))
    if tells_values(plan.rules, paths):
        # Spark takes the partition columns from the directories' names then, opens what a query needs of them, and has them last.
        reader = reader.option("basePath", plan.storage.uri())
    else:
        reader = reader.option("recursiveFileLookup", "true")
    return reader.option(_VERIFY_PAGES, str(plan.verify).lower()).parquet(*uris)


def _within(window: InstantRange) -> Column:
    time = col(COMMIT_TIME)
    parts = [time.isNotNull()]
    if window.begin is not None:
        parts.append(time > window.begin)
    if window.end is not None:
        parts.append(time <= window.end)
    return reduce(lambda left, right: left & right, parts)
