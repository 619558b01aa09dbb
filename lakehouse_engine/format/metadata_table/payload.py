"""Conversion between Avro payloads of metadata records and Arrow (Hudi `HoodieMetadataRecord`).

A payload has an empty text for its key: the entry has the key.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.avro.avro_decode import Node, Read, record_nodes
from lakehouse_engine.format.avro.avro_encode import encode_records
from lakehouse_engine.format.avro.avro_source import AvroSource, Positions, utf8
from lakehouse_engine.format.metadata_table.schema import conform, payload_schema, stored_schema
from lakehouse_engine.format.varint import decode_long

FILES, BLOOM, STATS = "filesystemMetadata", "BloomFilterMetadata", "ColumnStatsMetadata"
LOCATION, SECONDARY = "recordIndexMetadata", "SecondaryIndexMetadata"
_TYPE, _KEY = "type", "key"
_RECORD = "a metadata record"


class RecordType(IntEnum):
    """The type in each payload (Hudi `MetadataPartitionType`)."""

    ALL_PARTITIONS = 1
    FILES = 2
    COLUMN_STATS = 3
    BLOOM_FILTERS = 4
    RECORD_INDEX = 5
    PARTITION_STATS = 6
    SECONDARY_INDEX = 7


def decode_payloads(schema_text: str, values: pa.Array) -> pa.Table:
    """Payloads (`binary`, no nulls) in the columns of `payload_schema()`; null for members that an older schema lacks.

    Raises `FormatError` if one does not decode, `MetadataError` if the schema is invalid.
    """
    octets = values.cast(pa.large_binary())
    offsets = np.frombuffer(octets.buffers()[1], np.int64)[octets.offset : octets.offset + len(octets) + 1] if len(octets) else np.zeros(1)
    data = octets.buffers()[2]
    source = AvroSource(np.frombuffer(b"" if data is None else data, np.uint8), offsets[1:].astype(np.int64))
    schema, at = stored_schema(schema_text), offsets[:-1].astype(np.int64)
    columns: dict[str, pa.Array] = {}
    for field, node in zip(schema, record_nodes(schema_text, schema), strict=True):
        reader: Node = _OptionalFiles(field.type) if field.name == FILES else node
        columns[field.name], at = reader.read(source, at)
    if bool((at != source.ends).any()):
        raise FormatError("a metadata record does not end where its entry does")
    return _conformed(columns, payload_schema(), len(octets))


def encode_payloads(schema_text: str, table: pa.Table) -> pa.Array:
    """One payload per row (`binary`). `table` has some of the columns of `payload_schema()`, `type` among them; others are null.

    Members that an older schema lacks are left out: they must be empty.
    """
    schema = stored_schema(schema_text)
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    flat = {name: one.combine_chunks() if isinstance(one, pa.ChunkedArray) else one for name, one in columns.items()}
    flat[_KEY] = pa.repeat("", table.num_rows)
    return encode_records(schema_text, _conformed(flat, schema, table.num_rows), branches=True)


def _conformed(columns: dict[str, pa.Array], schema: pa.Schema, count: int) -> pa.Table:
    arrays = [conform(columns[one.name], one.type) if one.name in columns else pa.nulls(count, one.type) for one in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


@dataclass(frozen=True, slots=True)
class _OptionalFiles:
    """The map of a record in `files`: few records with as many entries as a partition has files, so entries are read side by side."""

    kind: pa.DataType

    def read(self, source: AvroSource, at: Positions) -> Read:
        branch, at = source.longs(at)
        if bool(((branch != 0) & (branch != 1)).any()):
            raise FormatError("an Avro union has a branch that it does not have")
        present = np.flatnonzero(branch)
        data, starts = source.octets.data, array("q")
        sizes = np.zeros(len(at), np.int64)
        for row in present.tolist():
            before = len(starts)
            at[row] = _walk(data, int(at[row]), starts)
            sizes[row] = len(starts) - before
        return self._map(source, np.array(starts, np.int64), sizes, branch == 0), at

    def _map(self, source: AvroSource, starts: Positions, sizes: Positions, absent: npt.NDArray[np.bool_]) -> pa.Array:
        names, at = source.texts(starts)
        lengths, at = source.longs(at)
        deleted = source.read(at) == 1
        items = pa.StructArray.from_arrays([pa.array(lengths), pa.array(deleted)], fields=list(self.kind.item_type))
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
        return pa.MapArray.from_arrays(offsets, utf8(names), items, type=self.kind, mask=pa.array(absent))


def _walk(data: memoryview, at: int, starts: array[int]) -> int:
    """Append the starts of the entries of the map at `at`; returns the position after the map."""
    while True:
        count, at = decode_long(data, at, of=_RECORD)
        if count == 0:
            return at
        if count < 0:
            _, at = decode_long(data, at, of=_RECORD)
        for _ in range(abs(count)):
            starts.append(at)
            size, at = decode_long(data, at, of=_RECORD)
            if size < 0:
                raise FormatError("a name in a metadata record has a negative length")
            _, at = decode_long(data, at + size, of=_RECORD)
            at += 1
