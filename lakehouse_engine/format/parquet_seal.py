"""Checksums over what Parquet's own leave out: page headers and the footer.

A page checksum covers the content of a page (Parquet `PageHeader.crc`). The headers, which say how to decode it, and the footer, which says
what it means, have none. So the footer's metadata gets one text with the CRC of everything before the footer that is not page content with
a checksum, and one with the CRC of the footer itself, including its length and the last magic. Other readers ignore both.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.seal import BLANK_SEAL, SEAL_KEY

PAGES_KEY = "lakehouse.pages"
"""Key of the text `crc32:<8 hex digits>`, followed by alternating counts of covered and skipped bytes."""

SMALL = 1024 * 1024
"""A file up to this many bytes is read whole to check its headers, on any storage."""

_MAGIC, _END, _TAIL = b"PAR1", 8, 64 * 1024
_KEY, _BLANK, _CRC = SEAL_KEY.encode(), BLANK_SEAL.encode(), "crc32:"
# Between the key and its text are the text's field header and length in Thrift's compact protocol.
_SEAL = re.compile(rb"lakehouse\.seal..(crc32:[0-9a-f]{8})", re.DOTALL)
# A file rewritten with its metadata, as by parquet-mr's tools, is not the file that the texts describe.
_REWRITTEN = b"parquet-mr"
_I32_FIELD = 0x15


class PageSums:
    """Checksum of everything in a file that is not page content, and the places of page contents."""

    def __init__(self) -> None:
        self._crc = 0
        self._lengths = [0]

    def cover(self, data: bytes | memoryview) -> None:
        """Add the next bytes, which are not page content."""
        self._crc = zlib.crc32(data, self._crc)
        self._lengths[-1] += len(data)

    def pass_over(self, length: int) -> None:
        """Skip the next bytes: page content, whose checksum is in its header."""
        self._lengths += (length, 0)

    def texts(self) -> dict[str, str]:
        """Texts for the end of the footer's metadata, with a blank for the footer's own checksum."""
        return {PAGES_KEY: f"{_CRC}{self._crc:08x} {' '.join(map(str, self._lengths))}", SEAL_KEY: BLANK_SEAL}


class Target(Protocol):
    """Object that a file is written to."""

    def write(self, data: bytes) -> object: ...


class SealingSink:
    """The sink of a `ParquetWriter` that writes to `target`; its writes must alternate between page headers and page contents.

    Writes are passed on at once, until `hold`, called before the writer is closed, gives the metadata to add; `finish` writes the footer.
    """

    closed = False

    def __init__(self, target: Target) -> None:
        self._target = target
        self._sums = PageSums()
        self._page: int | None = None
        self._held: list[bytes] | None = None
        self._size = 0

    def write(self, data: bytes) -> int:
        self._size += len(data)
        if self._held is not None:
            self._held.append(bytes(data))
            return len(data)
        if len(data) == self._page:
            self._sums.pass_over(len(data))
            self._page = None
        else:
            self._sums.cover(data)
            header = page_header(data)
            self._page = None if header is None else header[0]
        self._target.write(data)
        return len(data)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Do nothing: held bytes may not be passed on yet, and others already were."""

    def close(self) -> None:
        """Do nothing: the caller that opened the target closes it."""

    def hold(self) -> dict[str, str]:
        """The metadata to add to the footer, last. Call it after all rows are written; later writes are held back."""
        self._held = []
        return self._sums.texts()

    def finish(self, change: Callable[[bytes], bytes] = bytes) -> int:
        """Write the footer, changed by `change`; returns the size of the file in bytes. Raises `FormatError` if the writer wrote rows after
        `hold`.
        """
        tail = b"".join(self._held or ())
        if len(tail) != _tail_length(tail):
            raise FormatError("the Parquet writer wrote more than a footer at its end; this version of pyarrow cannot be used")
        changed = change(tail)
        self._target.write(sealed_tail(changed))
        self._size += len(changed) - len(tail)
        return self._size


def sealed_tail(tail: bytes) -> bytes:
    """The end of a file, from its footer on, with its checksum in the blank of the `PageSums` texts."""
    before, _, after = tail.rpartition(_BLANK)
    return before + _text(tail) + after


def read_metadata(source: pa.NativeFile, *, verify: bool = True) -> pq.FileMetaData:
    """Read the footer of a Parquet file. Raises `FormatError` if it differs from what was sealed, and what Arrow raises."""
    return read_with_tail(source, verify=verify)[0]


