"""Records of `record_index`: the location of the row of each record key (Hudi `HoodieRecordIndexInfo`).

Many rows share few locations, so each distinct location is encoded or decoded once.
"""

from __future__ import annotations

import re
import uuid

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.metadata_table.payload import LOCATION, RecordType, decode_payloads, encode_payloads
from lakehouse_engine.format.metadata_table.schema import payload_schema

LOCATIONS = pa.schema(
    [pa.field("partition_path", pa.string()), pa.field("file_id", pa.string()), pa.field("instant_millis", pa.int64())]
)
"""Location of a row: partition path, file id, and the instant that wrote it there, in milliseconds since the epoch by Hudi's clock."""

_UUID_FILE_ID = re.compile(r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:-([0-9]{1,9}))?")
_NO_INDEX = -1
_HALF = 1 << 64
_BY_UUID, _RAW = 0, 1
"""Encodings of file ids: two halves of a UUID and a number, or the text."""


def encode_locations(schema_text: str, locations: pa.Table) -> pa.Array:
    """One payload per row (`binary`), for a table with the columns of `LOCATIONS`."""
    codes, rows = distinct_locations(locations)
    return encode_payloads(schema_text, location_payloads(locations.take(pa.array(rows)))).take(pa.array(codes))


def decode_locations(schema_text: str, values: pa.Array) -> pa.Table:
    """The locations in payloads, in the columns of `LOCATIONS`. Raises `FormatError`."""
    coded = values.dictionary_encode()
    found = locations_of(decode_payloads(schema_text, coded.dictionary))
    return found.take(coded.indices)


def location_payloads(locations: pa.Table) -> pa.Table:
    """Payloads in the columns of `payload_schema()`, one per row."""
    ids = locations.column("file_id").combine_chunks().dictionary_encode()
    parts = _file_id_parts(ids.dictionary)
    kind = payload_schema().field(LOCATION).type
    by_name = {
        "partitionName": locations.column("partition_path").combine_chunks(),
        "instantTime": locations.column("instant_millis").combine_chunks(),
        **{name: values.take(ids.indices) for name, values in parts.items()},
    }
    children = [by_name.get(field.name, pa.nulls(locations.num_rows, field.type)) for field in kind]
    struct = pa.StructArray.from_arrays(children, fields=list(kind))
    return pa.table({"type": pa.array(np.full(locations.num_rows, RecordType.RECORD_INDEX, np.int32)), LOCATION: struct})


def locations_of(payloads: pa.Table) -> pa.Table:
    """The locations in decoded payloads, in the columns of `LOCATIONS`. Raises `FormatError` for payloads of another type."""
    info = payloads.column(LOCATION).combine_chunks()
    if info.null_count:
        raise FormatError("a record of the record index has no location")
    encoding = pc.fill_null(info.field("fileIdEncoding"), _BY_UUID)
    if pc.any(pc.greater(encoding, _RAW)).as_py():
        raise FormatError("a record of the record index has a file id in an unknown encoding")
    by_uuid = pc.equal(encoding, _BY_UUID)
    halves = [np.asarray(pc.fill_null(info.field(name), 0)) for name in ("fileIdHighBits", "fileIdLowBits")]
    index = pc.fill_null(info.field("fileIndex"), _NO_INDEX)
    texts = _uuid_texts(*halves)
    numbered = pc.binary_join_element_wise(texts, index.cast(pa.string()), "-")
    file_ids = pc.if_else(by_uuid, pc.if_else(pc.equal(index, _NO_INDEX), texts, numbered), info.field("fileId"))
    return pa.Table.from_arrays([info.field("partitionName"), file_ids, info.field("instantTime")], schema=LOCATIONS)


def distinct_locations(locations: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The number of each row's location, and the first row of each location."""
    combined = np.zeros(locations.num_rows, np.int64)
    for name in LOCATIONS.names:
        coded = locations.column(name).combine_chunks().dictionary_encode()
        combined = np.unique(combined * max(1, len(coded.dictionary)) + np.asarray(coded.indices), return_inverse=True)[1]
    _, rows, codes = np.unique(combined, return_index=True, return_inverse=True)
    return codes, rows


def _file_id_parts(file_ids: pa.Array) -> dict[str, pa.Array]:
    """The payload members for each file id."""
    high, low, index, text, encoding = [], [], [], [], []
    for file_id in file_ids.to_pylist():
        found = _UUID_FILE_ID.fullmatch(file_id)
        number = uuid.UUID(found[1]).int if found else -1
        high.append(_signed(number // _HALF) if found else -1)
        low.append(_signed(number % _HALF) if found else -1)
        index.append(int(found[2]) if found and found[2] is not None else _NO_INDEX)
        text.append("" if found else file_id)
        encoding.append(_BY_UUID if found else _RAW)
    return {
        "fileIdHighBits": pa.array(high, pa.int64()),
        "fileIdLowBits": pa.array(low, pa.int64()),
        "fileIndex": pa.array(index, pa.int32()),
        "fileId": pa.array(text, pa.string()),
        "fileIdEncoding": pa.array(encoding, pa.int32()),
    }


def _signed(half: int) -> int:
    return half - _HALF if half >= _HALF // 2 else half


def _uuid_texts(high: npt.NDArray[np.int64], low: npt.NDArray[np.int64]) -> pa.Array:
    octets = np.stack([high, low], axis=1).astype(">i8").view(np.uint8).reshape(-1, 16)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    text = np.full((len(octets), 36), ord("-"), np.uint8)
    places = [place for place in range(36) if place not in (8, 13, 18, 23)]
    text[:, places] = np.stack([digits[octets >> 4], digits[octets & 15]], axis=2).reshape(-1, 32)
    offsets = pa.py_buffer(np.arange(len(octets) + 1, dtype=np.int32) * 36)
    return pa.Array.from_buffers(pa.string(), len(octets), [None, offsets, pa.py_buffer(np.ascontiguousarray(text))])
