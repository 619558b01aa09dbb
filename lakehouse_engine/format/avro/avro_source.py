"""Reads Avro's binary primitives, many values at a time.

A read takes the position of one value in each of many records and returns all values and the positions after them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import FormatError

Positions = npt.NDArray[np.int64]
_MOST_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True)
class AvroSource:
    """The bytes that records are read from. Methods raise `FormatError` if a value does not fit.

    `ends` are the ends of the records in these bytes, ascending.
    """

    octets: npt.NDArray[np.uint8]
    ends: Positions

    @classmethod
    def of(cls, data: bytes | memoryview, ends: Positions | None = None) -> AvroSource:
        return cls(np.frombuffer(data, np.uint8), np.array([len(data)], np.int64) if ends is None else ends)

    def left(self, at: Positions) -> Positions:
        """Bytes from each position to the end of its record."""
        records = np.searchsorted(self.ends, at)
        return np.asarray(self.ends[np.minimum(records, len(self.ends) - 1)] - at)

    def longs(self, at: Positions) -> tuple[npt.NDArray[np.int64], Positions]:
        """Zigzag numbers of variable length (Avro `int` and `long`)."""
        octet = self.read(at)
        raw = (octet & 0x7F).astype(np.uint64)
        at, more, shift = at + 1, np.flatnonzero(octet & 0x80), 7
        while len(more):
            octet = self.read(at[more])
            if shift > 63 or (shift == 63 and bool((octet > 1).any())):
                raise FormatError("an Avro number has more than 64 bits")
            raw[more] |= (octet & 0x7F).astype(np.uint64) << np.uint64(shift)
            at[more] += 1
            more, shift = more[octet >= 0x80], shift + 7
        return (raw >> np.uint64(1)).view(np.int64) ^ -(raw & np.uint64(1)).view(np.int64), at

    def read(self, at: Positions) -> npt.NDArray[np.uint8]:
        """One byte at each position."""
        if len(at) and (int(at.max()) >= len(self.octets) or int(at.min()) < 0):
            raise FormatError("an Avro record ends within a value")
        return self.octets[at]

    def fixed(self, at: Positions, size: int) -> tuple[npt.NDArray[np.uint8], Positions]:
        """`size` bytes at each position, as a matrix with one row per value."""
        if len(at) and (int(at.max()) + size > len(self.octets) or int(at.min()) < 0):
            raise FormatError("an Avro record ends within a value")
        return self.octets[at[:, None] + np.arange(size)], at + size

    def texts(self, at: Positions) -> tuple[pa.Array, Positions]:
        """`bytes` and `string` values (length, then bytes), as a binary array."""
        sizes, at = self.longs(at)
        if len(at) == 0:
            return pa.array([], pa.binary()), at
        if int(sizes.min()) < 0 or int(sizes.max()) > len(self.octets):
            raise FormatError("an Avro text has a length that does not fit")
        ends = at + sizes
        # Arrow copies the values out of one array over all bytes: every second stretch is a value, the others are the gaps.
        bounds = np.empty(2 * len(at), np.int64)
        bounds[0::2], bounds[1::2] = at, ends
        if int(ends[-1]) > len(self.octets) or bool((np.diff(bounds) < 0).any()):
            raise FormatError("an Avro record ends within a text")
        small = len(self.octets) <= _MOST_INT32
        offsets = pa.py_buffer(bounds.astype(np.int32) if small else bounds)
        kind = pa.binary() if small else pa.large_binary()
        stretches = pa.Array.from_buffers(kind, len(bounds) - 1, [None, offsets, pa.py_buffer(self.octets)])
        return stretches.take(pa.array(np.arange(0, len(bounds), 2))).cast(pa.binary()), ends


def int32s(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """The numbers as 32 bits. Raises `FormatError` if one does not fit."""
    narrow = values.astype(np.int32)
    if bool((narrow != values).any()):
        raise FormatError("an Avro int has more than 32 bits")
    return narrow


def utf8(values: pa.Array) -> pa.Array:
    """Binary values as text. Raises `FormatError` if one is not UTF-8."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise FormatError(f"an Avro string is no UTF-8: {error}") from error


def decimals(octets: npt.NDArray[np.uint8], kind: pa.DataType) -> pa.Array:
    """Numbers given as rows of big-endian bytes -> decimals of type `kind`."""
    count, size = octets.shape
    sign = np.where(octets[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8) if size else np.zeros((count, 1), np.uint8)
    if size > 16 and bool((octets[:, : size - 16] != sign).any()):
        raise FormatError("an Avro decimal has more than 128 bits")
    octets = octets[:, -16:]
    wide = np.empty((count, 16), np.uint8)
    wide[:, : octets.shape[1]] = octets[:, ::-1]
    wide[:, octets.shape[1] :] = sign
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(wide)])


def decimals_of_bytes(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """As `decimals`, for binary values of any length up to 16 bytes."""
    sizes = np.asarray(pc.binary_length(values))
    if len(sizes) and int(sizes.max()) > 16:
        raise FormatError("an Avro decimal has more than 128 bits")
    parts, places = [], np.empty(len(values), np.int64)
    done = 0
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes == size)
        same = values.take(pa.array(rows))
        flat = np.frombuffer(same.buffers()[2], np.uint8, len(rows) * int(size)) if size else np.empty(0, np.uint8)
        parts.append(decimals(flat.reshape(len(rows), int(size)), kind))
        places[rows] = np.arange(done, done + len(rows))
        done += len(rows)
    return pa.concat_arrays(parts).take(pa.array(places)) if parts else pa.array([], kind)
