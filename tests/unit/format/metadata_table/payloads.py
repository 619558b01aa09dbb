"""Payloads of every type as dictionaries, for tests; `fastavro` is the independent reader and writer of them."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from functools import cache
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import strategies as st

from lakehouse_engine.format.metadata_table.schema import record_schema
from lakehouse_engine.model.table_version import TableVersion

NAMESPACE = "org.apache.hudi.avro.model."
VERSIONS = (TableVersion.SIX, TableVersion.NINE)
LONGS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=8)

Payload = dict[str, Any]

WRAPPED = {
    "BooleanWrapper": st.booleans(),
    "IntWrapper": st.integers(-(2**31), 2**31 - 1),
    "LongWrapper": LONGS,
    "FloatWrapper": st.floats(width=32, allow_nan=False),
    "DoubleWrapper": st.floats(allow_nan=False),
    "BytesWrapper": st.binary(max_size=8),
    "StringWrapper": TEXTS,
    "DateWrapper": st.integers(-(2**31), 2**31 - 1),
    "DecimalWrapper": st.integers(-(10**30) + 1, 10**30 - 1).map(lambda number: Decimal(number).scaleb(-15)),
    "TimestampMicrosWrapper": LONGS,
}


@st.composite
def bounds(draw: st.DrawFn) -> tuple[str, Any] | None:
    name = draw(st.sampled_from([None, *WRAPPED]))
    return None if name is None else (name, draw(WRAPPED[name]))


@st.composite
def payloads(draw: st.DrawFn) -> Payload:
    """One of any type, with bounds as (wrapper, value)."""
    kind = draw(st.integers(1, 6))
    if kind <= 2:
        entries = st.fixed_dictionaries({"size": LONGS, "isDeleted": st.booleans()})
        return {"type": kind, "filesystemMetadata": draw(st.dictionaries(TEXTS, entries, max_size=5))}
    if kind == 4:
        bloom = {"type": draw(TEXTS), "timestamp": draw(TEXTS), "bloomFilter": draw(st.binary(max_size=9))}
        return {"type": kind, "BloomFilterMetadata": {**bloom, "isDeleted": draw(st.booleans())}}
    if kind == 5:
        names = ("fileIdHighBits", "fileIdLowBits", "instantTime")
        info = {"partitionName": draw(TEXTS), "fileIndex": draw(st.integers(-1, 9)), "fileId": draw(TEXTS), "fileIdEncoding": 1}
        return {"type": kind, "recordIndexMetadata": {**info, **{name: draw(LONGS) for name in names}}}
    stats = {name: draw(st.none() | LONGS) for name in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")}
    stats |= {"fileName": draw(TEXTS), "columnName": draw(TEXTS), "isDeleted": draw(st.booleans())}
    return {"type": kind, "ColumnStatsMetadata": {**stats, "minValue": draw(bounds()), "maxValue": draw(bounds())}}


@cache
def avro_schema(version: TableVersion) -> Any:
    return fastavro.parse_schema(json.loads(record_schema(version)))


def written(version: TableVersion, payload: Payload) -> bytes:
    """The payload as `fastavro` writes it."""
    record: Payload = {"key": "", **payload}
    if stats := record.get("ColumnStatsMetadata"):
        wrapped = {name: stats[name] and (NAMESPACE + stats[name][0], {"value": stats[name][1]}) for name in ("minValue", "maxValue")}
        record["ColumnStatsMetadata"] = {"isTightBound": False, "valueType": None, **stats, **wrapped}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, avro_schema(version), record)
    return out.getvalue()


def read(version: TableVersion, data: bytes) -> Payload:
    """What `fastavro` reads."""
    named = {"return_record_name": True, "return_record_name_override": True}
    record: Payload = fastavro.schemaless_reader(io.BytesIO(data), avro_schema(version), None, **named)
    return record


def values(version: TableVersion, found: list[Payload]) -> pa.Array:
    return pa.array([written(version, payload) for payload in found], pa.binary())


def bound_of(struct: Payload | None) -> tuple[str, Any] | None:
    """A bound as (wrapper, value), from the struct with a member for each wrapper."""
    there = [(name, member["value"]) for name, member in (struct or {}).items() if member is not None]
    assert len(there) <= 1
    return there[0] if there else None
