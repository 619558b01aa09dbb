"""Blocks of HFiles: a header of 33 bytes, the content, space for checksums (hudi-format 9.3; Hudi `HFileBlock`).

magic (8) | size on disk without header (4) | size of the content without compression (4) | offset of the previous block, or -1 (8) |
checksum type (1) | bytes per checksum (4) | size on disk with header and without checksums (4). Integers are big-endian.

The HBase reader of Hudi 0.15 subtracts the space for checksums from an uncompressed block, so this space is written, filled with zeros,
with checksum type 0. No reader of Hudi verifies checksums; gzip has its own, which is verified here.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum

from lakehouse_engine.errors import FormatError, UnsupportedTableError

HEADER = struct.Struct(">8siiqbii")
BYTES_PER_CHECKSUM = 16 * 1024
_CHECKSUM_SIZE = 4
_NO_CHECKSUM = 0
_GZIP_WINDOW = 31
"""zlib's largest window, with gzip framing."""
LEVEL = 3
"""zlib's level. 6 takes 1.6 times as long, and makes a record index 8 % smaller."""

DATA = b"DATABLK*"
META = b"METABLKc"
ROOT_INDEX = b"IDXROOT2"
LEAF_INDEX = b"IDXLEAF2"
INNER_INDEX = b"IDXINTE2"
FILE_INFO = b"FILEINF2"


class Compression(IntEnum):
    """Codecs that Hudi uses, by their numbers in the trailer (HBase `Compression.Algorithm`)."""

    GZIP = 1
    NONE = 2

    @classmethod
    def of(cls, number: int) -> Compression:
        """The codec of this number. Raises `UnsupportedTableError` for codecs that Hudi does not use."""
        try:
            return cls(number)
        except ValueError as error:
            raise UnsupportedTableError(f"an HFile has the codec {number} of HBase; gzip (1) and none (2) are read") from error


@dataclass(frozen=True, slots=True)
class Block:
    """A block with its content decompressed. `body` is the content as it is stored; `length` is its size in the file, in bytes."""

    magic: bytes
    content: memoryview
    body: memoryview
    length: int


def render_block(magic: bytes, content: bytes | memoryview, compression: Compression, *, previous: int = -1, level: int = LEVEL) -> bytes:
    """Encode one block. `previous` is the offset of the previous block of its kind; `level` is zlib's."""
    body = bytes(content)
    if compression is Compression.GZIP:
        packer = zlib.compressobj(level, zlib.DEFLATED, _GZIP_WINDOW)
        body = packer.compress(body) + packer.flush()
    return framed(magic, body, len(content), previous)


def framed(magic: bytes, body: bytes | memoryview, size: int, previous: int) -> bytes:
    """A block around a stored `body`, whose content has `size` bytes; `previous` as in `render_block`."""
    stored = HEADER.size + len(body)
    room = _CHECKSUM_SIZE * -(-stored // BYTES_PER_CHECKSUM)
    head = HEADER.pack(magic, len(body) + room, size, previous, _NO_CHECKSUM, BYTES_PER_CHECKSUM, stored)
    return b"".join((head, body, bytes(room)))


def parse_block(data: memoryview, at: int, compression: Compression, *expected: bytes) -> Block:
    """Parse the block at `at`, which must have one of the `expected` magics. Raises `FormatError` if it is damaged."""
    if at < 0 or at + HEADER.size > len(data):
        raise FormatError(f"an HFile has no whole block at byte {at}")
    magic, on_disk, size, _, _, _, stored = HEADER.unpack_from(data, at)
    if magic not in expected:
        raise FormatError(f"an HFile has {magic!r} at byte {at}, where a block {' or '.join(map(repr, expected))} is expected")
    length = HEADER.size + on_disk
    if size < 0 or not HEADER.size <= stored <= length or at + length > len(data):
        raise FormatError(f"a block of an HFile has sizes that do not fit: {on_disk} and {stored} on disk, {size} of content")
    body = data[at + HEADER.size : at + stored]
    return Block(magic, _content(body, size, compression), body, length)


def _content(body: memoryview, size: int, compression: Compression) -> memoryview:
    if compression is Compression.NONE:
        if len(body) < size:
            raise FormatError(f"a block of an HFile has {len(body)} bytes, and {size} of content")
        return body[:size]
    try:
        content = zlib.decompress(body, _GZIP_WINDOW, max(size, 1))
    except zlib.error as error:
        raise FormatError(f"a block of an HFile does not decompress: {error}") from error
    if len(content) != size:
        raise FormatError(f"a block of an HFile decompresses to {len(content)} bytes, and its header says {size}")
    return memoryview(content)
