"""Composes snapshots of Spark's scans and the effects of logs, and keeps them with their session.

The next statement that reads the same files, logs and columns takes the same frame, already analyzed by Spark.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, lit, raise_error

from lakehouse_engine.compat import cached_property
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import COMMIT_TIME
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.frames.by_session import BySession, analyzed_bytes
from lakehouse_engine.spark.frames.frame_plan import FramePlan
from lakehouse_engine.spark.frames.logged.effects import EFFECTS, SliceEffect, ThinnedFile
from lakehouse_engine.spark.frames.logged.linked_files import LinkedFiles, linked_partitions
from lakehouse_engine.spark.frames.logged.merged_files import MergedFile, merged_files
from lakehouse_engine.spark.frames.replaced.positions import StayingRows, replaced_of, told_apart
from lakehouse_engine.spark.frames.scanned import Checked, checked, in_range, scanned, scanned_beside, scanned_links, stored_schema
from lakehouse_engine.spark.frames.sent import SENT
from lakehouse_engine.spark.local_files import is_there, spark_path
from lakehouse_engine.spark.schema import to_spark_schema, to_spark_type, without_rows
from lakehouse_engine.sql.grammar.lexer import quote_name


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a frame is made of. `whole` files lost no row to logs, `thinned` ones did; `replacing` and `adding` are effects with replaced
    and with added rows; `merged` are files with all rows of small slices.

    `decoded` are the columns that all of `adding` have, in their order.
    """

    whole: tuple[BaseFile, ...]
    thinned: tuple[BaseFile, ...]
    replacing: tuple[SliceEffect, ...]
    adding: tuple[SliceEffect, ...]
    decoded: tuple[str, ...]
    merged: tuple[MergedFile, ...]

    @classmethod
    def of(cls, spark: SparkSession, found: FramePlan, read: Sequence[str], known: Mapping[str, Hashable]) -> _Parts:
        """Parts of the plan. Columns `read` are decoded at least, where logs have to be."""
        plan, merged = merged_files(spark, found.by_spark, found.small, known)
        effects = _effects(plan, read)
        files = {file.path: file for file in plan.base_files()}
        kept = [one for one in effects if one.base and one.base not in plan.replaced_only]
        adding = tuple(one for one in effects if one.added.num_rows)
        names = adding[0].added.column_names if adding else []
        return cls(
            (*plan.files, *(files[str(one.base)] for one in kept if not len(one.removed))),
            tuple(files[str(one.base)] for one in kept if len(one.removed)),
            # All replaced rows are sent, so that the next query, which may read other files, finds them there.
            tuple(one for one in effects if one.base and len(one.removed)),
            adding,
            tuple(name for name in names if all(name in one.added.column_names for one in adding)),
            merged,
        )

    @property
    def files(self) -> int:
        """Number of files that Spark reads."""
        return len(self.whole) + len(self.merged) + len(self.thinned)


_COUNTED = "__lakehouse_counted"


@dataclass(frozen=True)
class Composed:
    """A frame with at least the columns `names` over `files` files, for which `sent` bytes were sent. `rows` are its decoded rows of logs.
    """

    wider: DataFrame
    names: tuple[str, ...]
    files: int
    sent: int
    rows: DataFrame | None
    linked: tuple[LinkedFiles, ...]

    @cached_property
    def frame(self) -> DataFrame:
        """With exactly these columns. A caller that selects columns takes `wider`, and spares Spark the analysis of this one."""
        return self.wider.selectExpr(*map(quote_name, self.names))

    @property
    def nbytes(self) -> int:
        """Bytes that stay in memory for it, even if nothing else keeps them."""
        return analyzed_bytes(len(self.names), 1 + self.files) + self.sent

    def holds(self) -> bool:
        """True if its rows and links are still there."""
        return is_there(self.rows) and all(one.hold() for one in self.linked)


class ComposedFrames(BySession[Composed]):
    """Frames of each session, with at most `limit` bytes a session."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit, lambda one: one.nbytes)


COMPOSED = ComposedFrames(limit=128 * 1024 * 1024)


def checked_here(plan: ScanPlan) -> dict[str, Hashable]:
    """`checked`, by path, for all base files whose rows are wanted."""
    files = [file for file in plan.base_files() if file.path not in plan.replaced_only]
    known = checked(plan, files)
    return {file.path: one for file, one in zip(files, known, strict=bool(known))}


def composed(
    spark: SparkSession, found: FramePlan, wanted: pa.Schema, read: Sequence[str], known: Mapping[str, Hashable]
) -> Composed:
    """The rows that Spark reads, with the columns `wanted`; at least those named `read` can be used. `known` is from `checked_here`.

    Logs that this process has not read yet are read at once, with these columns.
    """
    plan = found.by_spark
    # With `plans_values`, Spark's optimizer would evaluate a column that fails when it is used (`left_out`).
    parts = _Parts.of(spark, found, wanted.names if abilities_of(spark).plans_values else read, known)
    whole, thinned = (tuple(known[file.path] for file in files) if known else () for files in (parts.whole, parts.thinned))

    def make() -> Composed:
        return _united_parts(spark, plan, wanted, parts, whole, thinned)

    if not plan.verify:
        return make()
    numbers = tuple(one.number for one in parts.replacing), tuple(one.number for one in parts.adding)
    key: Hashable = plan.storage.root, stored_schema(plan), plan.rules, plan.commit_range, wanted, whole, thinned, numbers, parts.merged
    return COMPOSED.of(spark).find(key, make, Composed.holds)


def united(frames: Sequence[DataFrame], names: Sequence[str]) -> DataFrame:
    """Union of the frames, with the columns `names`."""
    quoted = [quote_name(name) for name in names]
    return reduce(DataFrame.unionAll, [frame.selectExpr(*quoted) for frame in frames])


def _effects(plan: ScanPlan, read: Sequence[str]) -> list[SliceEffect]:
    if plan.reader is None:
        return []
    names = read if plan.commit_range is None else list(dict.fromkeys([COMMIT_TIME, *read]))
    return EFFECTS.effects(plan.reader, plan.logged, names)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows of some files, with the bytes sent for them and the links by which they are read; or rows that were sent."""

    frame: DataFrame
    sent: int = 0
    linked: LinkedFiles | None = None
    rows: DataFrame | None = None


