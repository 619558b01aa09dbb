"""Scan plans as DataFrames, pinned to one instant: Spark's own Parquet reader over the live base files, plus rows from logs.

If Spark may not open the files (`fetched.engine_reads`), the engine does, on the driver or on executors.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from lakehouse_engine.files.base_file import projected_schema
from lakehouse_engine.files.slice_reader import plain
from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.options.read import LOGS_ON_DRIVER
from lakehouse_engine.read.arrow_scan import plan_tasks
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.frames.composed import Composed, checked_here, composed, left_out, united
from lakehouse_engine.spark.frames.decoding import decoded
from lakehouse_engine.spark.frames.fetched import FETCHED, engine_reads
from lakehouse_engine.spark.frames.frame_plan import FramePlan, frame_plan
from lakehouse_engine.spark.frames.logged.merged_files import MOST
from lakehouse_engine.spark.frames.replaced.positions import ROW_NUMBERS
from lakehouse_engine.spark.frames.widened import spark_widens
from lakehouse_engine.spark.schema import to_spark_schema, without_rows
from lakehouse_engine.sql.grammar.lexer import quote_name


def scan(
    spark: SparkSession,
    plan: ScanPlan,
    *,
    columns: Sequence[str] | None = None,
    meta_columns: bool = False,
    options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Like `shared_scan`, with column ids of its own, so that two frames of one table can be joined."""
    read = _with_hidden(plan, columns)
    found, wanted = _scanned(spark, plan, read, meta_columns, None, options), _wanted(plan, read, meta_columns)
    frame = found.wider if isinstance(found, Composed) else found
    return _shown(frame.selectExpr(*(f"{name} as {name}" for name in map(quote_name, wanted.names))), plan)


def shared_scan(
    spark: SparkSession,
    plan: ScanPlan,
    *,
    columns: Sequence[str] | None = None,
    meta_columns: bool = False,
    named: AbstractSet[str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Rows of a plan; later commits do not change them. `columns` as in `read_arrow`. Readers of the same files and logs may get the same
    frame. Spark tells its columns apart if a statement names it twice, but not if frames are joined.

    Logs of up to `lakehouse.read.logs.driver.max.bytes` (in `options`) together are read here and now, unless this process has read the
    same slices before. Their rows are sent to the executors, with bitmaps of the base file rows that they replace. Executors decode larger
    logs when the frame runs; then only columns in `named` (lower case; None: all) may be queried, others fail. Executors also read slices
    of which a plan wants only some rows.

    If the engine reads a table's files for Spark (`lakehouse.read.files`), up to `lakehouse.read.files.driver.max.bytes` of files are read
    here and now, more by executors when the frame runs. Executors also read the whole plan if a column was widened in a way that Spark does
    not read, or has the name of Spark's row number.

    Checksums of footers, page headers and logs that are read here are verified here, unless this process did before; the rest by their
    readers. Raises as `read_arrow`, except for damage that executors find, and as `prepare_executors`.
    """
    named = named if named is None or plan.hidden is None else {*named, plan.hidden.lower()}
    found = _scanned(spark, plan, _with_hidden(plan, columns), meta_columns, named, options)
    return _shown(found.frame if isinstance(found, Composed) else found, plan)


def _with_hidden(plan: ScanPlan, columns: Sequence[str] | None) -> Sequence[str] | None:
    """Columns to read, with the hidden one. Raises `SchemaIncompatibleError` for a column that is not visible."""
    if columns is None or plan.hidden is None:
        return columns
    return [*projected_schema(plan.shown, columns).names, plan.hidden]


def _shown(frame: DataFrame, plan: ScanPlan) -> DataFrame:
    """Rows and columns of the result."""
    if plan.hidden is None:
        return frame
    return frame.where(f"{quote_name(plan.hidden)} is null").drop(plan.hidden)


def _scanned(
    spark: SparkSession,
    plan: ScanPlan,
    columns: Sequence[str] | None,
    meta_columns: bool,
    named: AbstractSet[str] | None,
    options: Mapping[str, Any] | None,
) -> Composed | DataFrame:
    given, wanted = options or {}, _wanted(plan, columns, meta_columns)
    read = [name for name in wanted.names if named is None or plan.wanted is not None or name.lower() in named]
    by_engine = plan.wanted is None and engine_reads(plan.storage, given)
    # All columns of small data are read, so that later statements find what they need.
    fetched = FETCHED.get(spark, plan, wanted, given) if by_engine and wanted.names else None
    if fetched is not None:
        return fetched
    found, known = _frame_plan(spark, plan, given, spark_opens=plan.wanted is None and not by_engine)
    if not found.needs_executors:
        return composed(spark, found, wanted, read, known)
    frames = [_decoded(spark, found.by_executors, wanted, read, given)]
    if found.by_spark.files:
        frames.insert(0, composed(spark, found, wanted, read, known).wider)
    return frames[0] if len(frames) == 1 else united(frames, wanted.names)


def _frame_plan(
    spark: SparkSession, plan: ScanPlan, options: Mapping[str, Any], *, spark_opens: bool
) -> tuple[FramePlan, Mapping[str, Hashable]]:
    """The plan, and `checked_here` of the files that Spark reads."""
    # Spark numbers a file's rows in a column of that name, even if the table has one.
    spark_opens = spark_opens and not (plan.logged and ROW_NUMBERS in {name.lower() for name in plan.schema.names})
    small_to = MOST.stored if plan.logged and abilities_of(spark).takes_files(0) else 0
    found = frame_plan(plan, spark_opens=spark_opens, driver_logs=LOGS_ON_DRIVER.read(options), small_to=small_to)
    known = checked_here(found.by_spark)  # the next reader then knows the footers
    if spark_widens(found.by_spark):
        return found, known
    return frame_plan(plan, spark_opens=False, driver_logs=0, small_to=0), {}


def _wanted(plan: ScanPlan, columns: Sequence[str] | None, meta_columns: bool) -> pa.Schema:
    return plain(projected_schema(plan.schema, columns, meta_columns))


def _decoded(spark: SparkSession, plan: ScanPlan, wanted: pa.Schema, read: Sequence[str], options: Mapping[str, Any]) -> DataFrame:
    """Files and slices of a plan, read by executors, `read` columns only."""
    names = list(read) or ([RECORD_KEY] if plan.reader is None else plan.reader.counted)
    tasks = plan_tasks(plan, names)
    schema = plain(projected_schema(plan.schema, names))
    if not tasks:
        frame = without_rows(spark, to_spark_schema(schema))
    else:
        frame = decoded(spark, plan.storage, tasks, schema, options)
    return frame.select(*(col(quote_name(field.name)) if field.name in read else left_out(field) for field in wanted))
