"""Everything that this engine asks of Spark beyond PySpark's public functions; classic sessions only.

Each function has a test (tests/spark/test_spark_internals.py) that names the first Spark release with it. On another Spark it raises
`MISSING`, and callers continue without.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: TID251 - the one place
from pyspark.sql import DataFrame, SparkSession

MISSING: tuple[type[Exception], ...] = (Py4JError,)


def is_stopped(spark: SparkSession) -> bool:
    """True if the session's context has released its JVM. Sends no request to the JVM."""
    return spark.sparkContext._jsc is None


def file_name_encoding(spark: SparkSession) -> str:
    """Encoding of file names in the JVM."""
    return str(_jvm(spark).java.lang.System.getProperty("sun.jnu.encoding"))


def with_new_columns(frame: DataFrame) -> DataFrame:
    """The rows with column ids of their own. Names stay in the JVM, because each would be a call."""
    rows: Any = frame._jdf
    return type(frame)(rows.toDF(rows.columns()), frame.sparkSession)


def listed_files(frame: DataFrame) -> int:
    """Number of files in a frame that is only a scan. Fetching their names would take ten times as long."""
    return int(_execution(frame).analyzed().relation().location().allFiles().size())


def is_deterministic(frame: DataFrame) -> bool | None:
    """True if a query has no `rand()` or the like; None for a frame without a plan in this process."""
    return bool(_execution(frame).analyzed().deterministic()) if hasattr(frame, "_jdf") else None


def has_python_functions(frame: DataFrame) -> bool:
    """True if a query, or a view in it, runs Python functions."""
    pattern = _jvm(frame.sparkSession).org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF()
    return bool(_execution(frame).analyzed().containsPattern(pattern))


def optimized_plan(frame: DataFrame) -> Any:
    """A query's `LogicalPlan`."""
    return _execution(frame).optimizedPlan()


def run(frame: DataFrame) -> tuple[Any, Any]:
    """Run a query up to its last shuffle; returns its RDD, and the `SparkPlan` that was run."""
    execution = _execution(frame)
    return execution.toRdd(), execution.executedPlan()


def of_rdd(frame: DataFrame, rows: Any) -> DataFrame:
    """Frame with the columns of another one over the rows of an RDD (`run`)."""
    session: Any = frame.sparkSession
    return DataFrame(session._jsparkSession.internalCreateDataFrame(rows, frame._jdf.schema(), False), session)


def has_fixed_width(spark: SparkSession, kind: Any) -> bool:
    """True if values of a plan's `DataType` have a fixed size."""
    return bool(_jvm(spark).org.apache.spark.sql.catalyst.expressions.UnsafeRow.isMutable(kind))


def size_in_memory(spark: SparkSession, value: Any) -> int:
    """Approximate size of a JVM object in bytes."""
    return int(_jvm(spark).org.apache.spark.util.SizeEstimator.estimate(value))


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm


def _execution(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution()
