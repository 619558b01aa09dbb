"""What this engine asks of Spark beyond PySpark's public functions: all of it, of classic sessions only.

Each function has a test (tests/spark/test_spark_internals.py) that says since which Spark it is there. Where another Spark has it
otherwise, `MISSING` is raised, and callers go on without.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: TID251 - the one place
from pyspark.sql import DataFrame, SparkSession

MISSING: tuple[type[Exception], ...] = (Py4JError,)


def is_stopped(spark: SparkSession) -> bool:
    """Whether the session's context has let go of its JVM's. Nothing is asked of the JVM."""
    return spark.sparkContext._jsc is None


def file_name_encoding(spark: SparkSession) -> str:
    """The encoding of names of files in the JVM."""
    return str(_jvm(spark).java.lang.System.getProperty("sun.jnu.encoding"))


def with_new_columns(frame: DataFrame) -> DataFrame:
    """The rows in columns that are no other frame's. Names stay in the JVM: each would be a call of its own."""
    rows: Any = frame._jdf
    return type(frame)(rows.toDF(rows.columns()), frame.sparkSession)


def listed_files(frame: DataFrame) -> int:
    """How many files a scan has, which is all of the frame. Their names need not be here, which takes ten times as long."""
    return int(_execution(frame).analyzed().relation().location().allFiles().size())


def is_deterministic(frame: DataFrame) -> bool | None:
    """Whether a query has no `rand()` or the like; None of a frame that has no plan in this process."""
    return bool(_execution(frame).analyzed().deterministic()) if hasattr(frame, "_jdf") else None


def has_python_functions(frame: DataFrame) -> bool:
    """Whether a query, or a view in it, runs functions in Python."""
    pattern = _jvm(frame.sparkSession).org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF()
    return bool(_execution(frame).analyzed().containsPattern(pattern))


def optimized_plan(frame: DataFrame) -> Any:
    """A query's `LogicalPlan`."""
    return _execution(frame).optimizedPlan()


def run(frame: DataFrame) -> tuple[Any, Any]:
    """Run a query up to its last shuffle: its RDD, and the `SparkPlan` that was run."""
    execution = _execution(frame)
    return execution.toRdd(), execution.executedPlan()


def of_rdd(frame: DataFrame, rows: Any) -> DataFrame:
    """A frame with the columns of another one over the rows of an RDD (`run`)."""
    session: Any = frame.sparkSession
    return DataFrame(session._jsparkSession.internalCreateDataFrame(rows, frame._jdf.schema(), False), session)


def has_fixed_width(spark: SparkSession, kind: Any) -> bool:
    """Whether values of a `DataType` of a plan are of one size."""
    return bool(_jvm(spark).org.apache.spark.sql.catalyst.expressions.UnsafeRow.isMutable(kind))


def size_in_memory(spark: SparkSession, value: Any) -> int:
    """About how many bytes an object of the JVM has."""
    return int(_jvm(spark).org.apache.spark.util.SizeEstimator.estimate(value))


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm


def _execution(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution()
