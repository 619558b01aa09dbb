"""Hadoop's 32-bit murmur2 over Arrow strings, many keys and many seeds at once (hudi-format 4.2; Hadoop `MurmurHash`).

Keys are read in place from the Arrow buffers, grouped by length. What a word adds to the hash does not depend on the seed, so words are
mixed once, however many rounds follow; chunks are small enough for the processor's cache.

Many keys of one length are hashed side by side, word by word. A few keys, which may be long, are hashed one after another with plain
integers: one numpy call per word would take thirty times as long.
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
_FEW_KEYS = 16
_WORDS_AT_ONCE = 1 << 16


def bit_positions(keys: pa.Array | pa.ChunkedArray, rounds: int, modulus: int) -> Iterator[tuple[Int64s, npt.NDArray[np.int32]]]:
    """Yield chunks of `(rows, bits)`: indices into `keys`, and the bit of each key in each round (a matrix with one row per round).

    The hash of a round is the seed of the next one; the first seed is 0. A bit is `abs(hash % modulus)` with Java's signed remainder.
    Raises `RecordKeyError` on a null key.
    """
    first = 0
    for chunk in keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]:
        offsets, data = _buffers(_as_string(chunk))
        for rows, length in _by_length(np.diff(offsets)):
            hashes = _few_hashes if len(rows) <= _FEW_KEYS else _many_hashes
            for part, bits in hashes(offsets, data, rows, length, rounds, modulus):
                yield part + first, bits
        first += len(chunk)


def _as_string(keys: pa.Array) -> pa.Array:
    if keys.null_count:
        raise RecordKeyError(f"{keys.null_count} record keys are null: a Bloom filter holds keys")
    return keys if keys.type in (pa.string(), pa.large_string()) else keys.cast(pa.string())


_Bits = Iterator[tuple[Int64s, npt.NDArray[np.int32]]]


def _many_hashes(offsets: Int64s, data: npt.NDArray[np.uint8], group: Int64s, length: int, rounds: int, modulus: int) -> _Bits:
    """Yield the indices and bits of chunks of keys of one length."""
    step = max(1, min(_CHUNK_KEYS, _CHUNK_BYTES // (length + 1)))
    # Keys that are all of one length are adjacent, and a stride is cheaper than indices.
    stride = length if len(group) == len(offsets) - 1 else 0
    for at in range(0, len(group), step):
        rows = group[at : at + step]
        starts = offsets[rows]
        words = [_mix(_words_at(data, starts, place, stride)) for place in range(0, length - 3, 4)]
        yield rows, _rounds(len(rows), length, words, _tail(data, starts, length), rounds, modulus)


def _few_hashes(offsets: Int64s, data: npt.NDArray[np.uint8], group: Int64s, length: int, rounds: int, modulus: int) -> _Bits:
    """As `_many_hashes`, one key after another."""
    for row in group:
        start = offsets[row : row + 1]
        words = _mix(np.frombuffer(data, "<u4", count=length // 4, offset=int(start[0])).astype(np.uint32))
        tail = _tail(data, start, length)
        yield np.array([row], np.int64), _rounds_of_one(length, words, None if tail is None else int(tail[0]), rounds, modulus)


def _rounds_of_one(length: int, words: UInt32s, tail: int | None, rounds: int, modulus: int) -> npt.NDArray[np.int32]:
    """The bit of one key in each round, as `_rounds`."""
    most, factor, hashed = 0xFFFFFFFF, int(_M), 0
    bits = np.empty((rounds, 1), dtype=np.int32)
    for bit in bits:
        hashed ^= length
        for at in range(0, len(words), _WORDS_AT_ONCE):
            for word in words[at : at + _WORDS_AT_ONCE].tolist():
                hashed = hashed * factor & most ^ word
        if tail is not None:
            hashed = (hashed ^ tail) * factor & most
        hashed = (hashed ^ hashed >> 13) * factor & most
        hashed ^= hashed >> 15
        bit[0] = abs(hashed - (1 << 32) if hashed >> 31 else hashed) % modulus
    return bits


def _by_length(lengths: Int64s) -> Iterator[tuple[Int64s, int]]:
    """Yield the indices of the keys of each length."""
    if not len(lengths):
        return
    order = np.argsort(lengths, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1):
        yield group, int(lengths[group[0]])


def _buffers(keys: pa.Array) -> tuple[Int64s, npt.NDArray[np.uint8]]:
    """Start and end of each key, and the bytes."""
    wide = keys.type == pa.large_string()
    _, offsets, data = keys.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64 if wide else np.int32)[keys.offset : keys.offset + len(keys) + 1]
    return ends.astype(np.int64), np.frombuffer(data if data is not None else b"", dtype=np.uint8)


def _words_at(data: npt.NDArray[np.uint8], starts: Int64s, place: int, stride: int) -> UInt32s:
    """The little-endian 4-byte word at `place` of each key, at any alignment; `stride` is the distance between keys if constant, else 0."""
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
    """The bytes after the last whole word. Hadoop counts them from the end and extends their signs, unlike murmur2 proper."""
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
