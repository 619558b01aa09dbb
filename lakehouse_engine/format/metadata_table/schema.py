"""The schema of metadata records: the written texts, and the Arrow type that all of them are read as."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

import pyarrow as pa

from lakehouse_engine.format.avro.avro_arrow import avro_to_arrow
from lakehouse_engine.model.table_version import TableVersion

SCHEMA_INFO = b"schema"
"""Key of the Avro schema in the file info of a base file."""


@cache
def record_schema(version: TableVersion) -> str:
    """Avro schema text for a new metadata table of this version; an existing one keeps the text of its newest files.

    Hudi 0.15 writes version 6 without later additions. Attributes `doc` and the five meta columns, which are always null, are left out.
    """
    name = f"HoodieMetadataRecord.{6 if version is TableVersion.SIX else 9}.avsc"
    text = resources.files(__package__).joinpath("schemas").joinpath(name).read_text(encoding="utf-8")
    return json.dumps(json.loads(text), separators=(",", ":"))


@cache
def stored_schema(text: str) -> pa.Schema:
    """The columns of a schema text, as `avro_to_arrow` makes them with unions as structs."""
    return avro_to_arrow(text, branches=True)


@cache
def payload_schema() -> pa.Schema:
    """The columns of decoded payloads: those of the newest schema."""
    return stored_schema(record_schema(TableVersion.NINE))


def conform(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column with the members of `kind`, by name: missing ones are null, others are left out."""
    if values.type.equals(kind):
        return values
    if pa.types.is_map(kind):
        items = conform(values.items, kind.item_type)
        return pa.MapArray.from_arrays(values.offsets, values.keys.cast(kind.key_type), items, type=kind, mask=values.is_null())
    if not pa.types.is_struct(kind):
        return values.cast(kind)
    names = {field.name: place for place, field in enumerate(values.type)}
    children = []
    for field in kind:
        place = names.get(field.name)
        children.append(pa.nulls(len(values), field.type) if place is None else conform(values.field(place), field.type))
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=values.is_null())
