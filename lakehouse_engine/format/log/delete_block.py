"""Delete blocks: keys with ordering values, as Avro's `HoodieDeleteRecordList` (hudi-format 5.3, content version 3)."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from lakehouse_engine.errors import FormatError, UnsupportedTableError
from lakehouse_engine.format.avro.avro_encode import decimal_bytes, encode_fixed, encode_longs, encode_texts, join
from lakehouse_engine.format.avro.avro_source import AvroSource, Positions, decimals_of_bytes, int32s, utf8
from lakehouse_engine.format.log.blocks import CONTENT_VERSION, LogBlock
from lakehouse_engine.format.varint import decode_long


class Wrapper(IntEnum):
    """Branches of the ordering value's union. All but the first are records with one member `value`."""

    NULL = 0
    BOOLEAN = 1
    INT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    BYTES = 6
    STRING = 7
    DATE = 8
    DECIMAL = 9
    TIME_MICROS = 10
    TIMESTAMP_MICROS = 11
    ARRAY = 12
    """One value for each of several ordering fields (table version 9)."""


_LOCAL_DATE = 12
"""Branch of a value in an array: a date of another Java class."""

_BLOCK = "a delete block"

_TYPES: dict[Wrapper, pa.DataType] = {
    Wrapper.BOOLEAN: pa.bool_(),
    Wrapper.INT: pa.int32(),
    Wrapper.LONG: pa.int64(),
    Wrapper.FLOAT: pa.float32(),
    Wrapper.DOUBLE: pa.float64(),
    Wrapper.BYTES: pa.binary(),
    Wrapper.STRING: pa.string(),
    Wrapper.DATE: pa.date32(),
    Wrapper.DECIMAL: pa.decimal128(30, 15),
    Wrapper.TIME_MICROS: pa.time64("us"),
    Wrapper.TIMESTAMP_MICROS: pa.timestamp("us", tz="UTC"),
}
_PLAIN = (Wrapper.NULL, *_TYPES)
_FIXED_SIZES = {Wrapper.NULL: 0, Wrapper.BOOLEAN: 1, Wrapper.FLOAT: 4, Wrapper.DOUBLE: 8}
_SIZED = frozenset({Wrapper.BYTES, Wrapper.STRING, Wrapper.DECIMAL})

_TEXT = 2
"""Stored byte of a union's branch 1, text."""
_NUMBERS = frozenset(2 * wrapper for wrapper in (Wrapper.INT, Wrapper.LONG, Wrapper.DATE))
_TEXTS = ("key", "partition path")
_NEAR_END = 4
"""No fewer than the bytes that the walk reads together without a bounds check."""


