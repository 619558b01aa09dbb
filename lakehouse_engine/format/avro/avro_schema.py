"""Avro schema text of tables: meta columns, names."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from lakehouse_engine.errors import MetadataError
from lakehouse_engine.model.keys import META_COLUMNS

COMMENT_KEY = b"comment"
_NOT_IN_AVRO_NAME = re.compile(r"[^A-Za-z0-9_]")


def load_record(avro_json: str) -> dict[str, Any]:
    """The parsed schema text. Raises `MetadataError` unless it is a record whose fields have names and types."""
    try:
        record = json.loads(avro_json)
    except (ValueError, RecursionError) as error:
        raise MetadataError(f"an Avro schema does not parse as JSON: {error}") from error
    if not isinstance(record, dict) or record.get("type") != "record":
        raise MetadataError(f"a table's Avro schema is a record, not {avro_json[:80]!r}")
    record_fields(record)
    return record


def record_fields(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The fields of a record, top-level or nested. Raises `MetadataError` if one has no name or type."""
    fields = record.get("fields")
    if not isinstance(fields, list):
        raise MetadataError(f"an Avro record has no fields: {str(record)[:80]}")
    for field in fields:
        if not isinstance(field, dict) or not isinstance(field.get("name"), str) or "type" not in field:
            raise MetadataError(f"a field of an Avro schema needs a name and a type: {field!r}")
    return fields


_REFERRING = ("type", "items", "values")


def inlined(record: dict[str, Any]) -> dict[str, Any]:
    """The same record with every named type spelled out at each use; no type may be recursive."""
    named: dict[str, Any] = {}

    def spelled(avro: Any, namespace: str) -> Any:
        if isinstance(avro, list):
            return [spelled(member, namespace) for member in avro]
        if isinstance(avro, str):
            return named.get(avro if "." in avro or not namespace else f"{namespace}.{avro}", avro)
        inner = str(avro.get("namespace", namespace) or "")
        found = {**avro, **{key: spelled(avro[key], inner) for key in _REFERRING if key in avro}}
        if isinstance(avro.get("fields"), list):
            found["fields"] = [{**member, "type": spelled(member["type"], inner)} for member in avro["fields"]]
        if isinstance(avro.get("name"), str):
            name = avro["name"]
            named[name if "." in name or not inner else f"{inner}.{name}"] = found
        return found

    whole: dict[str, Any] = spelled(record, "")
    return whole


def dump_schema(value: Any) -> str:
    """Schema text on one line, as Java's `Schema.toString`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def is_meta_column(name: str) -> bool:
    """True for the five meta columns and Flink's `_hoodie_operation`. `_hoodie_is_deleted` is the user's column."""
    return name in META_COLUMNS or name == "_hoodie_operation"


def with_meta_columns(avro_json: str) -> str:
    """The same record with the five meta columns first, each once (as `HoodieAvroUtils.addMetadataFields`).

    Raises `MetadataError` if the text is not an Avro record.
    """
    record = json.loads(without_meta_columns(avro_json))
    meta = [{"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in META_COLUMNS]
    return dump_schema({**record, "fields": meta + record["fields"]})


def without_meta_columns(avro_json: str) -> str:
    """The same record without meta columns. Raises `MetadataError` if the text is not an Avro record."""
    record = load_record(avro_json)
    return dump_schema({**record, "fields": [field for field in record["fields"] if not is_meta_column(field["name"])]})


def without_columns(avro_json: str, names: Collection[str]) -> str:
    """The same record without the fields of these names. Raises `MetadataError` if the text is not an Avro record."""
    record = load_record(avro_json)
    return dump_schema({**record, "fields": [field for field in record["fields"] if field["name"] not in names]})


def sanitize_name(name: str) -> str:
    """Table name that Avro accepts: each other character becomes two underscores (Hudi `HoodieAvroUtils.sanitizeName`)."""
    masked = _NOT_IN_AVRO_NAME.sub("__", name)
    return f"__{masked[1:]}" if masked[:1].isdigit() else masked
