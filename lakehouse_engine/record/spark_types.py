"""Spark SQL types and their Arrow types, without a session and without PySpark.

Hudi's Avro schemas have no integer below 32 bits: TINYINT and SMALLINT are stored as INT, as in Hudi.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lakehouse_engine.record.types import TIMESTAMP, TIMESTAMP_NTZ


@dataclass(frozen=True, slots=True)
class SparkType:
    """A Spark type without parameters.

    `name` is Spark's print form, `stored` the Arrow type in tables, `also` other SQL spellings, `exact` the Arrow type of its own width if
    different. `class_name` is its class in `pyspark.sql.types`.
    """

    name: str
    stored: pa.DataType
    class_name: str
    also: tuple[str, ...] = ()
    exact: pa.DataType | None = None


SPARK_TYPES = (
    SparkType("boolean", pa.bool_(), "BooleanType"),
    SparkType("tinyint", pa.int32(), "ByteType", ("byte",), pa.int8()),
    SparkType("smallint", pa.int32(), "ShortType", ("short",), pa.int16()),
    SparkType("int", pa.int32(), "IntegerType", ("integer",)),
    SparkType("bigint", pa.int64(), "LongType", ("long",)),
    SparkType("float", pa.float32(), "FloatType", ("real",)),
    SparkType("double", pa.float64(), "DoubleType", ("double precision",)),
    SparkType("string", pa.string(), "StringType"),
    SparkType("binary", pa.binary(), "BinaryType"),
    SparkType("date", pa.date32(), "DateType"),
    SparkType("timestamp", TIMESTAMP, "TimestampType", ("timestamp_ltz",)),
    SparkType("timestamp_ntz", TIMESTAMP_NTZ, "TimestampNTZType"),
)

BY_NAME = {name: kind for kind in SPARK_TYPES for name in (kind.name, *kind.also)}
"""All spellings, in lower case with single blanks."""
BY_ARROW = {kind.exact or kind.stored: kind for kind in SPARK_TYPES}

_SAME = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary(), pa.date64(): pa.date32()}


def spark_name(kind: pa.DataType) -> str:
    """Name that Spark prints for a column of this Arrow type (`simpleString`); Arrow's own for types that Spark lacks."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{item.name}:{spark_name(item.type)}' for item in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{spark_name(kind.key_type)},{spark_name(kind.item_type)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{spark_name(kind.value_type)}>"
    found = BY_ARROW.get(_plain(kind))
    return found.name if found is not None else str(kind)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type in `BY_ARROW` that Spark does not distinguish from this one."""
    if pa.types.is_timestamp(kind):
        return TIMESTAMP if kind.tz else TIMESTAMP_NTZ
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else _SAME.get(kind, kind)