@dataclass(frozen=True, slots=True)
class OrderingValues:
    """Values of one ordering field, in order. `wrappers` has the kind of each row; `values` has one array per kind that occurs.

    The array of a kind has a value for each row of that kind, in order.
    """

    wrappers: npt.NDArray[np.int64]
    values: Mapping[Wrapper, pa.Array]

    def of_type(self, kind: pa.DataType) -> pa.Array:
        """The values as `kind`, the table's type of that column; null where there is no value or one of another class."""
        wrapper = wrapper_of(kind)
        found = None if wrapper is None else self.values.get(wrapper)
        if found is None:
            return pa.nulls(len(self.wrappers), kind)
        rows = self.wrappers == wrapper
        try:
            values = found.cast(kind)
        except pa.ArrowInvalid as error:
            raise FormatError(f"an ordering value of a delete block does not fit {kind}: {error}") from error
        return _spread(values, rows)


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """Deleted keys, in order, with their ordering values as `OrderingValues`.

    `members` are the values inside the entries of kind ARRAY: one item per ordering field, with a row for each such entry.
    """

    keys: pa.Array
    partition_paths: pa.Array
    wrappers: npt.NDArray[np.int64]
    values: Mapping[Wrapper, pa.Array]
    members: tuple[OrderingValues, ...] = ()

    def __len__(self) -> int:
        return len(self.keys)

    def always(self) -> npt.NDArray[np.bool_]:
        """Mask of deletes without ordering value: null, or the int 0 of a delete operation. They win over everything before them."""
        natural = np.array(self.wrappers == Wrapper.NULL)
        zero = self.values.get(Wrapper.INT)
        if zero is not None:
            natural[self.wrappers == Wrapper.INT] = np.asarray(zero) == 0
        return natural

    def ordering(self, kind: pa.DataType) -> pa.Array:
        """Values of a single ordering field, of type `kind`; null where a delete has no value or one of another class."""
        return OrderingValues(self.wrappers, self.values).of_type(kind)

    def has_each(self, kinds: Sequence[pa.DataType]) -> npt.NDArray[np.bool_]:
        """Mask of deletes that have a value for each of several ordering fields, of these types or null."""
        found = np.zeros(len(self), np.bool_)
        if len(kinds) == len(self.members):
            rows = self.wrappers == Wrapper.ARRAY
            found[rows] = True
            for one, kind in zip(self.members, kinds, strict=True):
                found[rows] &= (one.wrappers == Wrapper.NULL) | np.asarray(one.of_type(kind).is_valid())
        return found

    def orderings(self, kinds: Sequence[pa.DataType]) -> list[pa.Array]:
        """Values of each ordering field, of these types; null where a delete has no value, or one of another class or for other fields."""
        if len(kinds) == 1:
            return [self.ordering(kinds[0])]
        if len(kinds) != len(self.members):
            return [pa.nulls(len(self), kind) for kind in kinds]
        rows = self.wrappers == Wrapper.ARRAY
        return [_spread(member.of_type(kind), rows) for member, kind in zip(self.members, kinds, strict=True)]


def _spread(values: pa.Array, rows: npt.NDArray[np.bool_]) -> pa.Array:
    """Values placed in order at the true rows, and null at the others."""
    return values.take(pa.array(np.maximum(np.cumsum(rows) - 1, 0), mask=~rows))


def wrapper_of(kind: pa.DataType) -> Wrapper | None:
    """Kind of ordering value for a column of this type; None if Hudi has no wrapper for the type."""
    if pat.is_decimal(kind):
        return Wrapper.DECIMAL
    if pat.is_timestamp(kind):
        return Wrapper.TIMESTAMP_MICROS
    return next((wrapper for wrapper, known in _TYPES.items() if known == kind), None)


def decode_delete_block(block: LogBlock) -> DeleteRecords:
    """Decode a delete block. Raises `UnsupportedTableError` for blocks of Hudi before 0.13 (Java-serialized), `FormatError` for damaged
    ones.
    """
    data = block.content
    if len(data) < 8:
        raise FormatError("a delete block ends within its head")
    version, size = struct.unpack_from(">ii", data, 0)
    if version in (1, 2):
        raise UnsupportedTableError(f"delete blocks of content version {version} hold serialized Java objects; compact the table with Hudi")
    if version != CONTENT_VERSION:
        raise FormatError(f"the content of a delete block has version {version}; only {CONTENT_VERSION} is read")
    if size != len(data) - 8:
        raise FormatError(f"a delete block of {len(data)} bytes says that its list has {size}")
    source = AvroSource.of(data[8:])
    starts = _starts(bytes(data[8:]))
    keys, at = _optional_texts(source, starts)
    partitions, at = _optional_texts(source, at)
    wrappers, at = source.longs(at)
    values, _ = _values(source, at, wrappers)
    return DeleteRecords(keys, partitions, wrappers, values, _members(source, at[wrappers == Wrapper.ARRAY]))


def _optional_texts(source: AvroSource, at: Positions) -> tuple[pa.Array, Positions]:
    branch, at = source.longs(at)
    rows = branch == 1
    values, at[rows] = source.texts(at[rows])
    return _spread(utf8(values), rows), at


def _values(source: AvroSource, at: Positions, wrappers: npt.NDArray[np.int64]) -> tuple[dict[Wrapper, pa.Array], Positions]:
    """The values of each kind except arrays, and the position after each value."""
    values, behind = {}, at.copy()
    for wrapper in _TYPES:
        rows = wrappers == wrapper
        if rows.any():
            values[wrapper], behind[rows] = _wrapped(source, at[rows], wrapper)
    return values, behind