def _united_parts(
    spark: SparkSession, plan: ScanPlan, wanted: pa.Schema, parts: _Parts, whole: Checked, thinned: Checked
) -> Composed:
    pieces = [*_whole(spark, plan, parts, whole), *_thinned(spark, plan, parts, thinned)]
    if parts.adding:
        pieces.append(_added(spark, plan, wanted, parts))
    frames = [piece.frame for piece in pieces] or [without_rows(spark, to_spark_schema(stored_schema(plan)))]
    rows = next((piece.rows for piece in pieces if piece.rows is not None), None)
    linked = tuple(piece.linked for piece in pieces if piece.linked is not None)
    ranged = [in_range(frame, plan) for frame in frames]
    frame = ranged[0] if len(ranged) == 1 else united(ranged, wanted.names)
    return Composed(frame, tuple(wanted.names), parts.files, sum(piece.sent for piece in pieces), rows, linked)


def _whole(spark: SparkSession, plan: ScanPlan, parts: _Parts, known: Checked) -> Iterator[_Piece]:
    """Rows of files that lost none."""
    found = linked_partitions(spark, plan, parts.whole, known, parts.merged)
    if found is None:
        yield from map(_Piece, scanned_beside(spark, plan, parts.whole, known, [spark_path(one.path) for one in parts.merged]))
        return
    linked, bases = found
    if parts.whole and not bases:
        yield _Piece(scanned(spark, plan, parts.whole, known))
    yield _Piece(scanned_links(spark, plan, bases, linked), linked=linked)


def _thinned(spark: SparkSession, plan: ScanPlan, parts: _Parts, known: Checked) -> Iterator[_Piece]:
    """Remaining rows of files that lost some: a scan for each group of files that can be told apart, mostly one."""
    numbers = {file.path: number for number, file in enumerate(parts.thinned)}
    for group, files in enumerate(told_apart([effect.thinned() for effect in parts.replacing])):
        chosen = [numbers[file.path] for file in files if file.path in numbers]
        if not chosen:
            continue
        sent, staying = SENT.get(spark, parts.replacing, ["replaced", str(group)], partial(_send_replaced, spark, files))
        frame = scanned(spark, plan, [parts.thinned[number] for number in chosen], tuple(known[number] for number in chosen if known))
        yield _Piece(staying.of_frame(frame, plan.schema.names), sent)


def _added(spark: SparkSession, plan: ScanPlan, wanted: pa.Schema, parts: _Parts) -> _Piece:
    """Decoded rows of logs."""
    asked = wanted.names if plan.commit_range is None else [COMMIT_TIME, *wanted.names]
    names = [name for name in parts.decoded if name in asked]
    sent, rows = SENT.get(spark, parts.adding, ["rows", *names], lambda: _send_rows(spark, parts.adding, names))
    return _Piece(_with_all(rows, names, wanted), sent, rows=rows)


def _with_all(rows: DataFrame, names: Sequence[str], wanted: pa.Schema) -> DataFrame:
    """Rows of logs, which have the columns `names`, with columns that fail for the rest of `wanted`."""
    missing = [left_out(field) for field in wanted if field.name not in names]
    return rows.select(*(col(quote_name(name)) for name in names), *missing) if missing else rows


def left_out(field: pa.Field) -> Column:
    """A stand-in for a column that was not read because the statement does not name it; using it fails."""
    message = f"the column {field.name} was not read, because no name in the statement asks for it; name it there"
    return raise_error(lit(message)).cast(to_spark_type(field.type)).alias(field.name)


def _send_replaced(spark: SparkSession, files: Sequence[ThinnedFile]) -> tuple[int, StayingRows]:
    replaced = replaced_of(files)
    # Arrow's schema says that no element is null, so Spark checks no rows for that.
    return replaced.longs.nbytes, StayingRows.of(spark.createDataFrame(replaced.rows), replaced)


def _send_rows(spark: SparkSession, effects: Sequence[SliceEffect], names: Sequence[str]) -> tuple[int, DataFrame]:
    if names:
        rows = pa.concat_tables(one.added.select(names) for one in effects).combine_chunks()
    else:
        # If no column is asked for, slices may have none in common, and rows without columns could not be counted.
        rows = pa.table({_COUNTED: pa.nulls(sum(one.added.num_rows for one in effects), pa.int32())})
    return rows.nbytes + analyzed_bytes(rows.num_columns), abilities_of(spark).column_frame(rows)
