"""Small query results, fetched to the driver as Arrow data in the one job that runs the query.

Staging with `mapInArrow` starts Python workers, which is most of the cost of a ten-row query, and nearly all of it the first time. A query
runs once, so it must be known beforehand that its result is small:

 1. by its plan: few rows at most, or little in memory, through operators that make neither more nor wider rows. Spark's estimates
    are not used: they count an exploded column as one row, and a text as 20 bytes.
 2. by a shuffle: if little is read but a join, generator or expression may multiply it, or it is compressed, its rows go through a
    shuffle, whose size is known when it is done. Reading the shuffle, by the driver or by Python workers, does not run the query
    again. The driver accepts eight times as much from a shuffle: staging its rows costs more, because they must be sorted first,
    and their size is no estimate.

Over Spark Connect there is neither plan nor shuffle to inspect: rows are staged by workers that the server keeps for its sessions.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import monotonically_increasing_id

from lakehouse_engine.errors import UnsupportedTypeError
from lakehouse_engine.spark import internals
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.schema import free_name, to_arrow_schema, to_spark_schema, with_nullable_members

logger = logging.getLogger(__name__)

MOST_ROWS = 10_000
"""As many rows as Spark gives a Python worker at once."""
_MOST_WIDE_ROWS = 100
"""Maximum number of rows with values of variable size that are fetched without measuring."""

_PASSING = frozenset({
    *("Aggregate", "ArrowEvalPython", "BatchEvalPython", "Deduplicate", "Distinct", "Except", "Filter", "GlobalLimit", "Intersect"),
    *("LocalLimit", "Offset", "Project", "RebalancePartitions", "Repartition", "RepartitionByExpression", "ResolvedHint", "Sort"),
    *("SubqueryAlias", "Tail", "Union", "View", "Window", "WindowGroupLimit"),
})  # fmt: skip
"""Operators that give at most as many rows as they get (`org.apache.spark.sql.catalyst.plans.logical`)."""

MEASURED = 8
"""Factor between the size limits of a fetched shuffle and of a fetched query's input."""

_MAKING = frozenset({"Expand", "Generate", "Join", "Sample"})
"""Operators that may give more rows than they are given."""

_LEFT_ONLY = frozenset({"LeftSemi", "LeftAnti"})
"""Joins that give each row of their left side at most once."""

_IN_MEMORY = frozenset({"LocalRelation", "OneRowRelation", "Range"})
_ORDER = "__lakehouse_order"
_CANNOT_TELL = 2**63
_NOTHING = -1


def fetched(frame: DataFrame, most_bytes: int, most_measured: int | None = None) -> pa.Table | DataFrame:
    """Rows of a small query, else a frame of the same rows that must run once. `most_bytes` limits the input, `most_measured` rows in a
    shuffle (None: eight times as much).

    Raises what the query raises.
    """
    if not abilities_of(frame.sparkSession).has_plans:
        return frame
    frame = with_nullable_members(frame)
    reads, makes = _reading(frame, most_bytes)
    if reads == _NOTHING:
        return to_arrow_schema(frame.schema).empty_table()
    if reads > most_bytes:
        return frame
    return _measured(frame, MEASURED * most_bytes if most_measured is None else most_measured) if makes else frame.toArrow()


def is_known_empty(frame: DataFrame) -> bool:
    """True if the query's plan shows that it has no rows, for example because all files were excluded. Runs nothing."""
    if not abilities_of(frame.sparkSession).has_plans:
        return False
    try:
        return _most_rows(internals.optimized_plan(frame)) == 0
    except internals.MISSING as error:
        logger.info("whether a query has rows cannot be told by its plan: %s", error)
        return False


@contextmanager
def computed_once(frame: DataFrame, most_bytes: int) -> Iterator[DataFrame]:
    """A frame that computes a query's rows once, so that every read has the same: few rows in this process at once (as `fetched`), others
    by the first read, which Spark caches. Raises what the query raises.
    """
    rows = fetched(frame, most_bytes) if _is_handed_on(frame) else frame
    if isinstance(rows, pa.Table):
        yield abilities_of(frame.sparkSession).frame(rows)
        return
    with _analyzed_once(rows) as analyzed:
        kept = analyzed.persist()
        try:
            yield kept
        finally:
            kept.unpersist()


@contextmanager
def _analyzed_once(frame: DataFrame) -> Iterator[DataFrame]:
    """View over a frame: a Spark Connect server analyses a frame each time, so that `rand()` differs and no cache applies; a view keeps its
    plan.
    """
    session = frame.sparkSession
    if abilities_of(session).has_plans:
        yield frame
        return
    name = f"__lakehouse_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(name)
    try:
        yield session.table(name)
    finally:
        session.catalog.dropTempView(name)


def _is_handed_on(frame: DataFrame) -> bool:
    """True if columns keep their type through Arrow; one with a collation does not."""
    try:
        made = to_spark_schema(to_arrow_schema(frame.schema))
    except UnsupportedTypeError:
        return False  # the writer reports it
    return [one.dataType.simpleString() for one in made] == [one.dataType.simpleString() for one in frame.schema]


