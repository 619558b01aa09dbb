"""Avro schema -> Arrow schema, for schemas that any Hudi writer left in commits, properties or footers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakehouse_engine.errors import MetadataError, UnsupportedTypeError
from lakehouse_engine.format.avro.avro_schema import COMMENT_KEY, is_meta_column, load_record, record_fields

_UTC_MICROS = pa.timestamp("us", tz="UTC")
_LOCAL_MICROS = pa.timestamp("us")

_PRIMITIVES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_LOGICAL: dict[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-micros"): _UTC_MICROS,
    ("long", "timestamp-millis"): _UTC_MICROS,
    ("long", "local-timestamp-micros"): _LOCAL_MICROS,
    ("long", "local-timestamp-millis"): _LOCAL_MICROS,
}
# Read without their logical type, these would be bare numbers that mean something else.
_REFUSED_LOGICAL = frozenset({"time-millis", "time-micros", "timestamp-nanos", "local-timestamp-nanos", "duration"})


def avro_to_arrow(text: str, *, drop_meta: bool = False, branches: bool = False) -> pa.Schema:
    """Arrow schema of an Avro record. Every field is nullable, the null of a union may come first or second, milliseconds become
    microseconds.

    `drop_meta` leaves out meta columns. `branches` is for Hudi's own records: a union of several records is a struct with a member for
    each, of which a row has one or none, and times of day are read.

    Raises `MetadataError` if the text is not an Avro record, `UnsupportedTypeError` (with the column's full path) for unions of several
    types, time of day, durations, `fixed` other than decimals, and recursive records.
    """
    fields = _Reader(branches).fields(load_record(text), "", "")
    return pa.schema([field for field in fields if not (drop_meta and is_meta_column(field.name))])


class _Reader:
    """Remembers named types: a schema spells each out once and then refers to it by name."""

    def __init__(self, branches: bool) -> None:
        self._named: dict[str, pa.DataType | None] = {}
        self._branches = branches

    def fields(self, record: dict[str, Any], namespace: str, path: str) -> list[pa.Field]:
        full_name, inner = _full_name(record, namespace)
        # None marks an unfinished record: a reference to it from inside is recursion.
        self._named[full_name] = None
        fields = [self._field(member, inner, path) for member in record_fields(record)]
        self._named[full_name] = pa.struct(fields)
        return fields

    def _field(self, member: dict[str, Any], namespace: str, path: str) -> pa.Field:
        name, doc = member["name"], member.get("doc")
        kind = self._type(member["type"], namespace, f"{path}.{name}" if path else name)
        return pa.field(name, kind, metadata={COMMENT_KEY: doc} if isinstance(doc, str) and doc else None)

    def _type(self, avro: Any, namespace: str, column: str) -> pa.DataType:
        if isinstance(avro, list):
            return self._union(avro, namespace, column)
        if isinstance(avro, str):
            return self._reference(avro, namespace, column)
        if not isinstance(avro, dict) or "type" not in avro:
            raise MetadataError(f"column {column} has an Avro type that does not parse: {avro!r}", column=column)
        return self._complex(avro, namespace, column)

    def _union(self, branches: list[Any], namespace: str, column: str) -> pa.DataType:
        others = [branch for branch in branches if branch != "null"]
        if self._branches and len(others) > 1:
            return pa.struct([pa.field(branch_name(one), self._type(one, namespace, column)) for one in others])
        if len(others) != 1:
            raise _unsupported(column, branches, "a column is null or of one type")
        return self._type(others[0], namespace, column)

    def _reference(self, name: str, namespace: str, column: str) -> pa.DataType:
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        full_name = name if "." in name or not namespace else f"{namespace}.{name}"
        known = full_name if full_name in self._named else name
        found = self._named.get(known)
        if found is None:
            raise _unsupported(column, name, "it is recursive" if known in self._named else "no such type")
        return found

    def _complex(self, avro: dict[str, Any], namespace: str, column: str) -> pa.DataType:
        kind, logical = avro["type"], str(avro.get("logicalType"))
        if self._branches and (kind, logical) == ("long", "time-micros"):
            return pa.time64("us")
        if logical in _REFUSED_LOGICAL:
            raise _unsupported(column, avro, "Spark has no such column type")
        if logical == "decimal" and kind in ("bytes", "fixed"):
            return self._name(avro, namespace, _decimal(avro, column))
        if kind == "record":
            return pa.struct(self.fields(avro, namespace, column))
        if kind == "array":
            return pa.list_(pa.field("element", self._type(avro.get("items"), namespace, f"{column}.element")))
        if kind == "map":
            return pa.map_(pa.string(), self._type(avro.get("values"), namespace, f"{column}.value"))
        if kind == "enum":
            return self._name(avro, namespace, pa.string())
        if isinstance(kind, str) and (kind, logical) in _LOGICAL:
            return _LOGICAL[kind, logical]
        if kind == "fixed":
            raise _unsupported(column, avro, "only decimals are read from it")
        return self._type(kind, namespace, column)

    def _name(self, avro: dict[str, Any], namespace: str, found: pa.DataType) -> pa.DataType:
        if "name" in avro:
            self._named[_full_name(avro, namespace)[0]] = found
        return found


def branch_name(branch: Any) -> str:
    """Name of the struct member for a branch of a union: the record's name without its namespace."""
    name = branch.get("name") if isinstance(branch, dict) else branch
    return str(name).rpartition(".")[2]


def _full_name(avro: dict[str, Any], namespace: str) -> tuple[str, str]:
    """Full name of a named type, and the namespace of the types inside it."""
    name = avro.get("name")
    if not isinstance(name, str) or not name:
        raise MetadataError(f"a named Avro type has no name: {str(avro)[:80]}")
    if "." in name:
        return name, name.rpartition(".")[0]
    own = avro.get("namespace", namespace) or ""
    return (f"{own}.{name}" if own else name), own


def _decimal(avro: dict[str, Any], column: str) -> pa.DataType:
    precision, scale = avro.get("precision"), avro.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 < precision <= 38 or not 0 <= scale <= precision:
        raise _unsupported(column, avro, "a decimal has 1 to 38 digits and a scale from 0 to its precision")
    return pa.decimal128(precision, scale)


def _unsupported(column: str, avro: Any, reason: str) -> UnsupportedTypeError:
    return UnsupportedTypeError(f"column {column} has the Avro type {str(avro)[:120]}: {reason}", column=column)
