"""`PARTITION (column = value, ...)` of a statement, with values as the columns hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql.functions import col, lit
from pyspark.sql.types import NumericType

from lakehouse_engine.errors import PartitionValueError, SqlError
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.spark.schema import to_spark_type
from lakehouse_engine.sql.grammar.statements import Insert, Value
from lakehouse_engine.statements.context import Execution, Target

Clause = tuple[tuple[str, Value], ...]


def check_clause(statement: Insert, config: TableConfig) -> None:
    """Raise `SqlError` for a column of the clause that is not a partition column, or is there twice."""
    names = [*(name for name, _ in statement.partition), *statement.dynamic]
    known = {name.lower() for name in config.partition_fields}
    unknown = next((name for name in names if name.lower() not in known), None)
    if unknown is not None:
        has = f"its partition columns are {', '.join(config.partition_fields)}" if known else "it has no partitions"
        raise SqlError(f"PARTITION names {unknown!r}, which is no partition column of {config.name}: {has}", column=unknown)
    _check_once(names)


def _check_once(names: Sequence[str]) -> None:
    seen = [name.lower() for name in names]
    twice = next((name for number, name in enumerate(names) if name.lower() in seen[:number]), None)
    if twice is not None:
        raise SqlError(f"PARTITION names {twice!r} twice", column=twice)


def partition_of(run: Execution, table: Target, clause: Clause) -> Mapping[str, pa.Scalar]:
    """The clause's partition, as a write takes it.

    Values are cast like in Spark. Raises `PartitionValueError` for one that its column cannot hold, `SqlError` for a column named twice.
    """
    _check_once([name for name, _ in clause])
    schema = table.schema
    fields = {name.lower(): name for name in table.config.partition_fields}
    found: dict[str, pa.Scalar] = {}
    for name, value in clause:
        own = fields.get(name.lower(), name)
        index = schema.get_field_index(own)
        found[own] = pa.scalar(value) if index < 0 else _held(run, value, schema.field(index))
    return found


def _held(run: Execution, value: Value, field: pa.Field) -> pa.Scalar:
    if value is None or (isinstance(value, str) and pa.types.is_string(field.type)):
        return pa.scalar(value, field.type)
    kind = to_spark_type(field.type)
    try:
        given = lit(value)
        made = run.spark.range(1).select(given.alias("given"), given.try_cast(kind).alias("made"))
        is_number = isinstance(made.schema.fields[0].dataType, NumericType) and isinstance(kind, NumericType)
        row = made.select("made", _same(is_number, made.schema.fields[0].dataType.simpleString()).alias("same")).toArrow()
    except PySparkException as error:
        raise _refused(field, value) from error
    scalar = row.column("made")[0]
    if not scalar.is_valid or not row.column("same")[0].as_py():
        raise _refused(field, value)
    return scalar.cast(field.type)


def _same(is_number: bool, kind: str) -> Column:
    """True if the number is exactly the given one; none is truncated to fit."""
    return col("made").try_cast(kind).eqNullSafe(col("given")) if is_number else lit(True)


def _refused(field: pa.Field, value: Any) -> PartitionValueError:
    kind = to_spark_type(field.type).simpleString()
    shown = repr(value) if isinstance(value, str) else str(value)
    return PartitionValueError(f"{shown} is no value of the partition column {field.name!r}, which is {kind}", column=field.name)
