"""The hashes in keys of metadata records (Hudi `HashID`): xxHash of 64 bits for columns and partitions, MD5 for files, as base64."""

from __future__ import annotations

import base64
import hashlib
import struct
from functools import lru_cache

_SEED = 0xFFFFFFFFDABADABA
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_WORD = 0xFFFFFFFFFFFFFFFF


@lru_cache(maxsize=65_536)
def name_hash(name: str) -> bytes:
    """Hash of a column name or a partition identifier, as 12 characters."""
    return base64.b64encode(struct.pack(">Q", xxhash64(name.encode("utf-8"), _SEED)))


def file_hash(name: str) -> bytes:
    """Hash of the bare name of a file, as 24 characters."""
    return base64.b64encode(hashlib.md5(name.encode("utf-8"), usedforsecurity=False).digest())


def xxhash64(data: bytes, seed: int = 0) -> int:
    """XXH64 of some bytes (the xxHash specification, version 0.1.1)."""
    at, size = 0, len(data)
    if size >= 32:
        lanes = [(seed + _P1 + _P2) & _WORD, (seed + _P2) & _WORD, seed, (seed - _P1) & _WORD]
        for at in range(0, size - 31, 32):
            lanes = [_round(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", data, at), strict=True)]
        at = size // 32 * 32
        value = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _WORD
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * _P1 + _P4) & _WORD
    else:
        value = (seed + _P5) & _WORD
    return _finished((value + size) & _WORD, data[at:])


def _finished(value: int, rest: bytes) -> int:
    """Mix in the last bytes, fewer than 32, and finish the hash."""
    at = 0
    while at + 8 <= len(rest):
        (word,) = struct.unpack_from("<Q", rest, at)
        value = (_rotated(value ^ _round(0, word), 27) * _P1 + _P4) & _WORD
        at += 8
    if at + 4 <= len(rest):
        (half,) = struct.unpack_from("<I", rest, at)
        value = (_rotated(value ^ half * _P1 & _WORD, 23) * _P2 + _P3) & _WORD
        at += 4
    for octet in rest[at:]:
        value = _rotated(value ^ octet * _P5 & _WORD, 11) * _P1 & _WORD
    value = (value ^ value >> 33) * _P2 & _WORD
    value = (value ^ value >> 29) * _P3 & _WORD
    return value ^ value >> 32


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _WORD, 31) * _P1 & _WORD


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _WORD
