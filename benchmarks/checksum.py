"""A checksum of a table's rows that does not depend on their order, and needs no query engine.

Every row gets a 64-bit hash over all columns (so values swapped between rows change it); the checksum is the sum of the row hashes
modulo 2^64 beside the row count (so a doubled or lost row changes it). Sums also subtract: the checksum after an upsert is that of
the base minus the replaced rows plus the new ones, which is how the expected values are made without merging anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Hashes = npt.NDArray[np.uint64]

_GOLDEN = 0x9E3779B97F4A7C15
_NULL = np.uint64(0xA5A5A5A55A5A5A5A)
_BASE = np.uint64(0x100000001B3)
_SLICE_ROWS = 131_072


@dataclass(frozen=True)
class Checksum:
    """Row count and hash sum of a multiset of rows."""

    rows: int = 0
    total: int = 0

    def __add__(self, other: Checksum) -> Checksum:
        return Checksum(self.rows + other.rows, (self.total + other.total) % 2**64)

    def __sub__(self, other: Checksum) -> Checksum:
        return Checksum(self.rows - other.rows, (self.total - other.total) % 2**64)

    def __str__(self) -> str:
        return f"{self.rows} rows, {self.total:016x}"

    @classmethod
    def of_hashes(cls, hashes: Hashes) -> Checksum:
        return cls(len(hashes), int(hashes.sum(dtype=np.uint64)) if len(hashes) else 0)


def checksum_of(tables: Iterable[pa.Table], schema: pa.Schema) -> Checksum:
    """The checksum of all rows of `tables`, cast to `schema` (columns by name, others ignored).

    Raises `KeyError` where a column is missing and `pyarrow.ArrowInvalid` where a value does not fit the schema's type.
    """
    total = Checksum()
    for table in tables:
        total += Checksum.of_hashes(row_hashes(table, schema))
    return total


def row_hashes(table: pa.Table, schema: pa.Schema) -> Hashes:
    """One hash a row of `table`, in row order."""
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise KeyError(f"columns {missing} are missing; the table has {table.column_names}")
    conformed = table.select(schema.names).cast(schema)
    parts = [_batch_hashes(batch) for batch in conformed.combine_chunks().to_batches(max_chunksize=_SLICE_ROWS)]
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def _batch_hashes(batch: pa.RecordBatch) -> Hashes:
    combined = np.zeros(batch.num_rows, np.uint64)
    for position, column in enumerate(batch.columns):
        seed = np.uint64((position + 1) * _GOLDEN % 2**64)
        combined = _mix((combined * _BASE) ^ _mix(_column_hashes(column) + seed))
    return combined


def _column_hashes(column: pa.Array) -> Hashes:
    hashes = _text_hashes(column) if _is_text(column.type) else _fixed_hashes(column)
    if column.null_count:
        hashes = np.where(column.is_null().to_numpy(zero_copy_only=False), _NULL, hashes)
    return hashes


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _fixed_hashes(column: pa.Array) -> Hashes:
    """Hashes of fixed-width values from their bytes; 16-byte ones (decimals) are folded into eight."""
    kind = column.type
    if pa.types.is_boolean(kind):
        flags: Hashes = column.fill_null(False).cast(pa.uint8()).to_numpy(zero_copy_only=False).astype(np.uint64)
        return flags
    if not pa.types.is_primitive(kind) and not pa.types.is_decimal(kind):
        raise TypeError(f"no checksum for columns of type {kind}")
    width = kind.bit_width // 8
    raw = np.frombuffer(column.buffers()[1], np.uint8)[column.offset * width : (column.offset + len(column)) * width]
    if width == 16:
        halves = raw.view(np.uint64).reshape(-1, 2)
        return _mix(halves[:, 0]) + halves[:, 1]
    if pa.types.is_floating(kind):
        # -0.0 equals 0.0 and every NaN equals every other: engines do not keep them apart.
        values = raw.view(f"f{width}").astype(np.float64)
        return np.where(np.isnan(values), np.nan, values + 0.0).view(np.uint64)
    return raw.view(f"i{width}").astype(np.int64).view(np.uint64)


def _text_hashes(column: pa.Array) -> Hashes:
    """A polynomial over the bytes of each value, all values at once."""
    lengths = pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    hashes = _mix(lengths.view(np.uint64))
    if not lengths.any():
        return hashes
    dense = column.fill_null("" if pa.types.is_string(column.type) else b"")
    offsets = np.frombuffer(dense.buffers()[1], np.int32)[dense.offset : dense.offset + len(dense) + 1].astype(np.int64)
    data = np.frombuffer(dense.buffers()[2], np.uint8)[offsets[0] : offsets[-1]].astype(np.uint64)
    starts = offsets[:-1] - offsets[0]
    filled = lengths > 0
    within = np.arange(len(data)) - np.repeat(starts[filled], lengths[filled])
    hashes[filled] += np.add.reduceat((data + np.uint64(1)) * _powers(int(lengths.max()))[within], starts[filled])
    return hashes


def _powers(count: int) -> Hashes:
    powers: Hashes = np.multiply.accumulate(np.full(count, _BASE, np.uint64))
    return powers


def _mix(values: Hashes) -> Hashes:
    """The finalizer of splitmix64: every input bit reaches every output bit."""
    mixed: Hashes = values ^ (values >> np.uint64(30))
    mixed = mixed * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
