"""Spark SQL's `xxhash64(text, number)` on the driver: XXH64 with seed 42, the hash of each argument being the seed of the next."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

_MASK = (1 << 64) - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_SEED = 42

Longs = npt.NDArray[np.uint64]


def xxhash64(text: str, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """`xxhash64(text, n)` for each n of `numbers` (bigint)."""
    seed = np.uint64(_hash_bytes(text.encode("utf-8"), _SEED))
    with np.errstate(over="ignore"):
        return _hash_longs(numbers.astype(np.uint64), seed).view(np.int64)


def _hash_longs(values: Longs, seed: np.uint64) -> Longs:
    first, second, third, fourth, fifth = (np.uint64(prime) for prime in (_P1, _P2, _P3, _P4, _P5))
    digest = (seed + fifth + np.uint64(8)) ^ (_turned(values * second, 31) * first)
    digest = _turned(digest, 27) * first + fourth
    digest ^= digest >> np.uint64(33)
    digest *= second
    digest ^= digest >> np.uint64(29)
    digest *= third
    return np.asarray(digest ^ (digest >> np.uint64(32)), dtype=np.uint64)


def _turned(values: Longs, bits: int) -> Longs:
    return np.asarray((values << np.uint64(bits)) | (values >> np.uint64(64 - bits)), dtype=np.uint64)


def _hash_bytes(data: bytes, seed: int) -> int:
    at = 0
    if len(data) >= 32:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
        for at in range(0, len(data) - 31, 32):
            lanes = [_round(lane, value) for lane, value in zip(lanes, struct.unpack_from("<4Q", data, at), strict=True)]
        at += 32
        digest = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            digest = ((digest ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        digest = (seed + _P5) & _MASK
    return _avalanche(_tail(data, at, (digest + len(data)) & _MASK))


def _tail(data: bytes, at: int, digest: int) -> int:
    """The last bytes that fill no stripe: by eight, by four, one by one."""
    while at + 8 <= len(data):
        digest = (_rotated(digest ^ _round(0, struct.unpack_from("<Q", data, at)[0]), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= len(data):
        digest = (_rotated(digest ^ (struct.unpack_from("<I", data, at)[0] * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        digest = _rotated(digest ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    return digest


def _round(lane: int, value: int) -> int:
    return _rotated((lane + value * _P2) & _MASK, 31) * _P1 & _MASK


def _rotated(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK


def _avalanche(digest: int) -> int:
    digest = (digest ^ (digest >> 33)) * _P2 & _MASK
    digest = (digest ^ (digest >> 29)) * _P3 & _MASK
    return digest ^ (digest >> 32)
