"""Which rows of base files the logs of their slices replace or delete: as bitmaps that Spark joins, and kept for the next read.

A bitmap has one row for each 65,536 rows of a base file: a key made of the file and the block's number, and one bit a row, or nothing
where no row of the block is gone. Spark computes the same key for every row it scans, so it has to be cheap: where no two files have one
size it is made of that, which takes Spark a third of the time that the hash of a name does. A block with changed rows takes 8 kB, on the
driver and, broadcast, on every executor. A row of a block that is not there is of another file than was listed, and an error.
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
from pyspark.sql.functions import broadcast, coalesce, col, get, getbit, lit, raise_error, shiftright, xxhash64

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.files.log_scanner import LoggedSlice
from lakehouse_engine.files.slice_reader import Rows, SliceReader
from lakehouse_engine.spark.frames.xxhash import xxhash64 as hash_blocks

_BLOCK_BITS = 16
_BLOCK = 1 << _BLOCK_BITS
_WORDS = _BLOCK // 64
_SALT = 1 << 40
"""Added to block numbers of all files, as often as needed, until no two blocks have one key."""

_SIZE_STEP = 1 << 20
"""More than blocks of a file: the place of its size in a key."""

_KEY, _BITS, _AT = "_hoodie_block", "_hoodie_bits", "_hoodie_row_index"
"""Names that no column of a table has: Hudi keeps the prefix to itself."""

Words = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SliceEffect:
    """What the logs of a slice do: rows `removed` (ascending) of its base file, which has `base_rows`, go, and rows `added` come.

    `base_bytes` is the base file's size as it was listed, -1 where that is not known.
    """

    base: str | None
    base_bytes: int
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
    path, size = (None, -1) if base is None else (base.path, base.size)
    return SliceEffect(path, size, changes.base_rows, changes.removed, changes.added.combine_chunks())


@dataclass(frozen=True, slots=True)
class Bitmaps:
    """The bitmap rows of some files, and what their keys are made of: of the files' sizes (None), or of the hash of their names and block
    numbers to which this number was added, so that all are distinct.
    """

    rows: pa.Table
    salt: int | None


def bitmaps_of(effects: Sequence[SliceEffect]) -> Bitmaps:
    """The bitmaps of slices whose base files lose rows."""
    keys, salt = _keys(effects)
    blocks, words = zip(*(_words(effect.removed) for effect in effects), strict=True)
    lengths = [np.isin(np.arange(_count(effect)), there) * _WORDS for effect, there in zip(effects, blocks, strict=True)]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int32)
    bits = pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(words)))
    return Bitmaps(pa.table({_KEY: pa.array(keys), _BITS: bits}), salt)


def _keys(effects: Sequence[SliceEffect]) -> tuple[Rows, int | None]:
    """Those of all blocks, file by file, and what they are made of: the first that tells all of them apart."""
    salts = itertools.chain([None] if _sizes_are_known(effects) else [], itertools.count(0, _SALT))
    tried = ((np.concatenate([_keys_of(effect, salt) for effect in effects]), salt) for salt in salts)
    return next((keys, salt) for keys, salt in tried if len(np.unique(keys)) == len(keys))


def _sizes_are_known(effects: Sequence[SliceEffect]) -> bool:
    return all(effect.base_bytes >= 0 for effect in effects)


def _count(effect: SliceEffect) -> int:
    return -(-effect.base_rows >> _BLOCK_BITS)


def _keys_of(effect: SliceEffect, salt: int | None) -> Rows:
    blocks = np.arange(_count(effect), dtype=np.int64)
    return effect.base_bytes * _SIZE_STEP + blocks if salt is None else hash_blocks(_file_name(effect), blocks + salt)


def _file_name(effect: SliceEffect) -> str:
    return str(effect.base).rpartition("/")[2]


def _words(removed: Rows) -> tuple[Rows, Words]:
    """The blocks that have removed rows, and their bits as longs, `_WORDS` a block; bit i of a long is its row i."""
    blocks, numbers = np.unique(removed >> _BLOCK_BITS, return_inverse=True)
    flags = np.zeros(len(blocks) * _BLOCK, dtype=np.bool_)
    flags[numbers * _BLOCK + (removed & (_BLOCK - 1))] = True
    return blocks, np.packbits(flags, bitorder="little").view(np.dtype("<i8")).astype(np.int64)


def without_removed(frame: DataFrame, bitmaps: DataFrame, salt: int | None) -> DataFrame:
    """A frame over base files less the rows in the bitmaps. Built-in expressions only, so that the scan stays Spark's own."""
    file = frame.metadataColumn("_metadata")  # a table may have a column of that name
    at = file["row_index"]
    block = shiftright(at, _BLOCK_BITS)
    key = file["file_size"] * lit(_SIZE_STEP) + block if salt is None else xxhash64(file["file_name"], block + lit(salt))
    numbered = frame.withColumn(_AT, at).withColumn(_KEY, key)
    return numbered.join(broadcast(bitmaps), _KEY, "left").where(coalesce(_bit(col(_AT)), lit(0)) == 0)


def _bit(at: Column) -> Column:
    """Of a row whether it is gone; null where none of its block is."""
    unknown = raise_error(lit("a base file has another size, or more rows, than when the table was listed: read it again"))
    bits = coalesce(col(_BITS), unknown.cast("array<bigint>"))
    return getbit(get(bits, shiftright(_low_bits(at, _BLOCK - 1), 6)), _low_bits(at, 63))


def _low_bits(at: Column, mask: int) -> Column:
    return at.bitwiseAND(lit(mask)).cast("int")
