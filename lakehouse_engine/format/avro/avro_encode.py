"""Encodes Arrow columns as records in Avro's binary form, column by column: the inverse of `avro_decode`.

Every column becomes an array with one byte string per row; Arrow joins the byte strings of each record.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.errors import UnsupportedTypeError
from lakehouse_engine.format.avro.avro_arrow import avro_to_arrow
from lakehouse_engine.format.avro.avro_schema import inlined, load_record


def encode_longs(values: npt.NDArray[np.int64]) -> pa.Array:
    """Zigzag numbers of variable length, as a binary array."""
    rest = ((values << 1) ^ (values >> 63)).view(np.uint64)
    septets = np.zeros((len(values), 10), np.uint8)
    sizes = np.ones(len(values), np.int64)
    for place in range(10):
        septets[:, place] = rest & np.uint64(0x7F)
        rest = rest >> np.uint64(7)
        more = rest != 0
        if not bool(more.any()):
            break
        septets[more, place] |= 0x80
        sizes[more] += 1
    used = np.arange(10) < sizes[:, None]
    return _binary(septets[used], sizes)


def encode_texts(values: pa.Array) -> pa.Array:
    """`string` and `bytes` values: the length, then the bytes. No nulls."""
    octets = values.cast(pa.binary())
    return join([encode_longs(np.asarray(pc.binary_length(octets)).astype(np.int64)), octets])


def encode_fixed(octets: npt.NDArray[np.uint8]) -> pa.Array:
    """Values of one length, given as a matrix with one row per value."""
    return _binary(octets.reshape(-1), np.full(len(octets), octets.shape[1], np.int64))


def join(parts: Sequence[pa.Array]) -> pa.Array:
    """Concatenate the parts of each row."""
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))


def _binary(flat: npt.NDArray[np.uint8], sizes: npt.NDArray[np.int64]) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(sizes), [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(flat))])


def decimal_bytes(values: pa.Array, size: int) -> npt.NDArray[np.uint8]:
    """Decimals as big-endian numbers of `size` bytes, as a matrix with one row per value. No nulls."""
    raw = np.frombuffer(values.buffers()[1], np.uint8).reshape(-1, 16)[values.offset : values.offset + len(values)]
    if size <= 16:
        return np.ascontiguousarray(raw[:, size - 1 :: -1] if size < 16 else raw[:, ::-1])
    sign = np.repeat(np.where(raw[:, 15:] >= 0x80, 0xFF, 0).astype(np.uint8), size - 16, axis=1)
    return np.concatenate([sign, raw[:, ::-1]], axis=1)


def decimal_texts(values: pa.Array) -> pa.Array:
    """Decimals as big-endian numbers, each as short as Java's `BigInteger.toByteArray` makes it, as a binary array. No nulls."""
    octets = decimal_bytes(values, 16)
    lead = np.where(octets[:, :1] >= 0x80, 0xFF, 0)
    # Leading bytes that only repeat the sign of the next byte are dropped.
    spare = (octets[:, :-1] == lead) & ((octets[:, 1:] >= 0x80) == (lead == 0xFF))
    dropped = np.where(spare.all(axis=1), 15, np.argmin(spare, axis=1))
    return _binary(octets[np.arange(16) >= dropped[:, None]], 16 - dropped)


def encode_records(schema_text: str, table: pa.Table, *, branches: bool = False) -> pa.Array:
    """One byte string per row of `table`, which has the columns of `avro_to_arrow(schema_text)`; `branches` as in that function.

    Raises `UnsupportedTypeError` for a type in the schema that the engine does not write.
    """
    record, schema = _known(schema_text, branches)
    columns = [table.column(name).combine_chunks().cast(schema.field(name).type) for name in schema.names]
    flat = [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns]
    return join([_encode(column, member["type"]) for column, member in zip(flat, record["fields"], strict=True)])


@lru_cache(maxsize=64)
def _known(schema_text: str, branches: bool) -> tuple[dict[str, Any], pa.Schema]:
    """A parsed schema: many small writes have the same."""
    record = load_record(schema_text)
    return inlined(record) if branches else record, avro_to_arrow(schema_text, branches=branches)


