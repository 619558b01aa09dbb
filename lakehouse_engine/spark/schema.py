"""Spark types and Arrow types."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark
from pyspark.sql.functions import col, lit

from lakehouse_engine.errors import UnsupportedTypeError
from lakehouse_engine.record.schema import has_untyped, typed_nulls
from lakehouse_engine.record.spark_types import BY_ARROW, SPARK_TYPES
from lakehouse_engine.sql.grammar.lexer import quote_name

_TO_ARROW: dict[type[spark.DataType], pa.DataType] = {
    **{getattr(spark, kind.class_name): kind.stored for kind in SPARK_TYPES},
    spark.CharType: pa.string(),
    spark.VarcharType: pa.string(),
    spark.NullType: pa.null(),
}


def free_name(name: str, columns: Iterable[str]) -> str:
    """The name, or a longer one that no column has, ignoring case like Spark."""
    taken = {column.lower() for column in columns}
    while name in taken:
        name += "_"
    return name


def to_arrow_schema(schema: spark.StructType) -> pa.Schema:
    """Arrow schema of a DataFrame. Raises `UnsupportedTypeError` with the column of a type that no table can hold."""
    return pa.schema([_arrow_field(field, field.name) for field in schema.fields])


def _arrow_field(field: spark.StructField, path: str) -> pa.Field:
    return pa.field(field.name, to_arrow_type(field.dataType, path), field.nullable)


def _item(name: str, kind: spark.DataType, path: str, nullable: bool) -> pa.Field:
    """Spark types `array()` and `map()` as never-null elements of no type, which Arrow refuses."""
    made = to_arrow_type(kind, f"{path}.{name}")
    return pa.field(name, made, nullable or pa.types.is_null(made))


def to_arrow_type(kind: spark.DataType, path: str) -> pa.DataType:
    """The Arrow type of a Spark type; `path` names the column in errors."""
    if isinstance(kind, spark.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, spark.ArrayType):
        return pa.list_(_item("element", kind.elementType, path, kind.containsNull))
    if isinstance(kind, spark.MapType):
        value = _item("value", kind.valueType, path, kind.valueContainsNull)
        key = _item("key", kind.keyType, path, False)
        # Arrow has no keys without a type, as in `map()`.
        return pa.map_(key.with_type(pa.string()).with_nullable(False) if pa.types.is_null(key.type) else key, value)
    if isinstance(kind, spark.StructType):
        return pa.struct([_arrow_field(field, f"{path}.{field.name}") for field in kind.fields])
    found = _TO_ARROW.get(type(kind))
    if found is None:
        raise UnsupportedTypeError(f"a Hudi table cannot hold the column {path!r} of type {kind.simpleString()}; cast it", column=path)
    return found


def without_rows(session: SparkSession, schema: spark.StructType) -> DataFrame:
    """A frame without rows, known as such to Spark's optimizer; an empty list would be an RDD that a job has to read."""
    return session.createDataFrame([], schema).where(lit(False))


def with_nullable_members(frame: DataFrame) -> DataFrame:
    """The rows with nullable struct members and untyped values, whatever the query declares.

    PySpark's `toArrow` fails on a null struct with non-nullable members (`array(named_struct('a', 1), null)`), and on empty lists and maps
    (`array()`), for which Arrow has no non-null type.
    """
    kinds = [(field.name, _loosened(field.dataType)) for field in frame.schema.fields]
    if [kind for _, kind in kinds] == [field.dataType for field in frame.schema.fields]:
        return frame
    # By position: names may be duplicates, or differ only in case.
    numbered = frame.toDF(*map(str, range(len(kinds))))
    return numbered.select(*(col(str(number)).cast(kind).alias(name) for number, (name, kind) in enumerate(kinds)))


def with_types_of(frame: DataFrame, schema: pa.Schema) -> DataFrame:
    """The rows with the table's types where the query has none (`null`, `array()`, `map()`), at every depth."""
    untyped = [field for field in frame.schema.fields if _is_untyped(field.dataType)]
    typed = typed_nulls(to_arrow_schema(spark.StructType(untyped)), schema) if untyped else pa.schema([])
    casts = {field.name: to_spark_type(field.type).simpleString() for field in typed if not has_untyped(field.type)}
    if not casts:
        return frame
    names = [(name, quote_name(name)) for name in frame.columns]
    return frame.selectExpr(*(f"cast({value} as {casts[name]}) as {value}" if name in casts else value for name, value in names))


def _is_untyped(kind: spark.DataType) -> bool:
    if isinstance(kind, spark.StructType):
        return any(_is_untyped(field.dataType) for field in kind.fields)
    if isinstance(kind, spark.MapType):
        return _is_untyped(kind.keyType) or _is_untyped(kind.valueType)
    return _is_untyped(kind.elementType) if isinstance(kind, spark.ArrayType) else isinstance(kind, spark.NullType)


def _loosened(kind: spark.DataType) -> spark.DataType:
    if isinstance(kind, spark.StructType):
        return spark.StructType([spark.StructField(field.name, _loosened(field.dataType), True, field.metadata) for field in kind.fields])
    if isinstance(kind, spark.ArrayType):
        return spark.ArrayType(_loosened(kind.elementType), kind.containsNull or isinstance(kind.elementType, spark.NullType))
    if isinstance(kind, spark.MapType):
        key = spark.StringType() if isinstance(kind.keyType, spark.NullType) else kind.keyType
        return spark.MapType(key, _loosened(kind.valueType), kind.valueContainsNull or isinstance(kind.valueType, spark.NullType))
    return kind


def to_spark_schema(schema: pa.Schema) -> spark.StructType:
    """The Spark schema for a table's canonical Arrow schema; every column nullable."""
    return spark.StructType([spark.StructField(field.name, to_spark_type(field.type), True) for field in schema])


def to_spark_type(kind: pa.DataType) -> spark.DataType:
    """Spark type of a canonical Arrow type."""
    if pa.types.is_decimal(kind):
        return spark.DecimalType(kind.precision, kind.scale)
    if pa.types.is_map(kind):
        return spark.MapType(to_spark_type(kind.key_type), to_spark_type(kind.item_type), True)
    if pa.types.is_list(kind):
        return spark.ArrayType(to_spark_type(kind.value_type), True)
    if pa.types.is_struct(kind):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        return spark.StructType([spark.StructField(field.name, to_spark_type(field.type), True) for field in fields])
    if pa.types.is_dictionary(kind):
        return to_spark_type(kind.value_type)
    found = BY_ARROW.get(kind)
    if found is None:
        raise UnsupportedTypeError(f"there is no Spark type for {kind}")
    made: spark.DataType = getattr(spark, found.class_name)()
    return made
