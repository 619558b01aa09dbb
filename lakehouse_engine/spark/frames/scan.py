"""Scan plans as DataFrames: Spark's own Parquet reader over the live base files, the rows of logs added, pinned to one instant.

Where Spark is not to open the files (`fetched.engine_reads`) the engine does, on the driver or on executors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, lit, raise_error

from lakehouse_engine.files.base_file import projected_schema
from lakehouse_engine.files.checked import CHECKED
from lakehouse_engine.files.slice_reader import plain
from lakehouse_engine.model.instant import InstantRange
from lakehouse_engine.model.keys import COMMIT_TIME, META_COLUMNS, RECORD_KEY
from lakehouse_engine.options.read import LOGS_ON_DRIVER, READ_FILES
from lakehouse_engine.read.arrow_scan import plan_tasks
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.frames.decoding import decoded
from lakehouse_engine.spark.frames.effects import EFFECTS, SliceEffect
from lakehouse_engine.spark.frames.fetched import FETCHED, engine_reads
from lakehouse_engine.spark.frames.partitions import as_path, tells_values
from lakehouse_engine.spark.frames.positions import StayingRows, replaced_of
from lakehouse_engine.spark.frames.scanned import SCANNED, listed_here
from lakehouse_engine.spark.frames.sent import SENT
from lakehouse_engine.spark.schema import to_spark_schema, to_spark_type
from lakehouse_engine.spark.tasks.handshake import ensure_server
from lakehouse_engine.sql.grammar.lexer import quote_name

_VERIFY_PAGES = "parquet.page.verify-checksum.enabled"


def scan(
    spark: SparkSession,
    plan: ScanPlan,
    *,
    columns: Sequence[str] | None = None,
    meta_columns: bool = False,
    named: AbstractSet[str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """The rows of a plan; later commits do not change the result. `columns` as in `read_arrow`.

    Logs of up to `lakehouse.read.logs.driver.max.bytes` (of `options`) together are read here and now, by this process, unless it read
    the same slices before; their rows are sent to the executors, and so are bitmaps of the base file rows that they replace. Larger ones
    are decoded by executors when the frame is run, for which it is good to say what is needed: a query that reads a column whose name in
    lower case is not in `named` (None: all are) fails. Rows that a plan wants only some of are read by executors, too.

    Of a table whose files the engine reads for Spark (`lakehouse.read.files`) all rows come so: up to
    `lakehouse.read.files.driver.max.bytes` of files are read here and now, more by executors when the frame is run.

    Checksums of footers and page headers, and of logs that are read here, are checked here, unless this process did before; all others by
    whoever reads them. Raises as `read_arrow`, but for what is found damaged by executors, and as `prepare_executors`.
    """
    given, wanted = options or {}, plain(projected_schema(plan.schema, columns, meta_columns))
    if plan.wanted is not None:
        return _decoded(spark, plan, wanted, wanted.names, given, files=True)
    read = [name for name in wanted.names if named is None or name.lower() in named]
    if engine_reads(plan.storage, given):
        return _by_engine(spark, plan, wanted, read, given)
    limit = LOGS_ON_DRIVER.read(given)
    if plan.log_size <= limit:
        return _with_effects(spark, plan, wanted.names)
    frames = [_in_range(_files(spark, plan, [file.path for file in plan.files]), plan)] if plan.files else []
    frames.append(_decoded(spark, plan, wanted, read, given, files=False))
    return reduce(DataFrame.unionAll, [_renamed(frame, wanted.names) for frame in frames])


def _by_engine(spark: SparkSession, plan: ScanPlan, wanted: pa.Schema, read: Sequence[str], options: Mapping[str, Any]) -> DataFrame:
    """All of a plan without Spark's reader. Of little all columns are read, so that the next statement finds what it asks for; of more
    only the columns `read`.
    """
    fetched = FETCHED.get(spark, plan, wanted, options) if wanted.names else None
    # Columns of their own, so that two frames of one table can be joined.
    return _decoded(spark, plan, wanted, read, options, files=True) if fetched is None else _renamed(fetched, wanted.names)


def _decoded(
    spark: SparkSession, plan: ScanPlan, wanted: pa.Schema, read: Sequence[str], options: Mapping[str, Any], *, files: bool
) -> DataFrame:
    """The slices of a plan, and its `files`, by executors, which look at the columns `read` only."""
    # Rows without columns could not be counted.
    names = list(read) or _column_to_count(plan)
    tasks = plan_tasks(plan, names, files=files)
    schema = plain(projected_schema(plan.schema, names))
    if not tasks:
        frame = spark.createDataFrame([], to_spark_schema(schema))
    else:
        frame = decoded(spark, plan.storage, tasks, schema, options)
    return frame.select(*(col(quote_name(field.name)) if field.name in read else _left_out(field) for field in wanted))


def _column_to_count(plan: ScanPlan) -> list[str]:
    return [RECORD_KEY] if plan.reader is None else plan.reader.rules.columns(plan.schema, base=True)[:1]


def _left_out(field: pa.Field) -> Column:
    message = (
        f"the column {field.name} was not read, because no name in the statement asks for it; name it there, or let Spark read the files"
        f" ({READ_FILES.key}) and the driver the logs ({LOGS_ON_DRIVER.key})"
    )
    return raise_error(lit(message)).cast(to_spark_type(field.type)).alias(field.name)


def _with_effects(spark: SparkSession, plan: ScanPlan, wanted: Sequence[str]) -> DataFrame:
    effects = _effects(plan)
    kept = [one for one in effects if one.base and one.base not in plan.replaced_only]
    whole = [file.path for file in plan.files] + [str(one.base) for one in kept if not len(one.removed)]
    frames = [_files(spark, plan, whole)] if whole else []
    thinned = [str(one.base) for one in kept if len(one.removed)]
    if thinned:
        touched = [one for one in effects if one.base and len(one.removed)]
        # All that was replaced is sent, so that the next query, which may read other files, finds it there.
        staying = SENT.get(spark, touched, ["replaced"], lambda: _send_replaced(spark, touched))
        frames.append(staying.of_frame(_files(spark, plan, thinned), plan.schema.names))
    adding = [one for one in effects if one.added.num_rows]
    if adding:
        names = list(wanted) if plan.commit_range is None else list(dict.fromkeys([COMMIT_TIME, *wanted]))
        rows = SENT.get(spark, adding, ["rows", *names], lambda: _send_rows(spark, adding, names))
        frames.append(rows)
    if not frames:
        return spark.createDataFrame([], to_spark_schema(_stored(plan))).selectExpr(*map(quote_name, wanted))
    # Columns of their own, so that two frames of one table can be joined.
    return reduce(DataFrame.unionAll, [_renamed(_in_range(frame, plan), wanted) for frame in frames])


def _renamed(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    return frame.selectExpr(*(f"{quote_name(name)} as {quote_name(name)}" for name in names))


def _stored(plan: ScanPlan) -> pa.Schema:
    return pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *plan.schema])


def _in_range(frame: DataFrame, plan: ScanPlan) -> DataFrame:
    return frame if plan.commit_range is None else frame.where(_within(plan.commit_range))


def _effects(plan: ScanPlan) -> list[SliceEffect]:
    if plan.reader is None:
        return []
    meta = META_COLUMNS if plan.reader.has_meta_columns else ()
    return EFFECTS.effects(plan.reader, plan.logged, [*meta, *plan.schema.names])


def _send_replaced(spark: SparkSession, effects: Sequence[SliceEffect]) -> StayingRows:
    replaced = replaced_of(effects)
    # With the schema that Arrow tells, in which no element is null: nothing is looked at for that, row by row.
    return StayingRows.of(spark.createDataFrame(replaced.rows), replaced)


def _send_rows(spark: SparkSession, effects: Sequence[SliceEffect], names: Sequence[str]) -> DataFrame:
    rows = pa.concat_tables(one.added.select(names) for one in effects).combine_chunks()
    return abilities_of(spark).column_frame(rows)


def _files(spark: SparkSession, plan: ScanPlan, paths: Sequence[str]) -> DataFrame:
    if plan.verify:
        # Spark's reader checks pages when it is told to, never their headers or the footer.
        chosen = set(paths)
        CHECKED.check(plan.storage, (file for file in plan.base_files() if file.path in chosen))
        key = plan.storage.root, tuple(paths), _stored(plan), tells_values(plan.rules, paths)
        return SCANNED.get(spark, key, len(paths), lambda: _listed(spark, plan, paths))
    return _listed(spark, plan, paths)


def _listed(spark: SparkSession, plan: ScanPlan, paths: Sequence[str]) -> DataFrame:
    ensure_server(spark, plan.storage)
    uris = [as_path(plan.storage.uri(path)) for path in paths]
    reader = spark.read.schema(to_spark_schema(_stored(plan)))
    if tells_values(plan.rules, paths):
        # Spark takes the partition columns from the directories' names then, opens what a query needs of them, and has them last.
        reader = reader.option("basePath", plan.storage.uri())
    else:
        reader = reader.option("recursiveFileLookup", "true")
    with listed_here(spark):
        return reader.option(_VERIFY_PAGES, str(plan.verify).lower()).parquet(*uris)


def _within(window: InstantRange) -> Column:
    time = col(COMMIT_TIME)
    parts = [time.isNotNull()]
    if window.begin is not None:
        parts.append(time > window.begin)
    if window.end is not None:
        parts.append(time <= window.end)
    return reduce(lambda left, right: left & right, parts)
