"""Parses a log file into blocks, in order, damaged stretches included (Hudi `HoodieLogFileReader`)."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from lakehouse_engine.format.log.blocks import FORMAT_VERSION, MAGIC, BlockType, HeaderKey, LogBlock

_LENGTH = struct.Struct(">Q")
_INTEGER = struct.Struct(">I")
_PREFIX = len(MAGIC) + _LENGTH.size
_TYPES = frozenset(BlockType) - {BlockType.CORRUPT}
_MAGIC = re.compile(re.escape(MAGIC))
_INSTANT = re.compile(r"[0-9]{14,17}")


class _Damage(Exception):
    """Why a stretch is not a block; does not leave this module."""


def read_blocks(data: bytes | memoryview) -> Iterator[LogBlock]:
    """Yield every block of a log file. `content` refers to `data`, which is not copied.

    A block is valid if its length fits the file, its trailer repeats that length and its parts add up to it. The bytes up to the next valid
    block are yielded as one corrupt stretch. So, unlike in Hudi, a whole block stays valid when garbage follows it.
    """
    view, position = memoryview(data), 0
    while position < len(view):
        try:
            block = _block(view, position)
        except _Damage as damage:
            position, block = _stretch(view, position, str(damage))
        else:
            position = block.end
        yield block


def _stretch(view: memoryview, start: int, damage: str) -> tuple[int, LogBlock]:
    """Where the next whole block begins, and the corrupt stretch from `start` up to there."""
    places = (found.start() for found in _MAGIC.finditer(view, start + 1))
    end = next((place for place in places if _whole(view, place)), len(view))
    header = _salvage(view[start:end])
    return end, LogBlock(BlockType.CORRUPT, header, view[start:end], {}, start, end - start, damage)


def _whole(view: memoryview, position: int) -> bool:
    try:
        _block(view, position)
    except _Damage:
        return False
    return True


def _block(view: memoryview, start: int) -> LogBlock:
    end = _end(view, start)
    position = start + _PREFIX
    version, position = _number(view, position, end)
    kind, position = _number(view, position, end)
    if version != FORMAT_VERSION:
        raise _Damage(f"its format version is {version}, not {FORMAT_VERSION}")
    if kind not in _TYPES:
        raise _Damage(f"its type is {kind}, which there is not")
    header, position = _texts(view, position, end)
    if position + _LENGTH.size > end:
        raise _Damage("its header leaves no room for a content")
    (size,) = _LENGTH.unpack_from(view, position)
    position += _LENGTH.size
    if position + size > end:
        raise _Damage(f"its content of {size} bytes does not fit")
    content = view[position : position + size]
    footer, position = _texts(view, position + size, end)
    if position != end:
        raise _Damage(f"{end - position} bytes are left behind its footer")
    return LogBlock(BlockType(kind), header, content, footer, start, end + _LENGTH.size - start)


def _end(view: memoryview, start: int) -> int:
    """Position of the trailer of the block at `start`."""
    if bytes(view[start : start + len(MAGIC)]) != MAGIC:
        raise _Damage("it does not begin with the magic")
    if start + _PREFIX > len(view):
        raise _Damage("the file ends within its length")
    (length,) = _LENGTH.unpack_from(view, start + len(MAGIC))
    trailer = start + _PREFIX + length - _LENGTH.size
    if length < 2 * _INTEGER.size + _LENGTH.size or trailer + _LENGTH.size > len(view):
        raise _Damage(f"its length {length} does not fit the file")
    (repeated,) = _LENGTH.unpack_from(view, trailer)
    if repeated != length + len(MAGIC):
        raise _Damage(f"its trailer says {repeated}, not {length + len(MAGIC)}")
    return int(trailer)


def _number(view: memoryview, position: int, end: int) -> tuple[int, int]:
    if position + _INTEGER.size > end:
        raise _Damage("it ends within a number")
    return _INTEGER.unpack_from(view, position)[0], position + _INTEGER.size


def _texts(view: memoryview, position: int, end: int) -> tuple[dict[int, str], int]:
    count, position = _number(view, position, end)
    if count * 2 * _INTEGER.size > end - position:
        raise _Damage(f"a map of {count} entries does not fit")
    texts: dict[int, str] = {}
    for _ in range(count):
        key, position = _number(view, position, end)
        size, position = _number(view, position, end)
        if position + size > end:
            raise _Damage("a map entry does not fit")
        if key in texts:
            raise _Damage(f"a map has the key {key} twice")
        try:
            texts[key] = str(view[position : position + size], "utf-8")
        except UnicodeDecodeError as error:
            raise _Damage("a map entry is no UTF-8") from error
        position += size
    return texts, position


def _salvage(stretch: memoryview) -> dict[int, str]:
    """Header with the instant that wrote a damaged block, if it can be read that far; else empty."""
    try:
        count, position = _number(stretch, _PREFIX + 2 * _INTEGER.size, len(stretch))
        for _ in range(min(count, len(HeaderKey))):
            key, position = _number(stretch, position, len(stretch))
            size, position = _number(stretch, position, len(stretch))
            text = bytes(stretch[position : position + size])
            position += size
            if key == HeaderKey.INSTANT_TIME and len(text) == size and _INSTANT.fullmatch(text.decode("ascii", "replace")):
                return {HeaderKey.INSTANT_TIME: text.decode("ascii")}
    except _Damage:
        return {}
    return {}
