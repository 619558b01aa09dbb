"""Conversion between entries of data blocks and Arrow arrays of keys and values (hudi-format 9.3; Hudi `KeyValue`).

size of key (4) | size of value (4) | size of row (2) | row | size of family, 0 (1) | timestamp, the largest (8) | type, put (1) | value |
memstore timestamp, 0 (1). The row is the key that Hudi looks up; the rest of the stored key is the same in every entry.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import FormatError

Positions = npt.NDArray[np.int64]

SUFFIX = b"\0" + b"\x7f" + b"\xff" * 7 + b"\x04"
_HEAD = struct.Struct(">iiH")
_SIZES = struct.Struct(">ii")
_BARE = len(SUFFIX) + 2
"""Bytes of a stored key besides the row."""
_ENTRY = _SIZES.size + _BARE + 1
"""Bytes of an entry besides row and value."""
FRAME = _SIZES.size + 1
"""Bytes of an entry besides its stored key and its value."""
_MOST_ROW = 2**15 - 1
_MOST_INT32 = 2**31 - 1
_SIDE_BY_SIDE = 16
"""From this many blocks on, they are walked side by side; fewer are faster one after another."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Keys (`binary`, ascending in a file) and their values (`binary`); both arrays have the same length."""

    keys: pa.Array
    values: pa.Array

    def __len__(self) -> int:
        return len(self.keys)

    def slice(self, start: int, stop: int) -> Cells:
        return Cells(self.keys.slice(start, stop - start), self.values.slice(start, stop - start))

    def filter(self, mask: pa.Array) -> Cells:
        return Cells(self.keys.filter(mask), self.values.filter(mask))

    @classmethod
    def empty(cls) -> Cells:
        return cls(pa.array([], pa.binary()), pa.array([], pa.binary()))

    @classmethod
    def concat(cls, parts: Sequence[Cells]) -> Cells:
        """All parts in one. Raises `FormatError` if they exceed what one array holds (2 GiB)."""
        if not parts:
            return cls.empty()
        try:
            return cls(pa.concat_arrays([part.keys for part in parts]), pa.concat_arrays([part.values for part in parts]))
        except pa.ArrowInvalid as error:
            raise FormatError(f"the entries of HFiles are too many to be held at once: {error}") from error


def place(keys: pa.Array, key: bytes | None) -> int:
    """Number of the ascending `keys` that are less than `key` (None: all)."""
    return len(keys) if key is None else bisect_left(range(len(keys)), key, key=lambda number: keys[number].as_py())


def stored_key(row: bytes) -> bytes:
    """A key in its stored form, as in entries, indexes and the file info."""
    return struct.pack(">H", len(row)) + row + SUFFIX


def encode_cells(cells: Cells) -> pa.Array:
    """One byte string per entry (`large_binary`). Raises `FormatError` for a row of 32 KiB or more."""
    rows = np.asarray(pc.binary_length(cells.keys)).astype(np.int64)
    values = np.asarray(pc.binary_length(cells.values)).astype(np.int64)
    if len(rows) and int(rows.max()) > _MOST_ROW:
        raise FormatError(f"a key of an HFile has {int(rows.max())} bytes; {_MOST_ROW} are the most")
    heads = np.empty(len(rows), np.dtype([("key", ">i4"), ("value", ">i4"), ("row", ">u2")]))
    heads["key"], heads["value"], heads["row"] = rows + _BARE, values, rows
    offsets = pa.py_buffer(np.arange(len(rows) + 1, dtype=np.int64) * _HEAD.size)
    head = pa.Array.from_buffers(pa.large_binary(), len(rows), [None, offsets, pa.py_buffer(heads)])
    keys, octets = (one.cast(pa.large_binary()) for one in (cells.keys, cells.values))
    kind = pa.large_binary()
    return pc.binary_join_element_wise(head, keys, pa.scalar(SUFFIX, kind), octets, pa.scalar(b"\0", kind), pa.scalar(b"", kind))


def key_bytes(cells: Cells) -> tuple[int, int]:
    """Total bytes of the stored keys, and of the values."""
    rows, values = (pc.sum(pc.binary_length(one)).as_py() or 0 for one in (cells.keys, cells.values))
    return rows + _BARE * len(cells), values


