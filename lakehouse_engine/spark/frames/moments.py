"""`TIMESTAMP AS OF <expression>` and bounds of changes: Spark computes the expression once, before anything is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import DateType, StringType, TimestampNTZType, TimestampType

from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import UnsupportedSqlError

Arguments = Sequence[Any] | Mapping[str, Any] | None
"""Values of a statement's parameters, by position or name."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment_of_literal(spark: SparkSession, text: str) -> int:
    """Microseconds since 1970 of `timestamp <text>` in the session. Raises `PySparkException` for an invalid text."""
    # With spark.sql.timestampType=TIMESTAMP_NTZ a literal without an offset is cast where it meets a column, as it is here.
    # Rows of `values` are computed by the optimizer, without a job.
    [row] = spark.sql(f"select unix_micros(cast(timestamp {text} as timestamp)) from values (1)").collect()
    return int(row[0])


def computed_moment(spark: SparkSession, expression: str, args: Arguments, said: str) -> str | datetime:
    """A moment, or the text that the expression gives, which is read like a literal. A date means its start in the session's time zone.

    Raises `UnsupportedSqlError` if the value depends on more than constants (columns, `rand()`), is null, or is not a timestamp, date or
    text. `said` is the clause or call of the statement, for these errors.
    """
    named = dict(args) if isinstance(args, Mapping) else {}
    # Computed twice in one query: an expression with two values is not a moment.
    text = f"select ({expression}) as moment, ({expression}) as again"
    try:
        frame = spark.sql(text, args=named) if named else spark.sql(text)
    except PySparkException as error:
        reason = str(error).strip().split("\n")[0]
        raise UnsupportedSqlError(f"{said}: an expression without columns is expected there; Spark says: {reason}") from error
    kind = frame.schema["moment"].dataType
    is_text = isinstance(kind, StringType)
    if not is_text and not isinstance(kind, (DateType, TimestampType, TimestampNTZType)):
        raise UnsupportedSqlError(f"{said} is of type {kind.simpleString()}: a timestamp, a date or a text is expected there")
    if not is_text:
        frame = frame.selectExpr(*(f"unix_micros(cast({name} as timestamp)) as {name}" for name in ("moment", "again")))
    moment, again = (column[0].as_py() for column in frame.toArrow().columns)
    if moment is None:
        raise UnsupportedSqlError(f"{said} is null")
    if moment != again:
        raise UnsupportedSqlError(f"{said} gives another value each time; write one that does not change within a statement")
    return str(moment) if is_text else _EPOCH + timedelta(microseconds=moment)
