"""Small slices with logs as files of an application: each is merged here once, and Spark reads it as it reads a base file.

What logs do to a large base file costs each statement a filter and two more branches to plan, tens of milliseconds however few rows there
are, and the first statement of a process a second. A slice of some thousand rows is merged in less.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial, reduce
from operator import add
from pathlib import Path
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.files.base_file import damage
from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.files.log_scanner import LoggedSlice, scan_logs
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.format.log.blocks import BlockType
from lakehouse_engine.model.files import BaseFile, join_path
from lakehouse_engine.model.keys import META_COLUMNS
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.read.statistics import OLD_CALENDAR
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.frames.by_session import BySession
from lakehouse_engine.spark.frames.logged.effects import effect_key


@dataclass(frozen=True, slots=True)
class Weight:
    """What merging takes: slices, bytes of their files, and values that are stored as Parquet, of which a processor merges ten to twenty
    million a second, and the bytes of these in memory.
    """

    slices: int
    stored: int
    values: int
    decoded: int

    def __add__(self, other: Weight) -> Weight:
        return Weight(*(mine + its for mine, its in zip(astuple(self), astuple(other), strict=True)))

    def within(self, most: Weight) -> bool:
        return all(mine <= its for mine, its in zip(astuple(self), astuple(most), strict=True))


MOST = Weight(1, 4 << 20, 1_000_000, 64 << 20)
"""Of one slice."""
MOST_AT_ONCE = Weight(32, 8 << 20, 2_000_000, 128 << 20)
"""Of all slices that a statement meets first."""

FOR_BLOCKS = 1 << 29
"""Bytes of the files of an application that are left for blocks of logs, which save more."""

_MERGING = Lock()
_WEIGHTS: BoundedCache[Weight] = BoundedCache(10_000)
"""Of slices by what their rows follow from, as below, and of base files."""
Key = tuple[Hashable, Hashable]


@dataclass(frozen=True, slots=True)
class MergedFile:
    """All rows of a slice of a partition."""

    path: Path
    partition: str

    @property
    def stands_for(self) -> str:
        """Where a base file with these rows would be, below the table."""
        return join_path(self.partition, self.path.name)


MERGED: BySession[Path] = BySession(10_000, lambda _: 1)
"""Of each application, whose sessions share them, by what their rows follow from."""


def merged_files(spark: SparkSession, plan: ScanPlan, known: Mapping[str, Hashable]) -> tuple[ScanPlan, tuple[MergedFile, ...]]:
    """The plan without its small slices, and the files of these. `known` tells base files, which were looked at, by their paths.

    Raises as `SliceReader.read`.
    """
    pieces = _small(spark, plan, known)
    if not pieces or plan.reader is None:
        return plan, ()
    keys = [(effect_key(plan.reader, piece), known.get(_path(piece))) for piece in pieces]
    with _MERGING:  # not twice by two threads: room is short
        paths = _found(spark, plan, pieces, keys)
    found = [(piece, path) for piece, path in zip(pieces, paths, strict=True) if path is not None]
    merged = {id(piece): MergedFile(path, piece.slice.partition_path) for piece, path in found}
    return replace(plan, logged=tuple(piece for piece in plan.logged if id(piece) not in merged)), tuple(merged.values())


def _path(piece: LoggedSlice) -> str:
    return "" if piece.slice.base_file is None else piece.slice.base_file.path


def _small(spark: SparkSession, plan: ScanPlan, known: Mapping[str, Hashable]) -> list[LoggedSlice]:
    """Slices of few bytes, where merging them is worth it: of changes between two commits most rows of base files are none."""
    names = [*META_COLUMNS, *plan.schema.names]
    if not plan.verify or plan.commit_range is not None or len({name.lower() for name in names}) < len(names):
        return []
    small = [piece for piece in plan.logged if piece.slice.size <= MOST.stored and _path(piece) not in plan.replaced_only]
    # What is kept for a base file is found by what tells whether it is still the same.
    return [piece for piece in small if not _path(piece) or _path(piece) in known] if abilities_of(spark).takes_files(0) else []


def _found(spark: SparkSession, plan: ScanPlan, pieces: Sequence[LoggedSlice], keys: Sequence[Key]) -> list[Path | None]:
    """The file of each piece, None for those that have none and are too many, or too much, or have no room."""
    kept = MERGED.of(spark.sparkContext)
    # Who cleans folders for temporary files takes those of sessions that live for weeks.
    paths = [path if path is not None and os.path.exists(path) else None for path in map(kept.get, keys)]
    missing = _light(spark, plan, {number: pieces[number] for number, path in enumerate(paths) if path is None}, keys)
    if missing:
        made = _made(spark, plan, [pieces[number] for number in missing])
        for number, path in zip(missing, made, strict=bool(made)):
            kept.replace(keys[number], path)
            paths[number] = path
    return paths


def _light(spark: SparkSession, plan: ScanPlan, pieces: Mapping[int, LoggedSlice], keys: Sequence[Key]) -> list[int]:
    """Those that are to be merged now: all that are small, if together they are."""
    if len(pieces) > MOST_AT_ONCE.slices:
        return []
    weights = {number: _WEIGHTS.find(keys[number], partial(_weight, plan, piece, keys[number][1])) for number, piece in pieces.items()}
    light = [number for number, weight in weights.items() if weight.within(MOST)]
    together = reduce(add, (weights[number] for number in light), Weight(0, 0, 0, 0))
    # Files without room would be made by each statement, for nothing: more of it is asked for than they take.
    fits = together.within(MOST_AT_ONCE) and abilities_of(spark).takes_files(together.decoded + together.stored + FOR_BLOCKS)
    return light if fits else []


def _weight(plan: ScanPlan, piece: LoggedSlice, known: Hashable) -> Weight:
    """Raises as `scan_logs` and `read_base_file`."""
    base, reader, found = piece.slice.base_file, plan.reader, Weight(1, piece.slice.size, 0, 0)
    assert reader is not None
    if base is not None:  # it stays when logs come
        found += _WEIGHTS.find(known, partial(_base_weight, plan, base))
    for one in scan_logs(reader.storage, piece, reader.scope, verify=False).with_rows():
        if one.block.type is BlockType.PARQUET_DATA and found.within(MOST):
            try:
                content = pa.BufferReader(one.block.content)
                found += _decoded(pq.read_metadata(content), content)
            except (pa.ArrowException, OSError):
                pass  # whoever decodes it says what is wrong
    return found


def _base_weight(plan: ScanPlan, base: BaseFile) -> Weight:
    footer = FOOTERS.read(plan.storage, base, verify=plan.verify)
    if _rebased(footer):
        return replace(MOST, values=MOST.values + 1)
    with plan.storage.open_input(base.path) as source, damage(base.path):
        return _decoded(footer, source)


def _rebased(footer: pq.FileMetaData) -> bool:
    """Whether Spark reads other days and moments of a base file than are stored, those before 1582 (`DataSourceUtils.int96RebaseSpec`)."""
    texts = footer.metadata or {}
    return bool(texts.get(b"org.apache.spark.version", b"3.1") < b"3.1" or OLD_CALENDAR & texts.keys())


def _decoded(footer: pq.FileMetaData, source: pa.NativeFile) -> Weight:
    """The values of a Parquet file, and the bytes of these."""
    values, decoded = 0, 0
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        chunks = [group.column(place) for place in range(group.num_columns)]
        values += sum(chunk.num_values for chunk in chunks)
        decoded += sum(chunk.total_uncompressed_size for chunk in chunks)
        # Texts of a dictionary may be long, and each is there once. Bounds do not tell how long what is between them is.
        texts = [chunk for chunk in chunks if chunk.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page]
        unsure = [chunk for chunk in texts if chunk.num_values * chunk.total_uncompressed_size > MOST.decoded]
        if unsure and values <= MOST.values:
            decoded += _text_bytes(source, footer, number, unsure)
    return Weight(0, 0, values, decoded)


def _text_bytes(source: pa.NativeFile, footer: pq.FileMetaData, group: int, chunks: Sequence[pq.ColumnChunkMetaData]) -> int:
    """As many bytes as the values of the chunks take, or too many. They are decoded, few at a time, no more than that takes."""
    at_once = max(1, MOST.decoded // sum(chunk.total_uncompressed_size for chunk in chunks))
    found, file = 0, pq.ParquetFile(source, metadata=footer)
    for batch in file.iter_batches(at_once, row_groups=[group], columns=[chunk.path_in_schema for chunk in chunks]):
        found += batch.nbytes
        if found > MOST.decoded:
            break
    return found


def _made(spark: SparkSession, plan: ScanPlan, pieces: Sequence[LoggedSlice]) -> Sequence[Path]:
    """A file of each piece; none where there is no room for all."""
    reader = plan.reader
    assert reader is not None
    contents = LocalRunner(os.cpu_count() or 1).run(lambda piece: _content(reader, piece), pieces, name="slices")
    return abilities_of(spark).files(contents) or ()


def _content(reader: SliceReader, piece: LoggedSlice) -> bytes:
    """A Parquet file of all rows and columns of a slice. It has no statistics: those of floating point columns leave out NaN."""
    columns = [*(META_COLUMNS if reader.has_meta_columns else ()), *reader.schema.names]
    rows = reader.read(piece, columns)
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="snappy", write_statistics=False, store_schema=False)
    return bytes(sink.getvalue())