def _reading(frame: DataFrame, most_bytes: int) -> tuple[int, bool]:
    """Upper bound of bytes that the query reads, and whether it may multiply rows; `_NOTHING` if its plan shows no rows."""
    if most_bytes <= 0:
        return _CANNOT_TELL, False
    try:
        plan = internals.optimized_plan(frame)
        most = _most_rows(plan)
        if most is None or most > MOST_ROWS:
            return _read_by(frame, plan, most_bytes)
        if not most:
            return _NOTHING, False
        if most <= _MOST_WIDE_ROWS or not _is_wide(frame, plan.output()):
            return 0, False
        read, makes = _read_by(frame, plan, most_bytes)
        return 0, makes or read > most_bytes
    except internals.MISSING as error:
        # Another Spark may name plan parts differently. Errors of a query that cannot be planned appear when it runs.
        logger.info("how much a query gives cannot be told, so that its rows are staged: %s", error)
        return _CANNOT_TELL, False


def _most_rows(plan: Any) -> int | None:
    found = plan.maxRows()
    return int(found.get()) if found.isDefined() else None


def _read_by(frame: DataFrame, plan: Any, most: int) -> tuple[int, bool]:
    name, children = plan.getClass().getSimpleName(), plan.children()
    if not children.size():
        return _leaf(frame, name, plan)
    if name not in _PASSING and name not in _MAKING:
        return _CANNOT_TELL, False
    read, makes = 0, name in _MAKING and not (name == "Join" and plan.joinType().toString() in _LEFT_ONLY)
    makes = makes or (name != "Union" and _is_wide(frame, plan.output(), known=plan.inputSet()))
    for number in range(children.size()):
        below, more = _read_by(frame, children.apply(number), most)
        read, makes = read + below, makes or more
        if read > most:
            return _CANNOT_TELL, False
    return read, makes


def _is_wide(frame: DataFrame, columns: Any, known: Any = None) -> bool:
    """True if a column outside `known` has values of variable size: an expression's result may be wider than its inputs."""
    found = (columns.apply(number) for number in range(columns.size()))
    asked = (column.dataType() for column in found if known is None or not known.contains(column))
    return any(not internals.has_fixed_width(frame.sparkSession, kind) for kind in asked)


def _leaf(frame: DataFrame, name: str, leaf: Any) -> tuple[int, bool]:
    if name == "LogicalRelation":
        # The real size, not a catalog's statistics. Four megabytes of Parquet may hold gigabytes of equal values.
        return int(leaf.relation().sizeInBytes()), True
    if name == "InMemoryRelation" and leaf.cacheBuilder().isCachedColumnBuffersLoaded():
        return int(leaf.stats().sizeInBytes()), False
    if name == "LogicalRDD":
        # Python makes the rows, from a given list or anything that the caller's function does with it.
        return _given(frame, leaf.rdd()), True
    return (int(leaf.stats().sizeInBytes()), False) if name in _IN_MEMORY else (_CANNOT_TELL, False)


def _given(frame: DataFrame, rdd: Any) -> int:
    """Size of an RDD made from a collection in the driver."""
    while rdd.getClass().getSimpleName() in ("MapPartitionsRDD", "PythonRDD"):
        rdd = rdd.dependencies().apply(0).rdd()
    if rdd.getClass().getSimpleName() != "ParallelCollectionRDD":
        return _CANNOT_TELL
    return sum(internals.size_in_memory(frame.sparkSession, part.values()) for part in rdd.partitions())


def _measured(frame: DataFrame, most_bytes: int) -> pa.Table | DataFrame:
    """Run the query into a shuffle; returns its rows in order if they are few, else a frame that reads the shuffle in order."""
    session, order = frame.sparkSession, free_name(_ORDER, frame.columns)
    numbered = frame.withColumn(order, monotonically_increasing_id()).hint("rebalance")
    is_adaptive = str(session.conf.get("spark.sql.adaptive.enabled")).lower() == "true"
    if not is_adaptive or internals.optimized_plan(numbered).getClass().getSimpleName() != "RebalancePartitions":
        return frame  # a session may ignore hints
    rows, plan = internals.run(numbered)
    size, count = _shuffled(plan)
    if count == 0:
        return to_arrow_schema(frame.schema).empty_table()
    if size <= most_bytes:
        return abilities_of(session).handed_over(numbered).sort_by(order).drop_columns([order])
    # Its stages are done, only reading is left. Order matters: of equal keys the last row wins.
    return internals.of_rdd(numbered, rows).orderBy(order).drop(order)


def _shuffled(plan: Any) -> tuple[int, int | None]:
    """Bytes, and rows if known, in the last shuffle of an executed adaptive plan; `_CANNOT_TELL` without one."""
    while plan.getClass().getSimpleName() in ("AdaptiveSparkPlanExec", "ResultQueryStageExec"):
        plan = plan.executedPlan() if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec" else plan.plan()
    name = plan.getClass().getSimpleName()
    if name in ("EmptyRelationExec", "LocalTableScanExec"):
        return 0, 0 if name == "EmptyRelationExec" else None
    while plan.getClass().getSimpleName() != "ShuffleQueryStageExec":
        if plan.children().size() != 1:
            return _CANNOT_TELL, None
        plan = plan.children().apply(0)
    found = plan.getRuntimeStatistics()
    return int(found.sizeInBytes()), int(found.rowCount().get()) if found.rowCount().isDefined() else None
