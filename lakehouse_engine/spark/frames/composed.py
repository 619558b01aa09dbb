"""Snapshots put together of Spark's scans and of what the logs of slices do, kept with their session: the next statement that reads the
same files, logs and columns takes the same frame, which Spark has analyzed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import COMMIT_TIME, META_COLUMNS
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.frames.by_session import BySession
from lakehouse_engine.spark.frames.effects import EFFECTS, SliceEffect
from lakehouse_engine.spark.frames.replaced.positions import StayingRows, replaced_of
from lakehouse_engine.spark.frames.scanned import Checked, checked, in_range, scanned, stored_schema
from lakehouse_engine.spark.frames.sent import SENT
from lakehouse_engine.spark.schema import to_spark_schema
from lakehouse_engine.sql.grammar.lexer import quote_name


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a plan is read of: files of which all rows count, files that have lost some to logs, and what the logs replaced and added."""

    whole: tuple[BaseFile, ...]
    thinned: tuple[BaseFile, ...]
    replacing: tuple[SliceEffect, ...]
    adding: tuple[SliceEffect, ...]

    @classmethod
    def of(cls, plan: ScanPlan) -> _Parts:
        effects = _effects(plan)
        files = {file.path: file for file in plan.base_files()}
        kept = [one for one in effects if one.base and one.base not in plan.replaced_only]
        return cls(
            (*plan.files, *(files[str(one.base)] for one in kept if not len(one.removed))),
            tuple(files[str(one.base)] for one in kept if len(one.removed)),
            # All that was replaced is sent, so that the next query, which may read other files, finds it there.
            tuple(one for one in effects if one.base and len(one.removed)),
            tuple(one for one in effects if one.added.num_rows),
        )


_OF_A_FILE = 1024
"""About as many bytes Spark knows of a file."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A frame, and what its key has the ids of."""

    frame: DataFrame
    files: int
    effects: tuple[SliceEffect, ...]

    @property
    def nbytes(self) -> int:
        """What stays in memory for it, even when nothing else keeps it."""
        return (1 + self.files) * _OF_A_FILE + sum(effect.nbytes for effect in self.effects)


class ComposedFrames(BySession[_Kept]):
    """Frames of each session, with at most `limit` bytes a session."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit, lambda one: one.nbytes)


COMPOSED = ComposedFrames(limit=128 * 1024 * 1024)


def composed(spark: SparkSession, plan: ScanPlan, names: Sequence[str]) -> DataFrame:
    """The rows of a plan with the columns `names`. Logs that this process has not read before are read here and now."""
    parts = _Parts.of(plan)
    whole, thinned = checked(plan, parts.whole), checked(plan, parts.thinned)

    def make() -> DataFrame:
        return _united_parts(spark, plan, names, parts, whole, thinned)

    if not plan.verify:
        return make()
    ids = tuple(map(id, parts.replacing)), tuple(map(id, parts.adding))
    effects = tuple({id(one): one for one in (*parts.replacing, *parts.adding)}.values())
    key: Hashable = plan.storage.root, stored_schema(plan), plan.rules, plan.commit_range, tuple(names), whole, thinned, ids
    return COMPOSED.of(spark).find(key, lambda: _Kept(make(), len(whole) + len(thinned), effects)).frame


def united(frames: Sequence[DataFrame], names: Sequence[str]) -> DataFrame:
    """The columns `names` of all frames."""
    quoted = [quote_name(name) for name in names]
    return reduce(DataFrame.unionAll, [frame.selectExpr(*quoted) for frame in frames])


def _effects(plan: ScanPlan) -> list[SliceEffect]:
    if plan.reader is None:
        return []
    meta = META_COLUMNS if plan.reader.has_meta_columns else ()
    return EFFECTS.effects(plan.reader, plan.logged, [*meta, *plan.schema.names])


def _united_parts(spark: SparkSession, plan: ScanPlan, names: Sequence[str], parts: _Parts, whole: Checked, thinned: Checked) -> DataFrame:
    frames = [scanned(spark, plan, parts.whole, whole)] if parts.whole else []
    if parts.thinned:
        staying = SENT.get(spark, parts.replacing, ["replaced"], lambda: _send_replaced(spark, parts.replacing))
        frames.append(staying.of_frame(scanned(spark, plan, parts.thinned, thinned), plan.schema.names))
    if parts.adding:
        sent = list(names) if plan.commit_range is None else list(dict.fromkeys([COMMIT_TIME, *names]))
        rows = SENT.get(spark, parts.adding, ["rows", *sent], lambda: _send_rows(spark, parts.adding, sent))
        frames.append(rows)
    if not frames:
        frames = [spark.createDataFrame([], to_spark_schema(stored_schema(plan)))]
    return united([in_range(frame, plan) for frame in frames], names)


def _send_replaced(spark: SparkSession, effects: Sequence[SliceEffect]) -> StayingRows:
    replaced = replaced_of(effects)
    # With the schema that Arrow tells, in which no element is null: nothing is looked at for that, row by row.
    return StayingRows.of(spark.createDataFrame(replaced.rows), replaced)


def _send_rows(spark: SparkSession, effects: Sequence[SliceEffect], names: Sequence[str]) -> DataFrame:
    rows = pa.concat_tables(one.added.select(names) for one in effects).combine_chunks()
    return abilities_of(spark).column_frame(rows)