def _encode(values: pa.Array, avro: object) -> pa.Array:
    if isinstance(avro, list):
        return _union(values, avro)
    kind = avro.get("type") if isinstance(avro, dict) else avro
    if isinstance(avro, dict) and isinstance(kind, str):
        if kind == "record":
            children = zip(values.flatten(), avro["fields"], strict=True)
            return join([_encode(child, member["type"]) for child, member in children])
        if kind == "array":
            return _blocks(values, _encode(values.flatten(), avro["items"]))
        if kind == "map":
            keys, items = _entries(values)
            return _blocks(values, join([encode_texts(keys), _encode(items, avro["values"])]))
        if kind == "fixed" and pat.is_decimal(values.type):
            return encode_fixed(decimal_bytes(values, int(avro["size"])))
    return _primitive(values, str(kind), avro)


def _union(values: pa.Array, members: list[object]) -> pa.Array:
    if len(members) - members.count("null") > 1:
        return _branches(values, members)
    number = next(index for index, member in enumerate(members) if member != "null")
    if not values.null_count:
        return join([encode_longs(np.full(len(values), number, np.int64)), _encode(values, members[number])])
    valid = np.asarray(values.is_valid())
    present = encode_longs(np.full(int(valid.sum()), number, np.int64))
    encoded = join([present, _encode(values.filter(pa.array(valid)), members[number])]) if len(present) else present
    null = encode_longs(np.array([members.index("null")], np.int64))
    places = np.where(valid, np.cumsum(valid) - 1, len(encoded))
    return pa.concat_arrays([encoded, null]).take(pa.array(places))


def _branches(values: pa.Array, members: list[object]) -> pa.Array:
    """A union of several records: each row has the one member of the struct `values` that is not null."""
    there = np.asarray(values.is_valid())
    places = np.full(len(values), -1, np.int64)
    parts, count = [], 0
    numbers = [number for number, member in enumerate(members) if member != "null"]
    for place, number in enumerate(numbers):
        child = values.field(place)
        rows = np.flatnonzero(np.asarray(child.is_valid()) & there)
        if not len(rows):
            continue
        if bool((places[rows] >= 0).any()):
            raise UnsupportedTypeError("a value of an Avro union has two branches")
        places[rows] = count + np.arange(len(rows))
        branch = encode_longs(np.full(len(rows), number, np.int64))
        parts.append(join([branch, _encode(child.take(pa.array(rows)), members[number])]))
        count += len(rows)
    null = encode_longs(np.array([members.index("null")], np.int64))
    return pa.concat_arrays([*parts, null]).take(pa.array(np.where(places >= 0, places, count)))


def _primitive(values: pa.Array, kind: str, avro: object) -> pa.Array:
    if kind in ("int", "long"):
        numbers = values.view(pa.int32()) if values.type.bit_width == 32 else values.view(pa.int64())
        factor = 1000 if isinstance(avro, dict) and str(avro.get("logicalType")).endswith("timestamp-millis") else 1
        return encode_longs(np.asarray(numbers).astype(np.int64) // factor)
    if kind in ("float", "double"):
        numbers = np.ascontiguousarray(np.asarray(values))
        return encode_fixed(numbers.view(np.uint8).reshape(len(values), values.type.bit_width // 8))
    if kind == "boolean":
        return encode_fixed(np.asarray(values.cast(pa.uint8())).reshape(-1, 1))
    if kind == "bytes" and pat.is_decimal(values.type):
        return encode_texts(decimal_texts(values))
    if kind in ("string", "bytes") and not pat.is_decimal(values.type):
        return encode_texts(values)
    raise UnsupportedTypeError(f"values of type {values.type} cannot be written as the Avro type {str(avro)[:80]}")


def _entries(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    start, stop = (values.offsets[index].as_py() for index in (0, -1))
    return values.keys.slice(start, stop - start), values.items.slice(start, stop - start)


def _blocks(values: pa.Array, elements: pa.Array) -> pa.Array:
    """Arrays or maps, with the elements of each in one block; without elements, only the end mark is written."""
    offsets = np.asarray(values.offsets).astype(np.int64)
    sizes = np.diff(offsets)
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array((offsets - offsets[0]).astype(np.int32)), elements), b"")
    counts = encode_longs(sizes)
    ends = pa.array([b"", b"\0"], pa.binary()).take(pa.array((sizes > 0).astype(np.int64)))
    return join([counts, joined, ends])
