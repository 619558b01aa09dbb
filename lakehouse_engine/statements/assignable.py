"""Types that Spark stores in columns of other types."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, BooleanType, DataType, MapType, StringType, StructType


def may_store(given: DataType, wanted: DataType) -> bool:
    """True if Spark's store assignment converts one type to the other; a value may still not fit."""
    if isinstance(wanted, BooleanType) or (isinstance(given, BooleanType) and not isinstance(wanted, StringType)):
        return given == wanted
    nested = (ArrayType, MapType, StructType)
    return not (isinstance(given, nested) or isinstance(wanted, nested)) or type(given) is type(wanted)
