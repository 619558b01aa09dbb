"""Which rows of base files the logs of their slices replace or delete: as bitmaps that Spark joins, and kept for the next read.

A bitmap has one row for each 65,536 rows of a base file of which some are gone: a key made of the file's name and the block's number,
and one bit a row. Spark computes the same key for every row it scans. A block takes 8 kB, on the driver and, broadcast, on every executor:
one bit for each base row near changed ones.
"""

from __future__ import annotations

import itertools
import os
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import broadcast, col, get, getbit, lit, shiftright, xxhash64

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.files.log_scanner import LoggedSlice
from lakehouse_engine.files.slice_reader import Rows, SliceReader
from lakehouse_engine.spark.frames.xxhash import xxhash64 as hash_blocks

_BLOCK_BITS = 16
_BLOCK = 1 << _BLOCK_BITS
_WORDS = _BLOCK // 64
_SALT = 1 << 40
"""Added to block numbers of all files, as often as needed, until no two blocks have one key."""

_KEY, _BITS, _AT = "_hoodie_block", "_hoodie_bits", "_hoodie_row_index"
"""Names that no column of a table has: Hudi keeps the prefix to itself."""

Words = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SliceEffect:
    """What the logs of a slice do: rows `removed` (ascending) of its base file, which has `base_rows`, go, and rows `added` come."""

    base: str | None
    base_rows: int
    removed: Rows
    added: pa.Table

    @property
    def nbytes(self) -> int:
        return int(self.removed.nbytes + self.added.nbytes)


@dataclass(slots=True)
class EffectCache:
    """Effects of slices by what they follow from, the least recently used of them dropped above `limit` bytes. Thread-safe.

    A commit that changes a slice gives it another file, so what is kept for the old one is not found any more and drops out in time.
    """

    limit: int
    size: int = 0
    _kept: OrderedDict[Hashable, SliceEffect] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def effects(self, reader: SliceReader, logged: Sequence[LoggedSlice], columns: Sequence[str]) -> list[SliceEffect]:
        """The effect of every slice, those that are not kept read by threads of this process. Raises as `SliceReader.changes`."""
        keys = [effect_key(reader, piece, columns) for piece in logged]
        found = [self._get(key) for key in keys]
        missing = [number for number, effect in enumerate(found) if effect is None]
        read = LocalRunner(os.cpu_count() or 1).run(
            lambda number: _effect(reader, logged[number], columns), missing, name="logs"
        )
        for number, effect in zip(missing, read, strict=True):
            found[number] = effect
            self._put(keys[number], effect)
        return [effect for effect in found if effect is not None]

    def _get(self, key: Hashable) -> SliceEffect | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _put(self, key: Hashable, effect: SliceEffect) -> None:
        with self._lock:
            if effect.nbytes > self.limit or key in self._kept:
                return
            self._kept[key] = effect
            self.size += effect.nbytes
            while self.size > self.limit:
                self.size -= self._kept.popitem(last=False)[1].nbytes


EFFECTS = EffectCache(limit=512 * 1024 * 1024)
"""Of all tables that this process reads."""


def effect_key(reader: SliceReader, piece: LoggedSlice, columns: Sequence[str]) -> Hashable:
    """Everything that the effect of a slice follows from: its files, which of their blocks count, and how they are merged.

    A log whose commit is on the timeline counts as far as that commit says. For others it matters which commits there are.
    """
    base, promised = piece.slice.base_file, {promise.path for promise in piece.promises}
    told = all(log.path in promised for log in piece.slice.log_files)
    return (
        reader.storage.root,
        None if base is None else (base.path, base.size),
        tuple((log.path, log.size) for log in piece.slice.log_files),
        piece.promises,
        reader.scope.window if told else reader.scope,
        reader.rules,
        reader.verify,
        tuple((name, str(reader.schema.field(name).type) if name in reader.schema.names else "") for name in columns),
    )


def _effect(reader: SliceReader, piece: LoggedSlice, columns: Sequence[str]) -> SliceEffect:
    changes, base = reader.changes(piece, columns), piece.slice.base_file
    # Spark reads nothing behind an empty chunk, so there must be none.
    return SliceEffect(None if base is None else base.path, changes.base_rows, changes.removed, changes.added.combine_chunks())


@dataclass(frozen=True, slots=True)
class Bitmaps:
    """The bitmap rows of some files, and the number that was added to block numbers so that their keys are distinct."""

    rows: pa.Table
    salt: int


def bitmaps_of(effects: Sequence[SliceEffect]) -> Bitmaps:
    """The bitmaps of slices whose base files lose rows."""
    parts = [(_file_name(effect), effect.base_rows, *_words(effect.removed)) for effect in effects]
    for salt in itertools.count(0, _SALT):
        every = np.concatenate([hash_blocks(name, np.arange(-(-rows >> _BLOCK_BITS), dtype=np.int64) + salt) for name, rows, _, _ in parts])
        if len(np.unique(every)) == len(every):
            break
    keys = np.concatenate([hash_blocks(name, blocks + salt) for name, _, blocks, _ in parts])
    words = np.concatenate([words for _, _, _, words in parts])
    bits = pa.ListArray.from_arrays(pa.array(np.arange(0, len(words) + 1, _WORDS, dtype=np.int32)), pa.array(words))
    return Bitmaps(pa.table({_KEY: pa.array(keys), _BITS: bits}), salt)


def _file_name(effect: SliceEffect) -> str:
    return str(effect.base).rpartition("/")[2]


def _words(removed: Rows) -> tuple[Rows, Words]:
    """The blocks that have removed rows, and their bits as longs, `_WORDS` a block; bit i of a long is its row i."""
    blocks, numbers = np.unique(removed >> _BLOCK_BITS, return_inverse=True)
    flags = np.zeros(len(blocks) * _BLOCK, dtype=np.bool_)
    flags[numbers * _BLOCK + (removed & (_BLOCK - 1))] = True
    return blocks, np.packbits(flags, bitorder="little").view(np.dtype("<i8")).astype(np.int64)


def without_removed(frame: DataFrame, bitmaps: DataFrame, salt: int) -> DataFrame:
    """A frame over base files less the rows in the bitmaps. Built-in expressions only, so that the scan stays Spark's own."""
    file = frame.metadataColumn("_metadata")  # a table may have a column of that name
    at = file["row_index"]
    block = shiftright(at, _BLOCK_BITS) + lit(salt) if salt else shiftright(at, _BLOCK_BITS)
    numbered = frame.withColumn(_AT, at).withColumn(_KEY, xxhash64(file["file_name"], block))
    return numbered.join(broadcast(bitmaps), _KEY, "left").where(col(_BITS).isNull() | (_bit(col(_AT)) == 0))


def _bit(at: Column) -> Column:
    word = shiftright(at.bitwiseAND(lit(_BLOCK - 1)), 6).cast("int")
    return getbit(get(col(_BITS), word), at.bitwiseAND(lit(63)).cast("int"))
