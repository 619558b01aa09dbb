"""Copies column chunks of Parquet files without decoding them, and assembles new files from them.

A chunk does not contain its position: its pages can be copied into another file unchanged if that file's footer has the chunk's entry with
other offsets (parquet.thrift, `ColumnMetaData`). Arrow's writer cannot do that, so the footer of such a file is made here, modelled on one
that Arrow wrote without rows. Only chunks of files with `lakehouse.pages` (`parquet_seal`) qualify: the start and checksum of each page are
known without decoding one.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.parquet_seal import PageSums, page_header, page_lengths, sealed_tail
from lakehouse_engine.format.thrift import BINARY, I64, LIST, STRUCT, ThriftList, ThriftStruct, read_struct, write_struct

_MAGIC, _END = b"PAR1", 8
# Field numbers in parquet.thrift.
_SCHEMA, _ROWS, _GROUPS, _TEXTS = 2, 3, 4, 5  # FileMetaData
_CHUNKS, _BYTES, _GROUP_ROWS, _FIRST, _COMPRESSED = 1, 2, 3, 5, 6  # RowGroup
_CHUNK_OFFSET, _ENTRY = 2, 3  # ColumnChunk
_TYPE, _PATH, _RAW, _STORED, _DATA, _INDEX, _DICTIONARY = 1, 3, 6, 7, 9, 10, 11  # ColumnMetaData
_STATISTICS, _PAGES, _BLOOM = 12, 13, 14
_BOUNDS = (1, 2, 5, 6)  # Statistics: the greatest and least value, in the old and the new form
_FLOATING = frozenset({4, 5})  # FLOAT and DOUBLE in Type
_KIND, _ENCODING = 1, 2  # PageEncodingStats
_DICTIONARY_PAGE, _BY_DICTIONARY = 2, frozenset({2, 8})  # PageType, Encoding

Pieces = Sequence[bytes | memoryview]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column chunk: its `ColumnChunk` in the footer, its first byte, the number of its first page in the file, and alternating lengths of
    its pages' headers and contents.
    """

    entry: ThriftStruct
    start: int
    page: int
    lengths: tuple[int, ...]

    @property
    def length(self) -> int:
        return sum(self.lengths)

    @property
    def column(self) -> str:
        """Top-level column that this chunk belongs to."""
        path: ThriftList = self.entry.get(_ENTRY).get(_PATH)
        return str(path.values[0].decode("utf-8"))

    @property
    def lacks_bounds(self) -> bool:
        """True for floating point numbers of a column without statistics, as earlier releases wrote them: Hudi takes them all for null."""
        meta = self.entry.get(_ENTRY)
        return meta.get(_TYPE) in _FLOATING and len(meta.get(_PATH).values) == 1 and meta.get(_STATISTICS) is None

    def without_bounds(self) -> Chunk:
        """The chunk without a least and a greatest value. Of values with NaN, which Spark and Hudi order above all numbers, Arrow writes
        bounds that leave it out, where Java writes none.
        """
        return replace(self, entry=_without_bounds(self.entry))

    @property
    def is_dictionary(self) -> bool:
        """True if all values are stored as dictionary indices, as far as the chunk's entry shows."""
        told: ThriftList | None = self.entry.get(_ENTRY).get(_PAGES)
        kinds = set() if told is None else {page.get(_ENCODING) for page in told.values if page.get(_KIND) != _DICTIONARY_PAGE}
        return bool(kinds) and kinds <= _BY_DICTIONARY

    def checked(self, data: memoryview) -> list[memoryview]:
        """Alternating headers and contents of the pages. Raises `FormatError` if a page fails its checksum."""
        ends = list(itertools.accumulate(self.lengths, initial=0))
        pieces = [data[start:end] for start, end in itertools.pairwise(ends)]
        for header, content in zip(pieces[::2], pieces[1::2], strict=True):
            if page_header(bytes(header)) != (len(content), zlib.crc32(content)):
                raise FormatError(f"a page of the column {self.column!r} fails its checksum")
        return pieces


@dataclass(frozen=True, slots=True)
class ChunkedGroup:
    """A row group as stored: chunks in the order of the schema's leaves."""

    num_rows: int
    total_bytes: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class ChunkedFile:
    """The footer of a Parquet file whose chunks can be copied."""

    footer: ThriftStruct
    groups: tuple[ChunkedGroup, ...]

    @classmethod
    def of(cls, tail: bytes, metadata: pq.FileMetaData) -> ChunkedFile | None:
        """Parse `tail` (the file from its footer on) and its metadata. None if the footer does not record where pages are, or chunks have
        parts elsewhere in the file. Raises `FormatError`.
        """
        told = page_lengths(metadata)
        if told is None:
            return None
        footer = read_struct(tail[:-_END])
        pages = _Pages.of(told[1])
        groups = []
        for group in footer.get(_GROUPS).values:
            chunks = [pages.chunk(entry) for entry in group.get(_CHUNKS).values]
            found = tuple(chunk for chunk in chunks if chunk is not None)
            if len(found) < len(chunks):
                return None
            groups.append(ChunkedGroup(group.get(_GROUP_ROWS), group.get(_BYTES), found))
        return cls(footer, tuple(groups))

    def dictionaries(self) -> frozenset[str]:
        """Columns whose leaves are all stored as dictionaries in all row groups."""
        chunks = [chunk for group in self.groups for chunk in group.chunks]
        return frozenset(chunk.column for chunk in chunks) - {chunk.column for chunk in chunks if not chunk.is_dictionary}

    @property
    def lacks_bounds(self) -> bool:
        """True if some chunk does (`Chunk.lacks_bounds`)."""
        return any(chunk.lacks_bounds for group in self.groups for chunk in group.chunks)

    def has_schema_of(self, other: ChunkedFile) -> bool:
        """True if both files store the same columns in the same way."""
        return bool(self.footer.get(_SCHEMA) == other.footer.get(_SCHEMA))