def _wrapped(source: AvroSource, at: Positions, wrapper: Wrapper) -> tuple[pa.Array, Positions]:
    kind = _TYPES[wrapper]
    if wrapper is Wrapper.BOOLEAN:
        return pa.array(source.read(at) == 1), at + 1
    if wrapper in _FIXED_SIZES:
        octets, at = source.fixed(at, _FIXED_SIZES[wrapper])
        return pa.Array.from_buffers(kind, len(at), [None, pa.py_buffer(octets)]), at
    if wrapper in _SIZED:
        values, at = source.texts(at)
        if wrapper is Wrapper.DECIMAL:
            return decimals_of_bytes(values, kind), at
        return utf8(values) if wrapper is Wrapper.STRING else values, at
    numbers, at = source.longs(at)
    return pa.array(int32s(numbers) if kind.bit_width == 32 else numbers).view(kind), at


def _members(source: AvroSource, at: Positions) -> tuple[OrderingValues, ...]:
    """The values in arrays. All arrays have one length: the number of the table's ordering fields."""
    if not len(at):
        return ()
    branches, at = source.longs(at)
    counts, at = source.longs(at)
    if bool((branches != 1).any()) or bool((counts != counts[0]).any()) or counts[0] < 1:
        raise FormatError("a delete block has arrays of ordering values of different lengths, or without any")
    members = []
    for _ in range(int(counts[0])):
        wrappers, at = source.longs(at)
        wrappers[wrappers == _LOCAL_DATE] = Wrapper.DATE
        values, at = _values(source, at, wrappers)
        members.append(OrderingValues(wrappers, values))
    ends, _ = source.longs(at)
    if bool((ends != 0).any()):
        raise FormatError("a delete block has an array of ordering values in several parts")
    return tuple(members)


def _starts(data: bytes) -> Positions:
    """Start of each entry in the list. It takes a walk through the bytes, which creates no value objects."""
    starts, position = array("q"), 0
    while True:
        count, position = decode_long(data, position, of=_BLOCK)
        if count == 0:
            break
        if count < 0:
            _, position = decode_long(data, position, of=_BLOCK)
            count = -count
        if count > len(data):
            raise FormatError("a delete block has more entries than bytes")
        position = _walk(data, position, count, starts)
    if position != len(data):
        raise FormatError(f"{len(data) - position} bytes are left behind the list of a delete block")
    return np.array(starts, np.int64)


def _walk(data: bytes, position: int, count: int, starts: array[int]) -> int:
    """Append the starts of `count` entries to `starts`; returns the position after them.

    A block may have as many entries as a table has keys, so entries in the form that writers use (two texts below 8 kB, a number of one
    byte) are skipped inline.
    """
    end = len(data) - _NEAR_END
    for _ in range(count):
        starts.append(position)
        at = position
        for _ in _TEXTS:
            if at > end or data[at] != _TEXT:
                break
            size, at = data[at + 1], at + 2
            if size >= 0x80 and data[at] < 0x80:
                size, at = size & 0x7F | data[at] << 7, at + 1
            elif size >= 0x80:
                break
            if size & 1:
                break
            at += size >> 1
        else:
            if at <= end and data[at] in _NUMBERS and data[at + 1] < 0x80:
                position = at + 2
                continue
        position = _after(data, position)
    return position


def _after(data: bytes, position: int) -> int:
    """Position after the entry at `position`."""
    for _ in range(2):
        branch, position = decode_long(data, position, of=_BLOCK)
        if branch == 1:
            position = _after_text(data, position)
        elif branch != 0:
            raise FormatError("a delete block has a key that is neither null nor text")
    wrapper, position = decode_long(data, position, of=_BLOCK)
    return _after_array(data, position) if wrapper == Wrapper.ARRAY else _after_value(data, position, wrapper)


def _after_value(data: bytes, position: int, wrapper: int) -> int:
    if wrapper not in _PLAIN:
        raise UnsupportedTableError(f"a delete block has ordering values of the unknown kind {wrapper}")
    if wrapper in _FIXED_SIZES:
        return position + _FIXED_SIZES[Wrapper(wrapper)]
    return _after_text(data, position) if wrapper in _SIZED else decode_long(data, position, of=_BLOCK)[1]


