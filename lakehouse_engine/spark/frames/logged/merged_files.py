"""Small slices with logs as files of an application: each is merged here once, and Spark reads it like a base file.

The logs of a large base file cost each statement a filter and two more branches to plan, tens of milliseconds however few rows there are,
and the first statement of a process a second. Merging a slice of some thousand rows takes less.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.model.files import join_path
from lakehouse_engine.model.keys import META_COLUMNS
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.frames.by_session import BySession
from lakehouse_engine.spark.frames.logged.effects import effect_key
from lakehouse_engine.spark.frames.logged.weights import Key, Weight, slice_weight

MOST = Weight(1, 4 << 20, 1_000_000, 64 << 20)
"""Most that one slice may weigh."""
MOST_AT_ONCE = Weight(32, 8 << 20, 2_000_000, 128 << 20)
"""Most that all slices may weigh that a statement meets first."""

FOR_ROWS = 1 << 29
"""Bytes for files of an application that are left for rows of larger slices' logs, which save more."""

_MERGING = Lock()


@dataclass(frozen=True, slots=True)
class MergedFile:
    """All rows of a slice of a partition."""

    path: Path
    partition: str

    @property
    def stands_for(self) -> str:
        """Path of a base file with these rows, relative to the table."""
        return join_path(self.partition, self.path.name)


MERGED: BySession[Path] = BySession(10_000, lambda _: 1)
"""Merged files of each application, which its sessions share, by everything that determines their rows."""


def merged_files(
    spark: SparkSession, plan: ScanPlan, small: Sequence[LoggedSlice], known: Mapping[str, Hashable]
) -> tuple[ScanPlan, tuple[MergedFile, ...]]:
    """The plan without those of its `small` slices that are merged, and the files of these. `known` identifies checked base files by path.

    Raises as `SliceReader.read`.
    """
    if not small or plan.reader is None:
        return plan, ()
    keyed = {(effect_key(plan.reader, piece), known.get(_path(piece))): piece for piece in small}
    with _MERGING:  # never by two threads at once: room is short
        paths = _found(spark, plan, keyed)
    merged = {id(piece): MergedFile(paths[key], piece.slice.partition_path) for key, piece in keyed.items() if key in paths}
    return replace(plan, logged=tuple(piece for piece in plan.logged if id(piece) not in merged)), tuple(merged.values())


def _path(piece: LoggedSlice) -> str:
    return "" if piece.slice.base_file is None else piece.slice.base_file.path


def _found(spark: SparkSession, plan: ScanPlan, pieces: Mapping[Key, LoggedSlice]) -> dict[Key, Path]:
    """Files of the pieces that have one, by key. No file is made for pieces that are too many or too large, or have no room."""
    kept = MERGED.of(spark.sparkContext)
    # Cleaners of temporary folders also delete those of sessions that live for weeks.
    paths = {key: path for key in pieces if (path := kept.get(key)) is not None and os.path.exists(path)}
    missing = _light(spark, plan, {key: piece for key, piece in pieces.items() if key not in paths})
    if missing:
        made = _made(spark, plan, [pieces[key] for key in missing])
        for key, path in zip(missing, made, strict=bool(made)):
            kept.replace(key, path)
            paths[key] = path
    return paths


def _light(spark: SparkSession, plan: ScanPlan, pieces: Mapping[Key, LoggedSlice]) -> list[Key]:
    """Keys of the slices to merge now: all small ones, if they are small together."""
    if len(pieces) > MOST_AT_ONCE.slices:
        return []
    weights = {key: slice_weight(plan, piece, key, MOST) for key, piece in pieces.items()}
    light = {key: weight for key, weight in weights.items() if weight.within(MOST)}
    together = reduce(add, light.values(), Weight(0, 0, 0, 0))
    # Without room, each statement would make the files for nothing; so more room is asked for than they take.
    fits = together.within(MOST_AT_ONCE) and abilities_of(spark).takes_files(together.decoded + together.stored + FOR_ROWS)
    return list(light) if fits else []


def _made(spark: SparkSession, plan: ScanPlan, pieces: Sequence[LoggedSlice]) -> Sequence[Path]:
    """A file of each piece; none if there is no room for all."""
    reader = plan.reader
    assert reader is not None
    contents = LocalRunner(os.cpu_count() or 1).run(lambda piece: _content(reader, piece), pieces, name="slices")
    return abilities_of(spark).files(contents) or ()


def _content(reader: SliceReader, piece: LoggedSlice) -> bytes:
    """A Parquet file of all rows and columns of a slice. It has no statistics: those of floating point columns leave out NaN."""
    rows = reader.read(piece, [*META_COLUMNS, *reader.schema.names])
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="snappy", write_statistics=False, store_schema=False)
    return bytes(sink.getvalue())
