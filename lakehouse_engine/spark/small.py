"""Queries that give little: their rows come to the driver as Arrow data, in the one job that runs the query.

Staging by `mapInArrow` starts Python workers, which is most of what a query of ten rows costs, and nearly all of it the first time. But a
query runs once, and what was fetched cannot be given back, so that it has to be known before that it is small:

 1. by its plan: few rows at most, or little in memory, by operators that make neither more rows nor wider ones of it. Spark's estimates
    are not asked: it takes an exploded column for one row, and a text for 20 bytes.
 2. by what came of it: where little is read but a join, a generator or an expression may make much of it, or it is compressed, its rows
    go through a shuffle, whose size is known when it is done. Whoever reads the shuffle then, driver or Python workers, does not run the
    query again. The driver takes eight times as much of it as of what is only known by its plan: rows that are in a shuffle already are
    dearer to stage, since they have to be sorted first, and their size is no estimate.

Over Spark Connect there is neither plan nor shuffle to look at: rows are staged, by workers that the server keeps for its sessions.
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
"""As many rows as Spark hands to a Python worker at once."""
_MOST_WIDE_ROWS = 100
"""As many rows with texts or other values of any size as are fetched unmeasured."""

_PASSING = frozenset({
    *("Aggregate", "ArrowEvalPython", "BatchEvalPython", "Deduplicate", "Distinct", "Except", "Filter", "GlobalLimit", "Intersect"),
    *("LocalLimit", "Offset", "Project", "RebalancePartitions", "Repartition", "RepartitionByExpression", "ResolvedHint", "Sort"),
    *("SubqueryAlias", "Tail", "Union", "View", "Window", "WindowGroupLimit"),
})  # fmt: skip
"""Operators that give at most the rows that they are given (`org.apache.spark.sql.catalyst.plans.logical`)."""

MEASURED = 8
"""How many times as much a shuffle may hold as a query may read, for its rows to be fetched."""

_MAKING = frozenset({"Expand", "Generate", "Join", "Sample"})
"""Operators that may give more rows than they are given."""

_LEFT_ONLY = frozenset({"LeftSemi", "LeftAnti"})
"""Joins that give each row of their left side at most once."""

_IN_MEMORY = frozenset({"LocalRelation", "OneRowRelation", "Range"})
_ORDER = "__lakehouse_order"
_CANNOT_TELL = 2**63
_NOTHING = -1


def fetched(frame: DataFrame, most_bytes: int, most_measured: int | None = None) -> pa.Table | DataFrame:
    """The rows of a query that gives few, else a frame of the same rows, to be run once. `most_bytes`: what counts as little to be read,
    `most_measured` what does of rows in a shuffle (None: eight times as much).

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
    """True where the plan of a query says that it has no rows, as that of one over files that were all ruled out: nothing is run."""
    if not abilities_of(frame.sparkSession).has_plans:
        return False
    try:
        return _most_rows(frame) == 0
    except internals.MISSING as error:
        logger.info("whether a query has rows cannot be told by its plan: %s", error)
        return False


@contextmanager
def computed_once(frame: DataFrame, most_bytes: int) -> Iterator[DataFrame]:
    """A frame of a query's rows that computes them once, so that each reading of it has the same: of few (as `fetched`) in this process,
    before anything is asked of them, else by the first reading, in what Spark keeps meanwhile. Raises what the query raises.
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
    """A Spark Connect server analyzes a frame each time that it meets it, so that `rand()` is another one, of which nothing is kept. Of a
    view it has the plan.
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
    """Whether columns that come back as Arrow data are of the types that they were of: one with a collation is not."""
    try:
        made = to_spark_schema(to_arrow_schema(frame.schema))
    except UnsupportedTypeError:
        return False  # whoever writes them says so
    return [one.dataType.simpleString() for one in made] == [one.dataType.simpleString() for one in frame.schema]


