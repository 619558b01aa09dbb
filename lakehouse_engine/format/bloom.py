"""Bloom filters of base file footers, bit for bit as Hudi's (hudi-format 4.2; Hudi `SimpleBloomFilter`, `HoodieDynamicBoundedBloomFilter`).

If a filter lacks a key, Hudi's BLOOM index silently inserts that key a second time, so nothing here is approximate.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.errors import FormatError, OptionError
from lakehouse_engine.format.murmur import bit_positions

SIMPLE = "SIMPLE"
DYNAMIC_V0 = "DYNAMIC_V0"

_HEAD = struct.Struct(">iibi")
_DYNAMIC_HEAD = struct.Struct(">iii")
_FORMAT_VERSION = -1
_MURMUR = 1
_LEAST_ENTRIES = 1000
_MOST_BITS = 2**31 - 1


def build_bloom_filter(keys: pa.Array | pa.ChunkedArray, *, kind: str, entries: int, fpp: float, max_entries: int) -> BloomFilter:
    """Build the filter of a base file with these keys (strings). Raises `RecordKeyError` if one is null.

    `SIMPLE` is sized to the number of keys, at least 1000. `DYNAMIC_V0` has rows for `entries` keys each and grows to `max_entries`;
    further keys saturate it, as in Hudi. `fpp` is the false positive rate, between 0 and 1.
    """
    if kind not in (SIMPLE, DYNAMIC_V0) or entries < 1 or not 0 < fpp < 1:
        raise OptionError(f"no Bloom filter {kind!r} for {entries} entries with rate {fpp}: kinds are {SIMPLE} and {DYNAMIC_V0}")
    if kind == SIMPLE:
        return BloomFilter(kind, *_shape(max(len(keys), _LEAST_ENTRIES), fpp))._filled(keys)
    return BloomFilter(kind, *_shape(entries, fpp), keys_per_row=entries)._filled(keys, max_entries)


def filter_entries(keys: int) -> int:
    """Keys that a DYNAMIC_V0 filter of a file with so many is sized for: an eighth more, so that it need not be built again soon."""
    return max(keys + keys // 8, _LEAST_ENTRIES)


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """A Bloom filter. `rows` are bit sets of `vector_size` bits, least significant bit of each byte first; a SIMPLE filter has one row.

    `keys_per_row` and `keys_in_last_row` are 0 for SIMPLE.
    """

    kind: str
    nb_hash: int
    vector_size: int
    rows: tuple[bytes, ...] = ()
    keys_per_row: int = 0
    keys_in_last_row: int = 0

    def to_base64(self) -> str:
        """The text of the footer entry `org.apache.hudi.bloomfilter`."""
        head = _HEAD.pack(_FORMAT_VERSION, self.nb_hash, _MURMUR, self.vector_size)
        body = b"".join(head + row for row in self.rows)
        if self.kind == DYNAMIC_V0:
            body = head + _DYNAMIC_HEAD.pack(self.keys_per_row, self.keys_in_last_row, len(self.rows)) + body
        return base64.b64encode(body).decode("ascii")

    @classmethod
    def from_base64(cls, text: str, kind: str) -> BloomFilter:
        """Parse a footer's filter; `kind` is its `hoodie_bloom_filter_type_code`. Raises `FormatError` if the text is not such a filter."""
        try:
            data = base64.b64decode(text, validate=True)
            return _read_dynamic(data) if kind == DYNAMIC_V0 else _read_simple(data)
        except (binascii.Error, struct.error, ValueError) as error:
            raise FormatError(f"a {kind} Bloom filter of {len(text)} characters does not parse: {error}") from error

    def with_keys(self, keys: pa.Array | pa.ChunkedArray) -> BloomFilter | None:
        """This filter with more keys. None if it would exceed its designed false positive rate: build a new filter then.

        A SIMPLE filter does not record how many keys it holds; it counts as full when more bits are set than its number of hash functions
        was chosen for.
        """
        if not len(keys):
            return self
        if self.kind == DYNAMIC_V0:
            return self._filled(keys, 0) if self.keys_in_last_row + len(keys) <= self.keys_per_row else None
        grown = self._filled(keys)
        share = int(np.unpackbits(np.frombuffer(grown.rows[0], dtype=np.uint8)).sum()) / self.vector_size
        return grown if share <= _full_share(self.nb_hash) else None

    def serves(self, fpp: float) -> bool:
        """True if the filter was made for this false positive rate or a lower one."""
        return self.nb_hash >= _shape(_LEAST_ENTRIES, fpp)[0]

    def might_contain(self, keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """For each key, False if it was certainly not added."""
        found = np.zeros(len(keys), dtype=np.bool_)
        for at, bits in bit_positions(keys, self.nb_hash, self.vector_size):
            for row in self.rows:
                packed = np.frombuffer(row, dtype=np.uint8)
                found[at] |= ((packed[bits >> 3] >> (bits & 7).astype(np.uint8)) & 1).all(axis=0)
        return found

    def _filled(self, keys: pa.Array | pa.ChunkedArray, max_entries: int = 0) -> BloomFilter:
        """This filter with keys added in order: each row takes `keys_per_row`, then Hudi deals keys out over all rows."""
        size = self.vector_size
        row_of, row_count, in_last = self._rows_of(len(keys), max_entries)
        bits = np.zeros((row_count, size), dtype=np.uint8)
        for number, row in enumerate(self.rows):
            bits[number] = np.unpackbits(np.frombuffer(row, dtype=np.uint8), bitorder="little")[:size]
        flat = bits.reshape(-1)
        for at, places in bit_positions(keys, self.nb_hash, size):
            wide = places.astype(np.intp)  # numpy converts other integer types on each access, which takes twice as long
            flat[(wide if row_count == 1 else wide + row_of[at] * size).ravel()] = 1
        packed = np.packbits(bits, axis=1, bitorder="little")
        return BloomFilter(self.kind, self.nb_hash, size, tuple(row.tobytes() for row in packed), self.keys_per_row, in_last)

    def _rows_of(self, count: int, max_entries: int) -> tuple[npt.NDArray[np.int64], int, int]:
        """The row of each of the next `count` keys, the number of rows after them, and the last row's counter."""
        if self.kind == SIMPLE:
            return np.zeros(0, dtype=np.int64), 1, 0
        before, per_row = max(1, len(self.rows)), self.keys_per_row
        most = max(before, -(-max_entries // per_row))
        ordinal = np.arange(count, dtype=np.int64) + (before - 1) * per_row + self.keys_in_last_row
        row_of = ordinal // per_row
        beyond = row_of >= most
        # Past the maximum, Hudi puts one key into row 0, then starts its round at row 0 again (`getActiveStandardBF`).
        row_of[beyond] = np.maximum(ordinal[beyond] - most * per_row - 1, 0) % most
        rows = max(before, int(row_of.max(initial=0)) + 1)
        return row_of, rows, self.keys_in_last_row + count - (rows - before) * per_row


def _shape(entries: int, fpp: float) -> tuple[int, int]:
    """Number of hash functions and bits for `entries` keys at a false positive rate (Hudi `BloomFilterUtils`)."""
    size = min(math.ceil(entries * (-math.log(fpp) / (math.log(2) * math.log(2)))), _MOST_BITS)
    return math.ceil(math.log(2) * size / entries), size


def _full_share(nb_hash: int) -> float:
    """Share of set bits up to which a filter with this many hash functions is within its design: k was rounded up from ln 2 * m / n."""
    return 1 - 2 ** (-nb_hash / max(1, nb_hash - 1))


def _read_head(data: bytes, at: int) -> tuple[int, int]:
    version, nb_hash, hash_type, size = _HEAD.unpack_from(data, at)
    if version != _FORMAT_VERSION or hash_type != _MURMUR or nb_hash < 1 or size < 1:
        raise ValueError(f"version {version}, {nb_hash} hashes of type {hash_type}, {size} bits: expected version -1 and murmur (1)")
    return nb_hash, size


def _read_row(data: bytes, at: int, shape: tuple[int, int]) -> tuple[bytes, int]:
    end = at + _HEAD.size + (shape[1] + 7) // 8
    if _read_head(data, at) != shape or len(data) < end:
        raise ValueError("it is cut short, or its rows differ in size")
    return data[at + _HEAD.size : end], end


def _read_simple(data: bytes) -> BloomFilter:
    shape = _read_head(data, 0)
    row, end = _read_row(data, 0, shape)
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes follow it")
    return BloomFilter(SIMPLE, *shape, (row,))


def _read_dynamic(data: bytes) -> BloomFilter:
    shape = _read_head(data, 0)
    keys_per_row, keys_in_last_row, count = _DYNAMIC_HEAD.unpack_from(data, _HEAD.size)
    if keys_per_row < 1 or keys_in_last_row < 0 or count < 1:
        raise ValueError(f"{count} rows of {keys_per_row} keys with {keys_in_last_row} in the last")
    rows, at = [], _HEAD.size + _DYNAMIC_HEAD.size
    for _ in range(count):
        row, at = _read_row(data, at, shape)
        rows.append(row)
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes follow it")
    return BloomFilter(DYNAMIC_V0, *shape, tuple(rows), keys_per_row, keys_in_last_row)
