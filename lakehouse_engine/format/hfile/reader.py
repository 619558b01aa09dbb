"""Reads HFiles: all entries, or those of some keys, of prefixes or of a range of keys.

A reader fetches the end of the file once (trailer, indexes, file info), then only the data blocks that may hold the wanted entries.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.hfile.blocks import DATA, FILE_INFO, INNER_INDEX, LEAF_INDEX, META, ROOT_INDEX, Block, parse_block
from lakehouse_engine.format.hfile.cells import Cells, decode_cells, place
from lakehouse_engine.format.hfile.index import Index, parse_lower, parse_root
from lakehouse_engine.format.hfile.trailer import (
    AVERAGE_KEY,
    AVERAGE_VALUE,
    KEY_VALUE_VERSION,
    TRAILER_SIZE,
    Trailer,
    parse_info,
    parse_trailer,
)

_TAIL = 64 * 1024
"""Bytes that are read first from the end of a file; most log blocks and small files fit in them whole."""
_AT_ONCE = 16 * 1024 * 1024
"""Most bytes of neighbouring blocks that one request reads."""

Numbers = npt.NDArray[np.int64]


class Source(Protocol):
    """The bytes of an HFile."""

    @property
    def size(self) -> int: ...

    @property
    def identity(self) -> Hashable | None:
        """Cache key of the file and its content; None if its blocks must not be cached."""
        ...

    def read(self, offset: int, length: int) -> memoryview:
        """Exactly `length` bytes from `offset` on."""
        ...


@dataclass(frozen=True, slots=True)
class InMemory:
    """A `Source` over bytes in memory, such as the content of a log block."""

    data: bytes | memoryview
    identity: Hashable | None = None

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, offset: int, length: int) -> memoryview:
        return memoryview(self.data)[offset : offset + length]


@dataclass(frozen=True, slots=True)
class DataBlock:
    """A data block. All its keys are from `key`, which the data index has for it, up to, not including, `end`, the next block's (None: last
    block); `key` may be earlier than its first one.
    """

    key: bytes
    end: bytes | None
    stored: Block


BLOCKS: BoundedCache[memoryview] = BoundedCache(64 * 1024 * 1024, len)
"""Cache of decompressed blocks that look-ups read, for all files of this process."""


@dataclass(slots=True)
class HFileReader:
    """An HFile opened by `open_hfile`. Methods raise `FormatError` if the file is damaged."""

    source: Source
    trailer: Trailer
    info: dict[bytes, bytes]
    """The file info; its key `schema` has the Avro schema of the values."""
    meta: Index
    _root: Index
    _tail: memoryview = field(repr=False)
    _levels: Index | None = None

    def __len__(self) -> int:
        return self.trailer.entries

    @property
    def has_memstore(self) -> bool:
        """True if entries end with a memstore timestamp."""
        version = self.info.get(KEY_VALUE_VERSION)
        return version is not None and int.from_bytes(version, "big") == 1

    def averages(self) -> tuple[int, int] | None:
        """Average bytes of stored keys and of values, rounded down; None if the file does not say them."""
        key, value = self.info.get(AVERAGE_KEY), self.info.get(AVERAGE_VALUE)
        return None if key is None or value is None else (int.from_bytes(key, "big"), int.from_bytes(value, "big"))

    def scan(self) -> Iterator[Cells]:
        """All entries in order, some MiB at a time."""
        index = self._blocks()
        for start, end in _runs(index.offsets, index.sizes):
            numbers = np.arange(start, end)
            yield self._decoded(self._contents(index, numbers, keep=False))

    def read_all(self) -> Cells:
        """All entries at once."""
        return Cells.concat(list(self.scan()))

    def get(self, keys: pa.Array) -> Cells:
        """The entries of those of `keys` (`binary`, in any order) that exist, in the file's order."""
        index = self._blocks()
        wanted = np.unique(index.holding(keys))
        found = self._decoded(self._contents(index, wanted[wanted >= 0]))
        return found.filter(pc.is_in(found.keys, keys))

    def starts(self) -> tuple[pa.Array, Numbers]:
        """For each data block a key (`binary`, ascending) that is no later than its first one, and its bytes in the file."""
        index = self._blocks()
        return index.keys, index.sizes

    def range(self, begin: bytes, end: bytes | None, *, keep: bool = True) -> Cells:
        """The entries with keys from `begin` up to, not including, `end` (None: through the last). `keep`: cache the blocks."""
        return self._spans([(begin, end)], keep=keep)

    def blocks(self, begin: bytes, end: bytes | None) -> list[DataBlock]:
        """The data blocks that may have keys from `begin` up to, not including, `end` (None: through the last), decompressed."""
        index = self._blocks()
        first = max(0, bisect_right(range(len(index)), begin, key=lambda number: index.keys[number].as_py()) - 1)
        stop = max(first, place(index.keys, end))
        bounds = [*index.keys.slice(first, stop - first + 1).to_pylist(), None][: stop - first + 1]
        stored = self._parsed(index.offsets[first:stop], index.sizes[first:stop], DATA)
        return [DataBlock(key, after, block) for (key, after), block in zip(pairwise(bounds), stored, strict=True)]

    def entries(self, blocks: Sequence[DataBlock]) -> Cells:
        """The entries of data blocks of this file, in order."""
        return self._decoded([block.stored.content for block in blocks])

    def prefixes(self, prefixes: Sequence[bytes]) -> Cells:
        """The entries whose keys begin with any of these prefixes, in the file's order."""
        return self._spans([(prefix, _after(prefix)) for prefix in _apart(sorted(set(prefixes)))])

    def _spans(self, spans: Sequence[tuple[bytes, bytes | None]], *, keep: bool = True) -> Cells:
        """The entries in ascending spans of keys that do not overlap. Each block is decoded once."""
        index = self._blocks()
        spans = [(begin, end) for begin, end in spans if end is None or begin < end]
        if not len(index) or not spans:
            return Cells.empty()
        first = index.holding(pa.array([begin for begin, _ in spans], pa.binary()))
        last = index.holding(pa.array([begin if end is None else end for begin, end in spans], pa.binary()))
        last = np.where([end is None for _, end in spans], len(index) - 1, last)
        numbers = [np.arange(max(low, 0), high + 1) for low, high in zip(first.tolist(), last.tolist(), strict=True)]
        found = self._decoded(self._contents(index, np.unique(np.concatenate(numbers)), keep=keep))
        return Cells.concat([found.slice(place(found.keys, begin), place(found.keys, end)) for begin, end in spans])

    def meta_block(self, name: bytes) -> memoryview | None:
        """The content of a meta block; None if none has this name."""
        names = self.meta.keys.to_pylist()
        if name not in names:
            return None
        number = names.index(name)
        data = self._bytes(int(self.meta.offsets[number]), int(self.meta.sizes[number]))
        return parse_block(data, 0, self.trailer.compression, META).content

    def _blocks(self) -> Index:
        """All data blocks. Lower levels of the index are read on first use, and kept."""
        if self._levels is None:
            self._levels = self._lowest()
        return self._levels

    def _lowest(self) -> Index:
        index = self._root
        for _ in range(self.trailer.index_levels - 1):
            numbers = np.arange(len(index))
            parts = [parse_lower(content) for content in self._contents(index, numbers, LEAF_INDEX, INNER_INDEX)]
            index = Index.concat([index.take(numbers[:0]), *parts])
        return index

    def _decoded(self, contents: Sequence[memoryview]) -> Cells:
        return decode_cells(contents, memstore=self.has_memstore)

    def _contents(self, index: Index, numbers: Numbers, *magics: bytes, keep: bool = True) -> list[memoryview]:
        """Decompressed blocks, from the cache or with as few requests as possible."""
        key = self.source.identity if keep else None
        offsets, sizes = index.offsets[numbers], index.sizes[numbers]
        found = {offset: None if key is None else BLOCKS.get((key, offset)) for offset in offsets.tolist()}
        lacking = np.array([content is None for content in found.values()], np.bool_)
        offsets, sizes = offsets[lacking], sizes[lacking]
        for offset, block in zip(offsets.tolist(), self._parsed(offsets, sizes, *(magics or (DATA,))), strict=True):
            found[offset] = block.content
            if key is not None:
                BLOCKS.put((key, offset), block.content)
        return [content for content in found.values() if content is not None]

    def _parsed(self, offsets: Numbers, sizes: Numbers, *magics: bytes) -> Iterator[Block]:
        """The blocks at ascending offsets, read with as few requests as possible."""
        for start, end in _runs(offsets, sizes):
            base = int(offsets[start])
            data = self._bytes(base, int(offsets[end - 1] + sizes[end - 1]) - base)
            for offset in offsets[start:end].tolist():
                yield parse_block(data, offset - base, self.trailer.compression, *magics)

    def _bytes(self, offset: int, length: int) -> memoryview:
        if offset < 0 or length < 0 or offset + length > self.source.size:
            raise FormatError(f"an HFile of {self.source.size} bytes has no block of {length} bytes at {offset}")
        start = self.source.size - len(self._tail)
        if offset >= start:
            return self._tail[offset - start : offset - start + length]
        return self.source.read(offset, length)


