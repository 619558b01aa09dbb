"""Pairs of value and record key, the entries of a secondary index (design: metadata table, section 9)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.format.metadata_table.bloom_filters import secondary_index_payload
from lakehouse_engine.format.metadata_table.definitions import IndexDefinition
from lakehouse_engine.format.metadata_table.keys import secondary_keys
from lakehouse_engine.format.metadata_table.payload import encode_payloads
from lakehouse_engine.metadata_table.records.rows import slice_streams
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.view.table_state import TableState


def has_plain_text(kind: pa.DataType) -> bool:
    """True if Hudi and this engine write values of the type as the same text."""
    return bool(pat.is_string(kind) or pat.is_signed_integer(kind))


def indexed_column(data: TableState, definition: IndexDefinition) -> str | None:
    """Column of a secondary index that this engine knows how to write; None for others."""
    schema = table_schema(data)
    fields = definition.source_fields
    known = len(fields) == 1 and fields[0] in schema.names and has_plain_text(schema.field(fields[0]).type)
    return fields[0] if known else None


def pair_keys(rows: pa.Table, column: str) -> pa.Array:
    """Keys (`binary`) of the rows, which have `column` and the record key."""
    values, keys = (rows.column(name).combine_chunks().cast(pa.string()) for name in (column, RECORD_KEY))
    return secondary_keys(values, keys)


def pair_payloads(schema: str, count: int) -> pa.Array:
    """Encoded payloads of that many entries, which are all alike."""
    return encode_payloads(schema, secondary_index_payload(1)).take(pa.array(np.zeros(count, np.int64)))


def row_pairs(data: TableState, slices: Iterable[FileSlice], column: str) -> Iterator[pa.Array]:
    """Keys of all rows of the slices, merged with their logs. Memory, and raises, as `row_locations`."""
    for _, streamed in slice_streams(data, slices, [RECORD_KEY, column]):
        for rows in streamed:
            yield pair_keys(rows, column)
