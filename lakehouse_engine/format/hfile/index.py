"""Indexes of HFiles: the blocks of one kind, by their first keys (hudi-format 9.3; Hudi `HFileRootIndexBlock`, `HFileLeafIndexBlock`).

A root index is a list of entries: offset (8) | size on disk (4) | size of the key as a Hadoop number | key. A lower-level block has the
number of its entries (4), the start of each entry and the end of the last, relative to the end of that table (4 each), and entries without
the key size. A key of the data index is a stored key, or its row size and row only; it may lie between the last key of the block before and
the first of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import FormatError

_PLACE = struct.Struct(">qi")
_NUMBER = struct.Struct(">i")
_ROW_SIZE = struct.Struct(">H")


@dataclass(frozen=True, slots=True)
class Index:
    """Blocks in order: offset, size in bytes, and first key of each (a row for data blocks, a name for meta blocks)."""

    offsets: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    keys: pa.Array

    def __len__(self) -> int:
        return len(self.offsets)

    @classmethod
    def of(cls, entries: Sequence[tuple[int, int, bytes]]) -> Index:
        offsets = np.array([entry[0] for entry in entries], np.int64)
        sizes = np.array([entry[1] for entry in entries], np.int64)
        return cls(offsets, sizes, pa.array([entry[2] for entry in entries], pa.binary()))

    @classmethod
    def concat(cls, parts: Sequence[Index]) -> Index:
        offsets, sizes = np.concatenate([one.offsets for one in parts]), np.concatenate([one.sizes for one in parts])
        return cls(offsets, sizes, pa.concat_arrays([one.keys for one in parts]))

    def take(self, numbers: npt.NDArray[np.int64]) -> Index:
        return Index(self.offsets[numbers], self.sizes[numbers], self.keys.take(pa.array(numbers)))

    def holding(self, keys: pa.Array) -> npt.NDArray[np.int64]:
        """For each of `keys` (`binary`, in any order) the number of the only block that can have it; -1 if the key precedes the first
        block.
        """
        return holding(self.keys, keys)


def holding(starts: pa.Array, keys: pa.Array) -> npt.NDArray[np.int64]:
    """For each of `keys` the number of the last of the ascending `starts` that is not greater; -1 if all are (all `binary`)."""
    if not len(starts) or not len(keys):
        return np.full(len(keys), -1, np.int64)
    # Positions in one sorted sequence: a start sorts before an equal key that is looked up.
    both = pa.concat_arrays([starts, keys])
    is_asked = np.arange(len(both)) >= len(starts)
    order = np.asarray(pc.sort_indices(pa.table({"key": both, "asked": is_asked}), [("key", "ascending"), ("asked", "ascending")]))
    before = np.cumsum(~is_asked[order])
    found = np.empty(len(both), np.int64)
    found[order] = before - 1
    return found[len(starts) :]


def render_root(index: Index, keys: Sequence[bytes]) -> bytes:
    """The content of a root index; `keys` in stored form."""
    places = zip(index.offsets.tolist(), index.sizes.tolist(), keys, strict=True)
    return b"".join(_PLACE.pack(offset, size) + hadoop_number(len(key)) + key for offset, size, key in places)


def parse_root(content: memoryview, count: int, *, rows: bool) -> Index:
    """Parse the first `count` entries. With `rows`, keys are stored keys of data blocks. Raises `FormatError`."""
    entries, at = [], 0
    for _ in range(count):
        if at + _PLACE.size >= len(content):
            raise FormatError(f"the root index of an HFile has fewer entries than the {count} of its trailer")
        offset, size = _PLACE.unpack_from(content, at)
        length, at = parse_hadoop_number(content, at + _PLACE.size)
        if length < 0 or at + length > len(content):
            raise FormatError("a key in the root index of an HFile does not fit")
        entries.append((offset, size, _key(content[at : at + length], rows)))
        at += length
    if at != len(content):
        raise FormatError(f"the root index of an HFile has more entries than the {count} of its trailer")
    return Index.of(entries)


def parse_lower(content: memoryview) -> Index:
    """Parse a lower-level index block of data blocks. Raises `FormatError`."""
    if len(content) < _NUMBER.size:
        raise FormatError("an index block of an HFile ends within its count")
    (count,) = _NUMBER.unpack_from(content, 0)
    table = _NUMBER.size * (count + 2)
    if count < 0 or table > len(content):
        raise FormatError(f"an index block of an HFile cannot have {count} entries")
    bounds = [table + bound for bound in struct.unpack_from(f">{count + 1}i", content, _NUMBER.size)]
    entries = []
    for begin, end in pairwise(bounds):
        if not table <= begin <= end - _PLACE.size or end > len(content):
            raise FormatError("an entry in an index block of an HFile does not fit")
        offset, size = _PLACE.unpack_from(content, begin)
        entries.append((offset, size, _key(content[begin + _PLACE.size : end], rows=True)))
    return Index.of(entries)


def _key(stored: memoryview, rows: bool) -> bytes:
    if not rows:
        return bytes(stored)
    size = _ROW_SIZE.unpack_from(stored)[0] if len(stored) >= _ROW_SIZE.size else -1
    if not 0 <= size <= len(stored) - _ROW_SIZE.size:
        raise FormatError("a key in an index of an HFile has no whole row")
    return bytes(stored[_ROW_SIZE.size : _ROW_SIZE.size + size])


def hadoop_number(value: int) -> bytes:
    """Encode a non-negative number in Hadoop's variable-length form (`WritableUtils.writeVLong`)."""
    if value <= 127:
        return struct.pack("b", value)
    octets = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return struct.pack("b", -112 - len(octets)) + octets


def parse_hadoop_number(data: memoryview, at: int) -> tuple[int, int]:
    """Decode a non-negative number; returns it and the position after it. Raises `FormatError`."""
    (first,) = struct.unpack_from("b", data, at)
    if first >= -112:
        return first, at + 1
    size = -112 - first
    if size > 8 or at + 1 + size > len(data):
        raise FormatError("a number in an index of an HFile is negative, or does not fit")
    return int.from_bytes(data[at + 1 : at + 1 + size], "big"), at + 1 + size
