"""Java's `String.hashCode` for a whole column of texts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint32]
Numbers = npt.NDArray[np.int64]

_CHUNK = 65_536
"""Texts hashed at once, so that the working set fits the processor's cache."""
_CHUNK_BYTES = 1 << 22


def java_string_hash(texts: pa.Array) -> Hashes:
    """`s[0]*31^(n-1) + ... + s[n-1]` over the UTF-16 code units of every text, as unsigned 32 bits. No text may be null."""
    plain = texts.cast(pa.large_string())
    _, offset_buffer, data = plain.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[plain.offset : plain.offset + len(plain) + 1] if len(plain) else np.zeros(1, np.int64)
    content = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    hashes = np.empty(len(plain), np.uint32)
    for low, high in _chunks(offsets):
        begin, end = offsets[low], offsets[high]
        hashes[low:high] = _hash(content[begin:end], offsets[low : high + 1] - begin)
    return hashes


def _chunks(offsets: Numbers) -> Iterator[tuple[int, int]]:
    """Bounds of runs of texts that are limited in number and, except for a single text, in length."""
    low, count = 0, len(offsets) - 1
    while low < count:
        high = int(np.searchsorted(offsets, offsets[low] + _CHUNK_BYTES, side="right")) - 1
        high = min(max(high, low + 1), low + _CHUNK, count)
        yield low, high
        low = high


def _hash(content: npt.NDArray[np.uint8], offsets: Numbers) -> Hashes:
    if len(content) and content.max() >= 0x80:
        units, offsets = _utf16(content, offsets)
    else:
        units = content.astype(np.uint32)
    lengths = np.diff(offsets)
    # Power of each code unit, from its distance to the end of its text.
    powers = np.cumprod(np.full(max(1, int(lengths.max())), 31, np.uint32), dtype=np.uint32)
    powers = np.concatenate([np.ones(1, np.uint32), powers])
    distance = np.repeat(offsets[1:], lengths) - np.arange(len(units)) - 1
    products = units * powers[distance]
    hashes = np.zeros(len(lengths), np.uint32)
    filled = np.flatnonzero(lengths)
    if len(filled):
        hashes[filled] = np.add.reduceat(products, offsets[filled], dtype=np.uint32)
    return hashes


def _utf16(content: npt.NDArray[np.uint8], offsets: Numbers) -> tuple[Hashes, Numbers]:
    """Code units, and each text's start among them. A character has one unit, or two if UTF-8 needs four bytes."""
    units = np.frombuffer(content.tobytes().decode("utf-8").encode("utf-16-le"), np.uint16).astype(np.uint32)
    begun = np.concatenate([np.zeros(1, np.int64), np.cumsum(((content & 0xC0) != 0x80).astype(np.int64) + (content >= 0xF0))])
    return units, begun[offsets]
