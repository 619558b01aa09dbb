"""Files of which logs replace rows, in local sessions: as links in directories whose names say where the bits of their rows are.

`positions` tells any files apart, by what Spark knows of each of them beside its rows: it makes a struct of that for every row, and a
row's bit is found by three looks. Here Spark has the place of a file's bits from its directory, as it has a partition, and the number of a
row as a column of the schema, so that one look is enough (docs/adr/0044).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import call_function, coalesce, expr, get
from pyspark.sql.types import IntegerType, LongType, StructField

from lakehouse_engine.model.files import BaseFile, join_path
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.frames.by_session import BySession
from lakehouse_engine.spark.frames.logged.effects import SliceEffect, ThinnedFile
from lakehouse_engine.spark.frames.logged.linked_files import MOST, LinkedFiles, linked
from lakehouse_engine.spark.frames.logged.logged_files import LoggedFiles
from lakehouse_engine.spark.frames.partitions import tells_values
from lakehouse_engine.spark.frames.replaced.positions import SENT_SCHEMA, Words
from lakehouse_engine.spark.frames.scanned import Checked, checked, scanned_links
from lakehouse_engine.spark.frames.sent import SENT
from lakehouse_engine.spark.schema import free_name
from lakehouse_engine.sql.grammar.lexer import quote_name
from lakehouse_engine.storage.paths import parent_of

ROWS_FROM = 1_000_000
"""Rows that files have at least, together: what is saved of fewer is a hundredth of a second, and links are never removed."""
MOST_WORDS = 1 << 20
"""Longs that are sent, at most: one for 64 rows of a file, whether or not some of them are replaced."""

ROW_NUMBERS = "_tmp_metadata_row_index"
"""The column in which Spark's reader numbers the rows of each file, where the schema asks for it (`Abilities.numbers_rows`)."""
_PLACE = "__lakehouse_place"

_EXPRESSIONS: BySession[tuple[Column, ...]] = BySession(10, lambda _: 1)
"""By the names of columns with places."""
_UNKNOWN = "cast(raise_error('a file has more rows than when the table was listed: read it again') as bigint)"


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """The rows that count of some files, with two columns more than are stored, the `links` that they are read by, and bytes `sent`."""

    frame: DataFrame
    links: LinkedFiles
    sent: int


@dataclass(frozen=True, slots=True)
class _File:
    """A file of a partition, where it is on this machine."""

    partition: str
    path: Path
    thinned: ThinnedFile


def numbered(
    spark: SparkSession,
    plan: ScanPlan,
    bases: Sequence[BaseFile],
    known: Checked,
    logs: Sequence[LoggedFiles],
    effects: Sequence[SliceEffect],
) -> NumberedRows | None:
    """What counts of base files (`known` as `checked`) and files of logs, by `effects`, among which are those of all of them.

    None where that is not done: elsewhere than in local sessions with room for links, of few rows, of many files.
    """
    if len(bases) + sum(len(one.files) for one in logs) > MOST:
        return None
    files = _files(plan, bases, logs, effects)
    thinned = [file.thinned for file in files]
    if sum(file.rows for file in thinned) < ROWS_FROM or not any(len(file.removed) for file in thinned):
        return None
    places = _places(thinned)
    if places is None or not _is_here(spark, plan, bases, known):  # Spark is asked last: it is for each session
        return None
    number = free_name(_PLACE, plan.schema.names)
    links = _linked(spark, plan, known, files, [f"{number}={place}" for place in places])
    if links is None:
        return None
    frame = scanned_links(spark, plan, bases, links, [StructField(ROW_NUMBERS, LongType()), StructField(number, IntegerType())])
    if checked(plan, bases) != known:  # what another program made of a file since it was looked at has other rows in these places
        return None

    def send() -> tuple[int, DataFrame]:
        words = words_of(thinned, places)
        return words.nbytes, spark.createDataFrame(pa.table([[words]], schema=SENT_SCHEMA))

    nbytes, sent = SENT.get(spark, effects, ["numbered", *(str(file.path) for file in files)], send)
    return NumberedRows(_staying(frame, sent, number), links, nbytes)


def _is_here(spark: SparkSession, plan: ScanPlan, bases: Sequence[BaseFile], known: Checked) -> bool:
    """Whether base files can be linked, and Spark numbers rows in a column."""
    has_paths = not bases or (bool(known) and plan.storage.local_path() is not None)
    return has_paths and abilities_of(spark).numbers_rows(ROW_NUMBERS)


def _files(plan: ScanPlan, bases: Sequence[BaseFile], logs: Sequence[LoggedFiles], effects: Sequence[SliceEffect]) -> list[_File]:
    root, of_paths = Path(plan.storage.local_path() or ""), {effect.base: effect for effect in effects}
    found = [_File(parent_of(base.path), root / base.path, of_paths[base.path].thinned()) for base in bases]
    return [*found, *(_File(one.partition, Path(file.path), file) for one in logs for file in one.files)]


def _linked(spark: SparkSession, plan: ScanPlan, known: Checked, files: Sequence[_File], names: Sequence[str]) -> LinkedFiles | None:
    """Links to files in directories of these names: below those of partitions, where Spark is to take columns from these, too."""
    by_paths = tells_values(plan.rules, [join_path(file.partition, file.path.name) for file in files])
    parents = [file.partition if by_paths else "" for file in files]
    places = [(file.path, join_path(parent, name)) for file, parent, name in zip(files, parents, names, strict=True)]
    return linked(spark, (plan.storage.root, known, tuple(places)), places)


def _places(files: Sequence[ThinnedFile]) -> list[int] | None:
    """Where the words of each file begin: at a multiple of a power of two that they are not more than, so that a place and the number of
    a word are put together of their bits, which Spark need not check for overflows. None where there are too many.
    """
    sizes = [1 << max(0, (file.rows - 1) >> 6).bit_length() for file in files]
    places, end = [0] * len(files), 0
    for number in sorted(range(len(files)), key=lambda number: -sizes[number]):
        places[number], end = end, end + sizes[number]
    return places if end <= MOST_WORDS else None


def words_of(files: Sequence[ThinnedFile], places: Sequence[int]) -> Words:
    """A bit for each row, the first of a word its highest; those of rows that do not count are set."""
    words = np.zeros(max((place + (file.rows + 63 >> 6) for file, place in zip(files, places, strict=True)), default=0), np.int64)
    for file, place in zip(files, places, strict=True):
        flags = np.zeros((file.rows + 63 >> 6) * 64, np.bool_)
        flags[file.removed] = True
        found = np.packbits(flags).view(np.dtype(">i8")).astype(np.int64)
        words[place : place + len(found)] = found
    return words


def _staying(frame: DataFrame, sent: DataFrame, number: str) -> DataFrame:
    """A word whose highest bit is set is below 0. Parts are texts, of which Spark makes expressions at once; what was sent is no column of
    the frame, which Spark would analyze once more.
    """
    texts = f"{quote_name(number)} | cast(shiftright({ROW_NUMBERS}, 6) as int)", f"cast({ROW_NUMBERS} & 63 as int)", _UNKNOWN
    place, bit, unknown = _EXPRESSIONS.of(frame.sparkSession).find(number, lambda: tuple(map(expr, texts)))
    return frame.where(coalesce(call_function("shiftleft", get(sent.scalar(), place), bit), unknown) >= 0)
