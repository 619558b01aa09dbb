"""Looks up a batch's keys in the key columns of base files.

Row groups that cannot hold any key, by statistics or the file's Bloom filter, are not read. Each lookup builds a hash table of the keys. So
a file whose range covers few of the keys is asked for those only, and files that may hold any of them are asked together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.files.base_file import iter_base_file
from lakehouse_engine.files.footer import BaseFileFooter, read_footer
from lakehouse_engine.format.bloom import BloomFilter
from lakehouse_engine.index.base import Rows, StoredKeys, TaggedFile
from lakehouse_engine.index.key_bounds import bounds_of
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.read.guarantees import Bounds
from lakehouse_engine.record.matching import matches
from lakehouse_engine.storage.base import Storage

_AT_ONCE = 2_000_000
"""Keys of a batch that are looked up at once; limits a task's memory."""
_STORED_BYTES = 64 * 1024 * 1024
"""Stored keys that are looked up at once."""
_SAMPLE = 64
"""Sample of keys that decides whether most of them are in a file's range."""
_NO_ROWS: Rows = np.empty(0, dtype=np.int64)


def stored_filter(footer: BaseFileFooter) -> BloomFilter | None:
    """Bloom filter in a base file's footer; None without one."""
    return None if footer.bloom is None else BloomFilter.from_base64(footer.bloom, footer.bloom_kind or "SIMPLE")


@dataclass(frozen=True, slots=True)
class TagTask:
    """Look up the keys of `rows` (row numbers of the batch; None for all) in some base files."""

    storage: Storage
    bases: tuple[BaseFile, ...]
    stored: StoredKeys
    keys: pa.Array
    rows: Rows | None
    use_bloom: bool


def tag_files(task: TagTask) -> list[TaggedFile]:
    """Positions of the batch's keys in each base file, in order. Raises as `read_footer` and `iter_base_file`."""
    found: list[_Found] = []
    asked, together = _Asked.all_of(task.keys), _Together()
    for base in task.bases:
        footer = read_footer(task.storage, base)  # It may have a large Bloom filter, so only one is held at a time.
        file = _Found(base, footer.num_rows, bounds_of(footer) if task.stored.bounded else None)
        found.append(file)
        mine = _may_be_in(task, file, footer, asked)
        for piece in _stored_keys(task, file, footer, mine):
            if mine is asked:
                together.add(piece, asked)
            else:
                _look_up([piece], mine)
    together.look_up(asked)
    return [file.tagged(task) for file in found]


@dataclass(slots=True)
class _Found:
    """Hits in one file: its row numbers and the numbers of the keys."""

    base: BaseFile
    num_rows: int
    bounds: Bounds | None
    positions: list[Rows] = field(default_factory=lambda: [_NO_ROWS])
    keys: list[Rows] = field(default_factory=lambda: [_NO_ROWS])

    def tagged(self, task: TagTask) -> TaggedFile:
        positions, keys = np.concatenate(self.positions), np.concatenate(self.keys)
        order = np.argsort(positions, kind="stable")
        rows = keys[order] if task.rows is None else task.rows[keys[order]]
        return TaggedFile(self.base, self.num_rows, positions[order], rows, self.bounds)


def _may_be_in(task: TagTask, file: _Found, footer: BaseFileFooter, asked: _Asked) -> _Asked:
    mine = asked.narrowed(*(file.bounds or (None, None)))
    if task.use_bloom and (bloom := stored_filter(footer)) is not None:
        mine = mine.only(np.flatnonzero(bloom.might_contain(mine.keys)).astype(np.int64))
    return mine