def _reading(frame: DataFrame, most_bytes: int) -> tuple[int, bool]:
    """At most how many bytes the query reads, and whether it may make more rows of them; `_NOTHING` of one that has no rows by its plan."""
    if most_bytes <= 0:
        return _CANNOT_TELL, False
    try:
        plan, most = internals.optimized_plan(frame), _most_rows(frame)
        if most is None or most > MOST_ROWS:
            return _read_by(frame, plan, most_bytes)
        if not most:
            return _NOTHING, False
        if most <= _MOST_WIDE_ROWS or not _is_wide(frame, plan.output()):
            return 0, False
        read, makes = _read_by(frame, plan, most_bytes)
        return 0, makes or read > most_bytes
    except internals.MISSING as error:
        # Another Spark may name the parts of a plan otherwise; of a query that cannot be planned it is said where it runs.
        logger.info("how much a query gives cannot be told, so that its rows are staged: %s", error)
        return _CANNOT_TELL, False


def _most_rows(frame: DataFrame) -> int | None:
    found = internals.optimized_plan(frame).maxRows()
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
    """Whether a column that is none of `known` has values of any size: what an expression made may be wider than what it was made of."""
    found = (columns.apply(number) for number in range(columns.size()))
    asked = (column.dataType() for column in found if known is None or not known.contains(column))
    return any(not internals.has_fixed_width(frame.sparkSession, kind) for kind in asked)


def _leaf(frame: DataFrame, name: str, leaf: Any) -> tuple[int, bool]:
    if name == "LogicalRelation":
        # What is there, not what a catalog remembers of it. Four megabytes of Parquet may hold gigabytes of equal values.
        return int(leaf.relation().sizeInBytes()), True
    if name == "InMemoryRelation" and leaf.cacheBuilder().isCachedColumnBuffersLoaded():
        return int(leaf.stats().sizeInBytes()), False
    if name == "LogicalRDD":
        # Python makes the rows, of a list that was given or of anything else that a caller's function makes of it.
        return _given(frame, leaf.rdd()), True
    return (int(leaf.stats().sizeInBytes()), False) if name in _IN_MEMORY else (_CANNOT_TELL, False)


def _given(frame: DataFrame, rdd: Any) -> int:
    """The size of what lies in the driver of an RDD made of a collection."""
    while rdd.getClass().getSimpleName() in ("MapPartitionsRDD", "PythonRDD"):
        rdd = rdd.dependencies().apply(0).rdd()
    if rdd.getClass().getSimpleName() != "ParallelCollectionRDD":
        return _CANNOT_TELL
    return sum(internals.size_in_memory(frame.sparkSession, part.values()) for part in rdd.partitions())


def _measured(frame: DataFrame, most_bytes: int) -> pa.Table | DataFrame:
    """Run the query into a shuffle; its rows in their order if they are few, else a frame that reads the shuffle, in that order too."""
    session, order = frame.sparkSession, free_name(_ORDER, frame.columns)
    numbered = frame.withColumn(order, monotonically_increasing_id()).hint("rebalance")
    is_adaptive = str(session.conf.get("spark.sql.adaptive.enabled")).lower() == "true"
    if not is_adaptive or internals.optimized_plan(numbered).getClass().getSimpleName() != "RebalancePartitions":
        return frame  # a session may take no hints
    rows, plan = internals.run(numbered)
    size, count = _shuffled(plan)
    if count == 0:
        return to_arrow_schema(frame.schema).empty_table()
    if size <= most_bytes:
        return abilities_of(session).handed_over(numbered).sort_by(order).drop_columns([order])
    # Its stages are done: what is left is to read them. Of equal keys the last row counts, so that the order is that of all rows.
    return internals.of_rdd(numbered, rows).orderBy(order).drop(order)


def _shuffled(plan: Any) -> tuple[int, int | None]:
    """Bytes, and rows where that is known, that the last shuffle of a run adaptive plan holds; `_CANNOT_TELL` for a plan without one."""
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
