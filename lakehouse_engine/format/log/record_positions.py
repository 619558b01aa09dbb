"""Base file row numbers of a block's records, as portable 64-bit Roaring bitmaps in base64 (hudi-format II.3; Hudi `LogReaderUtils`).

A 64-bit bitmap is a count, then for each part a high half and a 32-bit bitmap. That has containers of numbers with the same upper 16 bits:
a sorted array, 65536 bits, or runs. All integers are little-endian.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lakehouse_engine.errors import FormatError

RowNumbers: TypeAlias = npt.NDArray[np.int64]

_PLAIN, _WITH_RUNS = 0x303A, 0x303B
_FEW = 4
"""From this many containers on, a bitmap with runs also stores their offsets."""
_MOST_IN_ARRAY = 4096
_BITS = 8192
"""Size of a bit-set container, in bytes."""


def decode_record_positions(text: str) -> RowNumbers:
    """Decode row numbers, which ascend. Raises `FormatError`."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FormatError(f"the record positions of a block are no base64 text: {error}") from error
    source = _Source(data)
    parts = []
    for _ in range(source.number("<Q")):
        high = source.number("<I")
        parts.append(_decode_bitmap(source).astype(np.int64) | (high << 32))
    if source.at != len(data):
        raise FormatError(f"{len(data) - source.at} bytes are left behind the record positions of a block")
    found = np.concatenate([np.empty(0, np.int64), *parts])
    if bool((np.diff(found) <= 0).any()) or (len(found) and int(found[0]) < 0):
        raise FormatError("the record positions of a block do not ascend")
    return found


def encode_record_positions(rows: RowNumbers) -> str:
    """Encode row numbers. Raises `FormatError` unless they ascend and are not negative."""
    if len(rows) and (int(rows[0]) < 0 or bool((np.diff(rows) <= 0).any())):
        raise FormatError("record positions of a block have to ascend from 0 on")
    halves, starts = np.unique(rows >> 32, return_index=True)
    parts = [struct.pack("<Q", len(halves))]
    for half, part in zip(halves, np.split(rows, starts)[1:], strict=True):
        parts += [struct.pack("<I", int(half)), _encode_bitmap((part & 0xFFFFFFFF).astype(np.uint32))]
    return base64.b64encode(b"".join(parts)).decode("ascii")


class _Source:
    """Bytes that are read one after another."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def number(self, form: str) -> int:
        size = struct.calcsize(form)
        return int(struct.unpack(form, self.take(size))[0])

    def numbers(self, count: int) -> npt.NDArray[np.uint16]:
        return np.frombuffer(self.take(2 * count), "<u2")

    def take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self._data):
            raise FormatError("the record positions of a block end too soon")
        found, self.at = self._data[self.at : end], end
        return found


def _decode_bitmap(source: _Source) -> npt.NDArray[np.uint32]:
    cookie = source.number("<I")
    runs = np.zeros(0, np.uint8)
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        runs = np.unpackbits(np.frombuffer(source.take((count + 7) // 8), np.uint8), bitorder="little")
    elif cookie == _PLAIN:
        count = source.number("<I")
    else:
        raise FormatError(f"the record positions of a block have a bitmap that begins with {cookie:#x}, which is no Roaring bitmap")
    heads = source.numbers(2 * count)
    if not len(runs) or count >= _FEW:
        source.take(4 * count)
    parts = [np.empty(0, np.uint32)]
    for number in range(count):
        size = int(heads[2 * number + 1]) + 1
        values = _runs(source, size) if len(runs) and runs[number] else _plain(source, size)
        if len(values) != size:
            raise FormatError(f"a container in the record positions of a block has {len(values)} numbers, and says {size}")
        parts.append(values | (np.uint32(heads[2 * number]) << np.uint32(16)))
    return np.concatenate(parts)


def _plain(source: _Source, count: int) -> npt.NDArray[np.uint32]:
    if count <= _MOST_IN_ARRAY:
        return source.numbers(count).astype(np.uint32)
    bits = np.unpackbits(np.frombuffer(source.take(_BITS), np.uint8), bitorder="little")
    return np.flatnonzero(bits).astype(np.uint32)


def _runs(source: _Source, count: int) -> npt.NDArray[np.uint32]:
    """Numbers of a run container, `count` in all. Each run is its first number and how many follow it."""
    pairs = source.numbers(2 * source.number("<H")).astype(np.int64).reshape(-1, 2)
    lengths = pairs[:, 1] + 1
    if int(lengths.sum()) != count:
        raise FormatError(f"the runs in the record positions of a block have {int(lengths.sum())} numbers, and say {count}")
    before = np.cumsum(lengths) - lengths
    numbers: npt.NDArray[np.uint32] = (np.arange(int(lengths.sum())) + np.repeat(pairs[:, 0] - before, lengths)).astype(np.uint32)
    return numbers


def _encode_bitmap(values: npt.NDArray[np.uint32]) -> bytes:
    keys, starts, sizes = np.unique(values >> np.uint32(16), return_index=True, return_counts=True)
    pairs = [_container((part & np.uint32(0xFFFF)).astype("<u2")) for part in np.split(values, starts)[1:]]
    containers, is_run = [content for content, _ in pairs], np.array([has_runs for _, has_runs in pairs])
    if is_run.any():
        head = struct.pack("<I", _WITH_RUNS | (len(containers) - 1) << 16) + np.packbits(is_run, bitorder="little").tobytes()
    else:
        head = struct.pack("<II", _PLAIN, len(containers))
    head += np.stack([keys.astype("<u2"), (sizes - 1).astype("<u2")], axis=1).tobytes()
    if not is_run.any() or len(containers) >= _FEW:
        lengths = np.array([len(content) for content in containers], np.int64)
        head += (len(head) + 4 * len(containers) + np.cumsum(lengths) - lengths).astype("<u4").tobytes()
    return head + b"".join(containers)


def _container(values: npt.NDArray[np.uint16]) -> tuple[bytes, bool]:
    """The smallest form of a container, and True if that is runs."""
    last = np.append(np.flatnonzero(np.diff(values) != 1), len(values) - 1)
    first = np.append(0, last[:-1] + 1)
    if 2 + 4 * len(first) < min(2 * len(values), _BITS):
        runs = np.stack([values[first], (last - first).astype("<u2")], axis=1)
        return struct.pack("<H", len(first)) + runs.tobytes(), True
    if len(values) <= _MOST_IN_ARRAY:
        return values.tobytes(), False
    bits = np.zeros(8 * _BITS, np.uint8)
    bits[values] = 1
    return np.packbits(bits, bitorder="little").tobytes(), False