@dataclass(frozen=True, slots=True)
class _Asked:
    """Some keys of a batch, their numbers in it (None: all, in order), and a sample of them."""

    keys: pa.Array
    numbers: Rows | None
    sample: pa.Array

    @classmethod
    def all_of(cls, keys: pa.Array) -> _Asked:
        places = np.linspace(0, len(keys) - 1, min(len(keys), _SAMPLE)).astype(np.int64)
        return cls(keys, None, keys.take(pa.array(places)))

    def only(self, chosen: Rows) -> _Asked:
        """Those at some places."""
        return _Asked(self.keys.take(pa.array(chosen)), chosen if self.numbers is None else self.numbers[chosen], self.sample.slice(0, 0))

    def narrowed(self, low: str | None, high: str | None) -> _Asked:
        """Keys from `low` to `high`; this object itself if they seem to be most of them, or an end is unknown."""
        if low is None or high is None or 2 * _count(self.sample, low, high) > len(self.sample):
            return self
        within = np.asarray(_within(self.keys, low, high))
        return self.only(np.flatnonzero(within).astype(np.int64))

    def has_any(self, low: str | None, high: str | None) -> bool:
        """True if any key is between the two; an unknown end is unbounded."""
        if low is None or high is None or not len(self.keys):
            return bool(len(self.keys))
        return _count(self.sample, low, high) > 0 or bool(pc.any(_within(self.keys, low, high)).as_py())


def _within(keys: pa.Array, low: str, high: str) -> pa.BooleanArray:
    return pc.and_(pc.greater_equal(keys, low), pc.less_equal(keys, high))


def _count(keys: pa.Array, low: str, high: str) -> int:
    return int(pc.sum(_within(keys, low, high)).as_py() or 0)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Stored keys of a file (`size` bytes), with their row numbers."""

    file: _Found
    numbers: Rows
    keys: list[pa.Array]
    size: int


@dataclass(slots=True)
class _Together:
    """Parts of files that may hold any of the keys, to be looked up together."""

    pieces: list[_Piece] = field(default_factory=list)
    size: int = 0

    def add(self, piece: _Piece, asked: _Asked) -> None:
        self.pieces.append(piece)
        self.size += piece.size
        if self.size >= _STORED_BYTES:
            self.look_up(asked)

    def look_up(self, asked: _Asked) -> None:
        if self.pieces:
            _look_up(self.pieces, asked)
        self.pieces, self.size = [], 0


def _look_up(pieces: Sequence[_Piece], asked: _Asked) -> None:
    """Add every hit to its file's result."""
    stored = pa.chunked_array([chunk for piece in pieces for chunk in piece.keys], pa.string())
    starts = np.cumsum([0, *(len(piece.numbers) for piece in pieces)])
    for low in range(0, len(asked.keys), _AT_ONCE):
        where, found = matches(stored, asked.keys.slice(low, _AT_ONCE))
        keys = found + low if asked.numbers is None else asked.numbers[found + low]
        cuts = np.searchsorted(where, starts)
        for piece, start, begin, end in zip(pieces, starts[:-1], cuts[:-1], cuts[1:], strict=True):
            piece.file.positions.append(piece.numbers[where[begin:end] - start])
            piece.file.keys.append(keys[begin:end])


def _stored_keys(task: TagTask, file: _Found, footer: BaseFileFooter, asked: _Asked) -> Iterator[_Piece]:
    """Keys of the row groups that may hold some of the keys, several groups at a time."""
    groups = footer.row_groups
    ends = [(group.min_key, group.max_key) if task.stored.bounded else (None, None) for group in groups]
    wanted = [number for number, (low, high) in enumerate(ends) if asked.has_any(low, high)]
    starts = np.cumsum([0, *(group.num_rows for group in groups)], dtype=np.int64)
    tables = iter_base_file(task.storage, file.base, task.stored.schema, meta_columns=task.stored.meta_columns, row_groups=wanted)
    numbers: list[Rows] = []
    chunks: list[pa.Array] = []
    size = 0
    for number, table in zip(wanted, tables, strict=True):
        keys = task.stored.keys(table)
        numbers.append(np.arange(starts[number], starts[number] + table.num_rows))
        chunks += keys.chunks
        size += keys.nbytes
        if size >= _STORED_BYTES or number == wanted[-1]:
            yield _Piece(file, np.concatenate(numbers), chunks, size)
            numbers, chunks, size = [], [], 0
