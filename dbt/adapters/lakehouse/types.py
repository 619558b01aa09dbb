"""Spark SQL's type names to Arrow types and back, so that columns and seeds need no JVM."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.later import Later
from dbt.adapters.lakehouse.names import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = Later("pyarrow")


@cache
def _simple() -> dict[str, pa.DataType]:
    return {
        "string": pa.string(),
        "text": pa.string(),
        "boolean": pa.bool_(),
        "bool": pa.bool_(),
        "tinyint": pa.int32(),
        "byte": pa.int32(),
        "smallint": pa.int32(),
        "short": pa.int32(),
        "int": pa.int32(),
        "integer": pa.int32(),
        "bigint": pa.int64(),
        "long": pa.int64(),
        "float": pa.float32(),
        "real": pa.float32(),
        "double": pa.float64(),
        "double precision": pa.float64(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ltz": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
        "binary": pa.binary(),
        "decimal": pa.decimal128(10, 0),
        "numeric": pa.decimal128(10, 0),
    }


_DECIMAL = re.compile(r"(?:decimal|numeric|dec)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_TEXT = re.compile(r"(?:varchar|character varying)\s*(?:\(\s*(\d+)\s*\))?")
_CHAR = re.compile(r"(?:char|character)\s*(?:\(\s*\d+\s*\))?")


def arrow_type(spark_name: str) -> pa.DataType:
    """The Arrow type of a column type as a user writes it (`decimal(10, 2)`, `varchar(20)`). Raises `DbtConfigError`."""
    name = _plain(spark_name)
    if found := _DECIMAL.fullmatch(name):
        return pa.decimal128(int(found.group(1)), int(found.group(2) or 0))
    if _TEXT.fullmatch(name):
        return pa.string()
    if _CHAR.fullmatch(name):
        raise DbtConfigError(f"The column type '{spark_name}' is not kept: its values would have to be filled up with blanks; use varchar")
    if name not in _simple():
        raise DbtConfigError(f"The column type '{spark_name}' is not one that a seed can have{did_you_mean(name, _simple())}")
    return _simple()[name]


def is_text(spark_name: str) -> bool:
    """Whether a column of this type holds text."""
    name = _plain(spark_name)
    return name in ("string", "text") or _TEXT.fullmatch(name) is not None


def text_length(spark_name: str) -> int | None:
    """The most characters that a column of this type holds; None for any number, and for what is no text."""
    found = _TEXT.fullmatch(_plain(spark_name))
    return int(found.group(1)) if found and found.group(1) else None


def _plain(spark_name: str) -> str:
    """A type as written, without regard to case and blanks."""
    return " ".join(spark_name.lower().split())


_NAMES = (
    ("is_boolean", "boolean"),
    ("is_int8", "tinyint"),
    ("is_int16", "smallint"),
    ("is_int32", "int"),
    ("is_int64", "bigint"),
    ("is_float32", "float"),
    ("is_float64", "double"),
    ("is_date", "date"),
    ("is_string", "string"),
    ("is_large_string", "string"),
    ("is_binary", "binary"),
    ("is_large_binary", "binary"),
    ("is_fixed_size_binary", "binary"),
)


def spark_name(kind: pa.DataType) -> str:
    """The name that Spark prints for a column of this Arrow type (`simpleString`)."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{item.name}:{spark_name(item.type)}' for item in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{spark_name(kind.key_type)},{spark_name(kind.item_type)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{spark_name(kind.value_type)}>"
    for test, name in _NAMES:
        if getattr(pa.types, test)(kind):
            return name
    return str(kind)