@dataclass(frozen=True, slots=True)
class _Pages:
    """Page positions: alternating `lengths` of headers and contents, without the magic, and the number of the page at each start byte."""

    lengths: tuple[int, ...]
    numbers: dict[int, int]

    @classmethod
    def of(cls, told: list[int]) -> _Pages:
        lengths = (told[0] - len(_MAGIC), *told[1:])
        sizes = map(sum, zip(lengths[:-1:2], lengths[1::2], strict=True))
        return cls(lengths, {at: number for number, at in enumerate(itertools.accumulate(sizes, initial=len(_MAGIC)))})

    def chunk(self, entry: ThriftStruct) -> Chunk | None:
        meta: ThriftStruct = entry.get(_ENTRY)
        if set(entry.fields) - {_CHUNK_OFFSET, _ENTRY} or meta.get(_INDEX) or meta.get(_BLOOM):
            return None
        start = meta.get(_DICTIONARY) or meta.get(_DATA)
        first, behind = self.numbers.get(start), self.numbers.get(start + meta.get(_STORED))
        return None if first is None or behind is None else Chunk(entry, start, first, self.lengths[2 * first : 2 * behind])


class ChunkAssembly:
    """Writes a Parquet file to `target` from encoded chunks. `pattern` provides the schema; its rows are ignored."""

    def __init__(self, target: pa.NativeFile, pattern: ChunkedFile) -> None:
        self._target, self._pattern = target, pattern
        self._sums = PageSums()
        self._groups: list[ThriftStruct] = []
        self._rows = self._size = 0
        self._cover(_MAGIC)

    def add(self, num_rows: int, chunks: Iterable[tuple[Chunk, Pieces]]) -> None:
        """Write a row group of chunks, in the order of the schema's leaves, each with its alternating page headers and contents."""
        start = self._size
        entries = [self._add(chunk, pieces) for chunk, pieces in chunks]
        metas = [entry.get(_ENTRY) for entry in entries]
        group = ThriftStruct()
        group.set(_CHUNKS, LIST, ThriftList(STRUCT, entries))
        group.set(_BYTES, I64, sum(meta.get(_RAW) for meta in metas))
        group.set(_GROUP_ROWS, I64, num_rows)
        group.set(_FIRST, I64, start)
        group.set(_COMPRESSED, I64, self._size - start)
        self._groups.append(group)
        self._rows += num_rows

    def finish(self, texts: Mapping[str, str]) -> int:
        """Write the footer with this key-value metadata; returns the size of the file in bytes."""
        footer = self._pattern.footer.copy()
        footer.set(_ROWS, I64, self._rows)
        footer.set(_GROUPS, LIST, ThriftList(STRUCT, self._groups))
        footer.set(_TEXTS, LIST, ThriftList(STRUCT, [_text(*pair) for pair in {**texts, **self._sums.texts()}.items()]))
        content = write_struct(footer)
        self._write(sealed_tail(content + len(content).to_bytes(4, "little") + _MAGIC))
        return self._size

    def _add(self, chunk: Chunk, pieces: Pieces) -> ThriftStruct:
        shift = self._size - chunk.start
        for header, content in zip(pieces[::2], pieces[1::2], strict=True):
            self._cover(header)
            self._sums.pass_over(len(content))
            self._write(content)
        return _shifted(chunk.entry, shift)

    def _cover(self, data: bytes | memoryview) -> None:
        self._sums.cover(data)
        self._write(data)

    def _write(self, data: bytes | memoryview) -> None:
        self._target.write(data)
        self._size += len(data)


def tail_without_bounds(tail: bytes, places: Iterable[tuple[int, int]]) -> bytes:
    """The end of a file, from its footer on, with no bounds of chunks by the numbers of their row group and leaf."""
    footer = read_struct(tail[:-_END])
    for group, leaf in places:
        chunks = footer.get(_GROUPS).values[group].get(_CHUNKS).values
        chunks[leaf] = _without_bounds(chunks[leaf])
    content = write_struct(footer)
    return content + len(content).to_bytes(4, "little") + _MAGIC


def _without_bounds(entry: ThriftStruct) -> ThriftStruct:
    meta: ThriftStruct = entry.get(_ENTRY).copy()
    statistics: ThriftStruct = meta.get(_STATISTICS).copy()
    for number in _BOUNDS:
        statistics.set(number, BINARY, None)
    meta.set(_STATISTICS, STRUCT, statistics)
    changed = entry.copy()
    changed.set(_ENTRY, STRUCT, meta)
    return changed


def _shifted(entry: ThriftStruct, shift: int) -> ThriftStruct:
    """The entry of a chunk that is moved by `shift` bytes."""
    meta: ThriftStruct = entry.get(_ENTRY).copy()
    meta.set(_DATA, I64, meta.get(_DATA) + shift)
    if meta.get(_DICTIONARY):
        meta.set(_DICTIONARY, I64, meta.get(_DICTIONARY) + shift)
    moved = entry.copy()
    moved.set(_CHUNK_OFFSET, I64, 0)
    moved.set(_ENTRY, STRUCT, meta)
    return moved


def _text(key: str, value: str) -> ThriftStruct:
    pair = ThriftStruct()
    pair.set(1, BINARY, key.encode("utf-8"))
    pair.set(2, BINARY, value.encode("utf-8"))
    return pair
