"""Hadoop's 32-bit murmur2 over Arrow strings, many keys and many seeds at once (hudi-format 4.2; Hadoop `MurmurHash`).

Keys are read where they lie in the Arrow buffers, grouped by length. What a word adds to the hash does not depend on the seed, so
words are mixed once, however many rounds follow; chunks are small enough to stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.errors import RecordKeyError

UInt32s = npt.NDArray[np.uint32]
Int64s = npt.NDArray[np.int64]

_M = np.uint32(0x5BD1E995)
_CHUNK_KEYS = 16_384
_CHUNK_BYTES = 1 << 22


def bit_positions(keys: pa.Array | pa.ChunkedArray, rounds: int, modulus: int) -> Iterator[tuple[Int64s, npt.NDArray[np.int32]]]:
    """Chunks of `(rows, bits)`: indices into `keys`, and for each of `rounds` (one a matrix row) the bit of each key.

    The hash of a round is the next one's seed, the first being 0; a bit is `abs(hash % modulus)` with Java's signed remainder.
    Raises `RecordKeyError` on a null key.
    """
    first = 0
    for chunk in keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]:
        for rows, length, words, tail in _mixed_words(_as_string(chunk)):
            yield rows + first, _rounds(len(rows), length, words, tail, rounds, modulus)
        first += len(chunk)


def _as_string(keys: pa.Array) -> pa.Array:
    if keys.null_count:
        raise RecordKeyError(f"{keys.null_count} record keys are null: a Bloom filter holds keys")
    return keys if keys.type in (pa.string(), pa.large_string()) else keys.cast(pa.string())


def _mixed_words(keys: pa.Array) -> Iterator[tuple[Int64s, int, list[UInt32s], UInt32s | None]]:
    """Chunks of keys of one length: their indices, that length, the mixed word at each place, and the last 1 to 3 bytes."""
    offsets, data = _buffers(keys)
    for group, length in _by_length(np.diff(offsets)):
        step = max(1, min(_CHUNK_KEYS, _CHUNK_BYTES // (length + 1)))
        # Where all keys are of one length they lie side by side, and a stride is cheaper than indices.
        stride = length if len(group) == len(keys) else 0
        for at in range(0, len(group), step):
            rows = group[at : at + step]
            starts = offsets[rows]
            words = [_mix(_words_at(data, starts, place, stride)) for place in range(0, length - 3, 4)]
            yield rows, length, words, _tail(data, starts, length)


def _by_length(lengths: Int64s) -> Iterator[tuple[Int64s, int]]:
    """Indices of the keys of each length."""
    if not len(lengths):
        return
    order = np.argsort(lengths, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        yield group, int(lengths[group[0]])


def _buffers(keys: pa.Array) -> tuple[Int64s, npt.NDArray[np.uint8]]:
    """Where each key starts and ends, and the bytes."""
    wide = keys.type == pa.large_string()
    _, offsets, data = keys.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64 if wide else np.int32)[keys.offset : keys.offset + len(keys) + 1]
    return ends.astype(np.int64), np.frombuffer(data if data is not None else b"", dtype=np.uint8)


def _words_at(data: npt.NDArray[np.uint8], starts: Int64s, place: int, stride: int) -> UInt32s:
    """The little-endian 4-byte word at `place` of each key, at any alignment; `stride` is the distance of keys where it is constant."""
    every: npt.NDArray[Any] = np.ndarray((len(data) - 3,), dtype="<u4", buffer=data, strides=(1,))
    if stride:
        return every[starts[0] + place :: stride][: len(starts)].astype(np.uint32)
    return every[starts + place].astype(np.uint32, copy=False)


def _mix(words: UInt32s) -> UInt32s:
    words *= _M
    words ^= words >> np.uint32(24)
    words *= _M
    return words


def _tail(data: npt.NDArray[np.uint8], starts: Int64s, length: int) -> UInt32s | None:
    """The bytes past the last whole word. Hadoop counts them from the end, and extends their signs, unlike murmur2 proper."""
    rest = length & 3
    if not rest:
        return None
    signed = data.view(np.int8)
    mixed = np.zeros(len(starts), dtype=np.int32)
    for place in range(rest):
        mixed ^= signed[starts + (length - 1 - place)].astype(np.int32) << np.int32(8 * place)
    return mixed.view(np.uint32)


def _rounds(count: int, length: int, words: list[UInt32s], tail: UInt32s | None, rounds: int, modulus: int) -> npt.NDArray[np.int32]:
    bits = np.empty((rounds, count), dtype=np.int32)
    hashes, shifted = np.zeros(count, dtype=np.uint32), np.empty(count, dtype=np.uint32)
    for bit in bits:
        hashes ^= np.uint32(length)
        for word in words:
            hashes *= _M
            hashes ^= word
        if tail is not None:
            hashes ^= tail
            hashes *= _M
        hashes ^= np.right_shift(hashes, 13, out=shifted)
        hashes *= _M
        hashes ^= np.right_shift(hashes, 15, out=shifted)
        np.fmod(hashes.view(np.int32), np.int32(modulus), out=bit)
    return np.abs(bits, out=bits)
