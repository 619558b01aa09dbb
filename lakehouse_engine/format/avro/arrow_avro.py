"""Arrow schema -> Avro schema, with the names that Spark and Hudi use (hudi-format 4.3; Hudi `AvroConversionUtils`).

Every column, struct field, array element and map value is a union `["null", T]` (a field with default null), also if Arrow says not
nullable: Hudi treats all of them as optional, and its compaction cannot take `[T, "null"]`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from lakehouse_engine.errors import SchemaIncompatibleError, UnsupportedTypeError
from lakehouse_engine.format.avro.avro_arrow import avro_to_arrow
from lakehouse_engine.format.avro.avro_schema import COMMENT_KEY, dump_schema, sanitize_name, with_meta_columns, without_meta_columns

__all__ = [
    "arrow_to_avro",
    "avro_to_arrow",
    "decimal_size",
    "sanitize_name",
    "table_avro_schema",
    "with_meta_columns",
    "without_meta_columns",
]

_MAX_PRECISION = 38

_PLAIN: tuple[tuple[Callable[[pa.DataType], bool], Any], ...] = (
    (pat.is_boolean, "boolean"),
    (pat.is_int8, "int"),
    (pat.is_int16, "int"),
    (pat.is_int32, "int"),
    (pat.is_int64, "long"),
    (pat.is_float32, "float"),
    (pat.is_float64, "double"),
    (pat.is_string, "string"),
    (pat.is_large_string, "string"),
    (pat.is_binary, "bytes"),
    (pat.is_large_binary, "bytes"),
    (pat.is_date32, {"type": "int", "logicalType": "date"}),
)


def table_avro_schema(table_name: str, schema: pa.Schema, *, allow_timestamp_ntz: bool = False) -> str:
    """Avro schema of a table's commits: record `<table>_record`, namespace `hoodie.<table>` (`getAvroRecordNameAndNamespace`).

    Raises as `arrow_to_avro`.
    """
    name = sanitize_name(table_name)
    return arrow_to_avro(schema, f"{name}_record", f"hoodie.{name}", allow_timestamp_ntz=allow_timestamp_ntz)


def arrow_to_avro(schema: pa.Schema, record_name: str, namespace: str, *, allow_timestamp_ntz: bool = False) -> str:
    """Avro JSON text, on one line. Raises `UnsupportedTypeError` for a type that Hudi cannot hold, and `SchemaIncompatibleError` for a name
    that Avro does not take; both name the column by its full path.

    `allow_timestamp_ntz` allows timestamps without zone, which only Hudi 1.x reads.
    """
    converter = _Converter(allow_timestamp_ntz)
    return dump_schema(converter.record(list(schema), record_name, namespace, ""))


def decimal_size(precision: int) -> int:
    """Bytes of the smallest two's complement `fixed` that holds every value of this precision (Spark `minBytesForPrecision`)."""
    return (int(10**precision - 1).bit_length() + 8) // 8


class _Converter:
    """Converts a type tree under one set of options. `path` is the dotted column, for messages."""

    def __init__(self, allow_timestamp_ntz: bool) -> None:
        self._allow_timestamp_ntz = allow_timestamp_ntz

    def record(self, fields: list[pa.Field], name: str, namespace: str, path: str) -> dict[str, Any]:
        """Avro record of these fields. Nested types get the namespace `<namespace>.<name>`, which keeps every full name unique."""
        inner = f"{namespace}.{name}" if namespace else name
        members = []
        for field in fields:
            column = f"{path}.{field.name}" if path else field.name
            _check_name(field.name, column)
            avro = self._nullable(field.type, field.name, inner, column)
            members.append({"name": field.name, "type": avro, **_doc(field), "default": None})
        head = {"type": "record", "name": name} | ({"namespace": namespace} if namespace else {})
        return {**head, "fields": members}

    def _nullable(self, kind: pa.DataType, name: str, namespace: str, column: str) -> list[Any]:
        return ["null", self._type(kind, name, namespace, column)]

    def _type(self, kind: pa.DataType, name: str, namespace: str, column: str) -> Any:
        for matches, avro in _PLAIN:
            if matches(kind):
                return avro
        if pat.is_decimal(kind):
            return _decimal(kind, name, namespace, column)
        if pat.is_timestamp(kind):
            return self._timestamp(kind, column)
        if pat.is_list(kind) or pat.is_large_list(kind):
            return {"type": "array", "items": self._nullable(kind.value_type, name, namespace, f"{column}.element")}
        if pat.is_map(kind):
            return self._map(kind, name, namespace, column)
        if pat.is_struct(kind):
            return self.record(list(kind), name, namespace, column)
        raise _unsupported(kind, column, "Spark and Hudi have no such column type; cast it")

    def _timestamp(self, kind: pa.DataType, column: str) -> dict[str, Any]:
        if kind.unit != "us":
            raise _unsupported(kind, column, "timestamps are stored in microseconds; cast it")
        if kind.tz is not None:
            return {"type": "long", "logicalType": "timestamp-micros"}
        if not self._allow_timestamp_ntz:
            raise _unsupported(
                kind, column, "Hudi 0.15 and hudi-rs cannot read timestamps without zone; cast it to timestamp, or set"
                " lakehouse.allow.timestamp.ntz=true for a table that only Hudi 1.x reads",
            )  # fmt: skip
        return {"type": "long", "logicalType": "local-timestamp-micros"}

    def _map(self, kind: pa.DataType, name: str, namespace: str, column: str) -> dict[str, Any]:
        if not (pat.is_string(kind.key_type) or pat.is_large_string(kind.key_type)):
            raise _unsupported(kind, column, "Avro maps have string keys only; use an array of structs")
        return {"type": "map", "values": self._nullable(kind.item_type, name, namespace, f"{column}.value")}


def _decimal(kind: pa.DataType, name: str, namespace: str, column: str) -> dict[str, Any]:
    precision, scale = int(kind.precision), int(kind.scale)
    if precision > _MAX_PRECISION or not 0 <= scale <= precision:
        raise _unsupported(kind, column, f"a decimal has at most {_MAX_PRECISION} digits, and a scale from 0 to its precision")
    head = {"type": "fixed", "name": "fixed", "namespace": f"{namespace}.{name}", "size": decimal_size(precision)}
    return {**head, "logicalType": "decimal", "precision": precision, "scale": scale}


def _doc(field: pa.Field) -> dict[str, str]:
    """The Avro `doc` of a column's comment, which Arrow keeps in the field's metadata under Spark's key."""
    comment = (field.metadata or {}).get(COMMENT_KEY)
    return {"doc": comment.decode("utf-8")} if comment else {}


def _check_name(name: str, column: str) -> None:
    """Check a name by Java Avro's rule: a letter (of any script) or underscore first, then digits too."""
    if not name.replace("_", "a").isalnum() or not (name[0].isalpha() or name[0] == "_"):
        raise SchemaIncompatibleError(
            f"column name {name!r}: Avro takes letters, digits and underscores, no digit first; rename it", column=column
        )


def _unsupported(kind: pa.DataType, column: str, advice: str) -> UnsupportedTypeError:
    return UnsupportedTypeError(f"column {column} has type {kind}: {advice}", column=column, type=kind)