def open_hfile(source: Source) -> HFileReader:
    """Open an HFile by reading its end: one request, or two if its indexes are large.

    Raises `FormatError` if the file is damaged or not an HFile, `UnsupportedTableError` for another version or codec.
    """
    tail = source.read(max(0, source.size - _TAIL), min(source.size, _TAIL))
    trailer = parse_trailer(tail)
    if not 0 <= trailer.load_on_open <= source.size - TRAILER_SIZE:
        raise FormatError(f"an HFile of {source.size} bytes has its indexes at {trailer.load_on_open}")
    if trailer.load_on_open < source.size - len(tail):
        tail = source.read(trailer.load_on_open, source.size - trailer.load_on_open)
    at, compression = trailer.load_on_open - (source.size - len(tail)), trailer.compression
    root = parse_block(tail, at, compression, ROOT_INDEX)
    names = parse_block(tail, at + root.length, compression, ROOT_INDEX)
    info = parse_block(tail, at + root.length + names.length, compression, FILE_INFO)
    meta = parse_root(names.content, trailer.meta_index_count, rows=False)
    data = parse_root(root.content, trailer.data_index_count, rows=True)
    return HFileReader(source, trailer, parse_info(info.content), meta, data, tail)


def _runs(offsets: Numbers, sizes: Numbers) -> Iterator[tuple[int, int]]:
    """Bounds of runs of adjacent blocks, each no larger than one request reads."""
    start, count = 0, len(offsets)
    for end in range(1, count + 1):
        goes_on = end < count and offsets[end] == offsets[end - 1] + sizes[end - 1]
        if not goes_on or offsets[end] + sizes[end] - offsets[start] > _AT_ONCE:
            yield start, end
            start = end


def _apart(prefixes: Sequence[bytes]) -> list[bytes]:
    """Sorted prefixes without those that begin with another one."""
    kept: list[bytes] = []
    for prefix in prefixes:
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    return kept


def _after(prefix: bytes) -> bytes | None:
    """The first key after all keys with this prefix; None if there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None