def _after_array(data: bytes, position: int) -> int:
    """Position after the array; `_members` checks its contents."""
    branch, position = decode_long(data, position, of=_BLOCK)
    count, position = decode_long(data, position, of=_BLOCK) if branch == 1 else (0, position)
    while count:
        if count < 0:
            _, position = decode_long(data, position, of=_BLOCK)
        for _ in range(abs(count)):
            wrapper, position = decode_long(data, position, of=_BLOCK)
            position = _after_value(data, position, Wrapper.DATE if wrapper == _LOCAL_DATE else wrapper)
        count, position = decode_long(data, position, of=_BLOCK)
    return position


def _after_text(data: bytes, position: int) -> int:
    size, position = decode_long(data, position, of=_BLOCK)
    if size < 0 or position + size > len(data):
        raise FormatError("a delete block ends within a text")
    return position + size


def encode_delete_content(
    keys: pa.Array, partition_paths: pa.Array, ordering: pa.Array | None = None, *, orderings: Sequence[pa.Array] = ()
) -> bytes:
    """The content of a delete block. Without `ordering`, entries have the int 0, which every reader takes for "always".

    `orderings` is given instead if the table has several ordering fields. Raises `UnsupportedTableError` for ordering values of a type that
    Hudi does not wrap.
    """
    values = _array_values(orderings) if orderings else _wrapped_values(ordering, len(keys))
    entries = join([_some_texts(keys), _some_texts(partition_paths), values])
    head = encode_longs(np.array([len(entries)], np.int64))[0].as_py() if len(entries) else b""
    joined = b"".join((head, _flat(entries), b"\0"))
    return struct.pack(">ii", CONTENT_VERSION, len(joined)) + joined


def _some_texts(values: pa.Array) -> pa.Array:
    return join([encode_longs(np.ones(len(values), np.int64)), encode_texts(values)])


def _array_values(orderings: Sequence[pa.Array]) -> pa.Array:
    """One array per entry, with a value for each field; a null counts as a value."""
    count = len(orderings[0])
    head = [encode_longs(np.full(count, number, np.int64)) for number in (Wrapper.ARRAY, 1, len(orderings))]
    return join([*head, *(_wrapped_values(values, count) for values in orderings), encode_longs(np.zeros(count, np.int64))])


def _wrapped_values(ordering: pa.Array | None, count: int) -> pa.Array:
    values = pa.array(np.zeros(count, np.int32)) if ordering is None else ordering
    wrapper = wrapper_of(values.type)
    if wrapper is None:
        raise UnsupportedTableError(f"ordering values of type {values.type} cannot stand in a delete block")
    valid = np.asarray(values.is_valid())
    present = values.filter(pa.array(valid))
    encoded = join([encode_longs(np.full(len(present), wrapper, np.int64)), _value_bytes(present, wrapper)])
    null = encode_longs(np.zeros(1, np.int64))
    return pa.concat_arrays([encoded, null]).take(pa.array(np.where(valid, np.cumsum(valid) - 1, len(encoded))))


def _value_bytes(values: pa.Array, wrapper: Wrapper) -> pa.Array:
    if wrapper is Wrapper.DECIMAL:
        octets = decimal_bytes(values.cast(_TYPES[wrapper]), 16)
        return encode_texts(encode_fixed(octets))
    if wrapper in _SIZED:
        return encode_texts(values)
    if wrapper is Wrapper.BOOLEAN:
        return encode_fixed(np.asarray(values.cast(pa.uint8())).reshape(-1, 1))
    if wrapper in _FIXED_SIZES:
        octets = np.ascontiguousarray(np.asarray(values)).view(np.uint8)
        return encode_fixed(octets.reshape(len(values), _FIXED_SIZES[wrapper]))
    kind = _TYPES[wrapper]
    return encode_longs(np.asarray(values.cast(kind).view(pa.int32() if kind.bit_width == 32 else pa.int64())).astype(np.int64))


def _flat(values: pa.Array) -> bytes:
    """All bytes of a newly made binary array."""
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    return values.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0])).to_pybytes() if len(values) else b""
