"""Rows of files that logs replace or delete, as longs that a filter of Spark's own expressions looks up.

`Replaced.longs` has a bit for every row of each block of 65,536 rows that lost one, after one empty block. Before the blocks, a directory
says where a file's blocks are. The file is found in a perfect hash table by a number: its size if all sizes differ (the hash of its name
takes Spark three times as long). All of it is one list, which goes into the filter as a scalar subquery, with no job and no join.

Every lookup is made for every row. So indexes are composed of bits, which Spark need not check for overflows, and only the number and the
row are used twice, as Spark would keep others in a field. The filter does not test that the file is the listed one, which is known before
(`scanned.checked`): another number leads to a place far outside, mostly with nothing there, and that is an error.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, get, getbit, lit, raise_error, shiftleft, shiftright, xxhash64

from lakehouse_engine.files.slice_reader import Rows
from lakehouse_engine.spark.frames.by_session import BySession
from lakehouse_engine.spark.frames.logged.effects import ThinnedFile
from lakehouse_engine.spark.frames.replaced.slots import Slots
from lakehouse_engine.spark.frames.replaced.xxhash import xxhash64 as hash_name
from lakehouse_engine.spark.schema import free_name

_BLOCK_BITS = 16
_BLOCK = 1 << _BLOCK_BITS
_WORDS = _BLOCK // 64
_MIXED = (1 << 30) - 1
"""Bits of a file's number that are mixed into the place of its blocks."""
_NOWHERE = -_WORDS
"""Where the words are of a block that no file has."""
_MOST_SIZES = 4096
"""Most files whose sizes are used as numbers: sizes are no hashes, and places for many of them may be hard to find."""

_METADATA = "_metadata"
ROW_NUMBERS = "_tmp_metadata_row_index"
"""Column in which Spark's reader numbers rows for `_metadata`; it also fills in a column of the table with this name."""
_LONGS = "__lakehouse_replaced"
_LIST = pa.list_(pa.field("element", pa.int64(), nullable=False))
_SENT = pa.schema([("longs", _LIST)])
"""Schema of one row: a list in which no element is null."""

_Words = npt.NDArray[np.int64]

_CONDITIONS: BySession[Column] = BySession(100, lambda _: 1)


@dataclass(frozen=True, slots=True)
class Replaced:
    """The replaced rows of some files.

    `longs` begins with the positions of the words of `2**step` blocks for each of `2**bits` places, mixed with the number of the file in
    that place. Then come the displacements of `Slots`, and from a multiple of `_WORDS` on the words of blocks. `salt` is None if files are
    told apart by their sizes; else it was added to the hashes of names so that all are distinct.
    """

    longs: _Words
    bits: int
    step: int
    salt: int | None

    @property
    def rows(self) -> pa.Table:
        """One row with the list."""
        return pa.table([[self.longs]], schema=_SENT)


def told_apart(files: Sequence[ThinnedFile]) -> list[tuple[ThinnedFile, ...]]:
    """The files in groups without two files of one name, mostly one group. The lookup tells files apart by no more than that."""
    groups: list[list[ThinnedFile]] = []
    seen = Counter[str]()
    for file in files:
        if seen[file.name] == len(groups):
            groups.append([])
        groups[seen[file.name]].append(file)
        seen[file.name] += 1
    return [tuple(group) for group in groups]