def read_with_tail(source: pa.NativeFile, *, verify: bool = True) -> tuple[pq.FileMetaData, bytes]:
    """As `read_metadata`; also returns the bytes of the file from its footer on."""
    size = source.size()
    tail: bytes = source.read_at(min(size, _TAIL), max(0, size - _TAIL))
    length = _tail_length(tail)
    if len(tail) < length <= size:
        tail = source.read_at(length, size - length)
    if not _END < length <= len(tail):
        return pq.read_metadata(source), b""
    tail = tail[len(tail) - length :]
    if verify and _is_sealed(tail) is False:
        raise FormatError("its footer fails its checksum")
    return pq.read_metadata(pa.BufferReader(tail)), tail


def check_pages(source: pa.NativeFile, metadata: pq.FileMetaData, *, window: int = 0) -> None:
    """Check the bytes between page contents; a reader has to verify the contents by their own checksums. `window`: bytes to read at once if
    each read is costly; 0 reads only what is checked, except for a small file.

    Raises `FormatError`. A file without these checksums, as from other writers, passes.
    """
    found = page_lengths(metadata)
    if found is None:
        return
    crc, lengths = found
    total = sum(lengths)
    if total > source.size():
        raise FormatError("it is shorter than its footer says")
    pieces = _Pieces(source, total, total if total <= SMALL else window)
    value = position = 0
    for turn, length in enumerate(lengths):
        if length and not turn % 2:
            value = zlib.crc32(pieces.read(position, length), value)
        position += length
    if value != crc:
        raise FormatError("the headers of its pages fail their checksum")


class _Pieces:
    """The first `total` bytes of a file, read in ascending order, at least `window` at a time."""

    def __init__(self, source: pa.NativeFile, total: int, window: int) -> None:
        self._source, self._total, self._window = source, total, window
        self._start, self._data = 0, b""

    def read(self, position: int, length: int) -> bytes:
        if not self._start <= position <= position + length <= self._start + len(self._data):
            wanted = min(max(self._window, length), self._total - position)
            self._start, self._data = position, self._source.read_at(wanted, position)
        return self._data[position - self._start : position - self._start + length]


def page_lengths(metadata: pq.FileMetaData) -> tuple[int, list[int]] | None:
    """The footer's record of pages: the checksum of covered bytes, and alternating counts of covered and skipped bytes. None if it has
    none, or if another program rewrote the file. Raises `FormatError`.
    """
    texts = metadata.metadata or {}
    text = texts.get(PAGES_KEY.encode())
    if text is None or metadata.created_by.startswith(_REWRITTEN.decode()):
        return None
    try:
        head, *lengths = text.decode("ascii").split(" ")
        return int(head.removeprefix(_CRC), 16), [int(length) for length in lengths]
    except ValueError as error:
        raise FormatError(f"its {PAGES_KEY} does not parse") from error


def _is_sealed(tail: bytes) -> bool | None:
    """True if a footer is as it was sealed; None if it was not sealed."""
    found = _last_seal(tail)
    if found is None:
        return False if PAGES_KEY.encode() in tail and _REWRITTEN not in tail else None
    if _REWRITTEN in tail[found.end() :]:
        return None
    view = memoryview(tail)  # a view: the tail may have megabytes of Bloom filter
    return found.group(1) == _text(view[: found.start(1)], _BLANK, view[found.end(1) :])


def _last_seal(tail: bytes) -> re.Match[bytes] | None:
    """The last seal; earlier text may be user data. The search starts at the end, as a footer may have megabytes of Bloom filter."""
    place = tail.rfind(_KEY)
    while place >= 0:
        found = _SEAL.match(tail, place)
        if found is not None:
            return found
        place = tail.rfind(_KEY, 0, place)
    return None


def _text(*blank: bytes | memoryview) -> bytes:
    value = 0
    for part in blank:
        value = zlib.crc32(part, value)
    return f"{_CRC}{value:08x}".encode()


def _tail_length(tail: bytes) -> int:
    """Bytes of the footer at the end of `tail`, including its length and magic; 0 if there is none."""
    return int.from_bytes(tail[-_END:-4], "little") + _END if len(tail) >= _END and tail.endswith(_MAGIC) else 0


def page_header(header: bytes) -> tuple[int, int] | None:
    """Content length and checksum from the header of a page with a checksum; None for any other bytes.

    The first four fields of `PageHeader` are numbers: type, both sizes, checksum.
    """
    position, numbers = 0, []
    for _ in range(4):
        if position >= len(header) or header[position] != _I32_FIELD:
            return None
        number, position = _varint(header, position + 1)
        numbers.append((number >> 1) ^ -(number & 1))
    return (numbers[2], numbers[3] & 0xFFFFFFFF) if position < len(header) and header[-1] == 0 else None


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            break
    return value, position