def decode_cells(contents: Sequence[memoryview], *, memstore: bool = True) -> Cells:
    """The entries of data blocks, in order. `memstore`: each ends with its memstore timestamp (file info, `KEY_VALUE_VERSION`).

    Raises `FormatError` if an entry does not fit its block, or has a form that Hudi does not write.
    """
    filled = [content for content in contents if len(content)]
    if not filled:
        return Cells.empty()
    data = bytes(filled[0]) if len(filled) == 1 else b"".join(filled)
    ends = np.cumsum(np.array([len(content) for content in filled], np.int64))
    begins = np.concatenate([[0], ends[:-1]])
    extra = int(memstore)
    starts = _side_by_side(data, begins, ends, extra) if len(filled) >= _SIDE_BY_SIDE else _one_by_one(data, begins, ends, extra)
    return _cut(data, starts, extra)


def _one_by_one(data: bytes, begins: Positions, ends: Positions, extra: int) -> Positions:
    starts, unpack = array("q"), _SIZES.unpack_from
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        at = begin
        while at < end:
            if at + _ENTRY > end:
                raise _cut_short()
            starts.append(at)
            key, value = unpack(data, at)
            if key < _BARE or value < 0:
                raise _cut_short()
            at += _SIZES.size + key + value + extra
        if at != end:
            raise _cut_short()
    return np.array(starts, np.int64)


def _side_by_side(data: bytes, begins: Positions, ends: Positions, extra: int) -> Positions:
    """Starts of entries, found in rounds: the first entry of every block, then the second, ..."""
    words = _overlapping(data, ">i4")
    rounds, at, end = [], begins, ends
    while len(at):
        if bool((at + _SIZES.size + _BARE > end).any()):
            raise _cut_short()
        rounds.append(at)
        key, value = words[at], words[at + 4]
        if bool((key < _BARE).any()) or bool((value < 0).any()):
            raise _cut_short()
        at = at + (key.astype(np.int64) + value + (_SIZES.size + extra))
        if bool((at > end).any()):
            raise _cut_short()
        left = at < end
        at, end = at[left], end[left]
    starts = np.concatenate(rounds)
    starts.sort()
    return starts


def _cut(data: bytes, starts: Positions, extra: int) -> Cells:
    words, halves, octets = _overlapping(data, ">i4"), _overlapping(data, ">u2"), np.frombuffer(data, np.uint8)
    key, value = words[starts].astype(np.int64), words[starts + 4].astype(np.int64)
    row = halves[starts + 8].astype(np.int64)
    row_at = starts + _HEAD.size
    value_at = starts + _SIZES.size + key
    if bool((row + _BARE > key).any()) or bool((octets[row_at + row] != 0).any()) or bool((row + _BARE != key).any()):
        raise FormatError("an entry of an HFile has a column family or qualifier, which those of Hudi have not")
    if extra and bool((octets[value_at + value] != 0).any()):
        raise FormatError("an entry of an HFile has a memstore timestamp, which those of Hudi have not")
    # Arrow copies rows and values out of one array over all bytes, whose stretches are: row, gap, value, gap.
    bounds = np.empty(4 * len(starts) + 1, np.int64)
    bounds[0:-1:4], bounds[1::4], bounds[2::4], bounds[3::4] = row_at, row_at + row, value_at, value_at + value
    bounds[-1] = len(data)
    small = len(data) <= _MOST_INT32
    kind = pa.binary() if small else pa.large_binary()
    offsets = pa.py_buffer(bounds.astype(np.int32) if small else bounds)
    stretches = pa.Array.from_buffers(kind, len(bounds) - 1, [None, offsets, pa.py_buffer(data)])
    numbers = np.arange(0, 4 * len(starts), 4)
    keys, values = (stretches.take(pa.array(numbers + place)).cast(pa.binary()) for place in (0, 2))
    return Cells(keys, values)


def _overlapping(data: bytes, kind: str) -> npt.NDArray[np.int64]:
    """Array with, for each byte, the number that begins there."""
    number = np.dtype(kind)
    return np.ndarray((max(0, len(data) - number.itemsize + 1),), number, data, strides=(1,))


def _cut_short() -> FormatError:
    return FormatError("an entry of an HFile does not fit its block")