def replaced_of(files: Sequence[ThinnedFile]) -> Replaced:
    """The replaced rows of files that have distinct names (`told_apart`)."""
    numbers, salt = _numbers(files)
    slots = Slots.of(numbers)
    counts = [-(-file.rows >> _BLOCK_BITS) for file in files]
    step = max(counts).bit_length()  # more blocks than any file has: rows behind the last lead nowhere, not to the next file's place
    none = -(-slots.count * ((1 << step) + 1) // _WORDS) * _WORDS
    words, filled = [np.zeros(_WORDS, np.int64)], none + _WORDS
    blocks = np.full((slots.count, 1 << step), _NOWHERE, np.int64)
    for file, count, number, place in zip(files, counts, numbers, slots.places, strict=True):
        there, found = _words(file.removed)
        blocks[place, :count] = none
        blocks[place, there] = filled + np.arange(len(there)) * _WORDS
        blocks[place] ^= number & _MIXED
        words.append(found)
        filled += len(found)
    directory = np.concatenate([blocks.ravel(), slots.displacements])
    unused = np.zeros(none - len(directory), np.int64)
    return Replaced(np.concatenate([directory, unused, *words]), slots.bits, step, salt)


def _numbers(files: Sequence[ThinnedFile]) -> tuple[Rows, int | None]:
    """A number for each file, and the salt; the first way that tells all files apart. Raises `ValueError` if two files have one name."""
    if len({file.name for file in files}) < len(files):
        raise ValueError("two files have one name")
    salts = itertools.chain([None] if _sizes_are_known(files) else [], itertools.count())
    tried = ((np.array([_number(file, salt) for file in files], np.int64), salt) for salt in salts)
    return next((numbers, salt) for numbers, salt in tried if len(np.unique(numbers)) == len(numbers))


def _sizes_are_known(files: Sequence[ThinnedFile]) -> bool:
    return len(files) <= _MOST_SIZES and all(file.size >= 0 for file in files)


def _number(file: ThinnedFile, salt: int | None) -> int:
    if salt is None:
        return file.size
    return int(hash_name(file.name, np.array([salt], np.int64))[0])


def _words(removed: Rows) -> tuple[Rows, _Words]:
    """Blocks that have removed rows, and their bits as longs, `_WORDS` a block; bit i of a long is its row i."""
    blocks, numbers = np.unique(removed >> _BLOCK_BITS, return_inverse=True)
    flags = np.zeros(len(blocks) * _BLOCK, dtype=np.bool_)
    flags[numbers * _BLOCK + (removed & (_BLOCK - 1))] = True
    return blocks, np.packbits(flags, bitorder="little").view(np.dtype("<i8")).astype(np.int64)


@dataclass(frozen=True, slots=True)
class StayingRows:
    """Filters frames over base files by the sent rows of `replaced`.

    The condition is made once for all `replaced` of the same layout: that takes a hundred calls of the JVM.
    """

    sent: DataFrame
    replaced: Replaced
    condition: Column

    @classmethod
    def of(cls, sent: DataFrame, replaced: Replaced) -> StayingRows:
        """`sent` has the `rows` of `replaced`."""
        way = replaced.bits, replaced.step, replaced.salt
        condition = _CONDITIONS.of(sent.sparkSession).find(way, lambda: _stays(replaced, col(_LONGS), col(_METADATA)))
        return cls(sent, replaced, condition)

    def of_frame(self, frame: DataFrame, columns: Sequence[str]) -> DataFrame:
        """Rows not replaced, of a frame over base files with these columns, with one more column. Built-in expressions only: the scan stays
        Spark's own.
        """
        longs = free_name(_LONGS, columns)
        # As a column, which Spark puts back into the condition, it is one subquery. Each mention in the condition would be its own.
        looked_up = frame.withColumn(longs, self.sent.scalar())
        if longs == _LONGS and free_name(_METADATA, columns) == _METADATA:
            return looked_up.where(self.condition)
        # The frame has access to `_metadata` even if a column of the table hides it.
        return looked_up.where(_stays(self.replaced, col(longs), frame.metadataColumn(_METADATA)))


def _stays(replaced: Replaced, longs: Column, file: Column) -> Column:
    bits, step, salt = replaced.bits, replaced.step, replaced.salt
    row, number = file["row_index"], file["file_size"] if salt is None else xxhash64(file["file_name"], lit(salt).cast("bigint"))
    displaced = get(longs, _low(number, bits).bitwiseOR(lit(1 << bits + step)).cast("int"))
    place = _low(shiftright(number, bits).bitwiseXOR(displaced), bits)
    block = get(longs, shiftleft(place, step).bitwiseOR(shiftright(row, _BLOCK_BITS)).cast("int"))
    at = block.bitwiseXOR(number.bitwiseAND(lit(_MIXED)))
    word = get(longs, at.bitwiseOR(shiftright(_low(row, _BLOCK_BITS), 6)).cast("int"))
    unknown = raise_error(lit("a base file has another size, or more rows, than when the table was listed: read it again"))
    return coalesce(getbit(word, _low(row, 6).cast("int")), unknown.cast("tinyint")) == 0


def _low(number: Column, bits: int) -> Column:
    return number.bitwiseAND(lit((1 << bits) - 1))
