"""Small plans that this process reads and hands to Spark, which then needs no access to the object store.

Fetched rows are kept with their session, so that the statements of a model and its tests read the same files once.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine.engine import local_runner, looking_runner
from lakehouse_engine.files.base_file import concat
from lakehouse_engine.options.read import FILES_ON_DRIVER, READ_FILES
from lakehouse_engine.read.arrow_scan import ReadTask, SliceTask, iter_task, plan_tasks
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.frames.by_session import BySession, analyzed_bytes
from lakehouse_engine.spark.frames.logged.effects import effect_key
from lakehouse_engine.spark.local_files import is_there
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import identity_of

_GROWN = 16
"""Allowed ratio of memory to file size; rows above it (for example equal values) are left to executors."""
_IN_PLAN = 64 * 1024
"""Bytes of rows that a plan may hold as rows, which show Spark how few they are; more are kept as Arrow data."""

_Kept = tuple[DataFrame | None, int]


def engine_reads(storage: Storage, options: Mapping[str, Any]) -> bool:
    """True if the engine, not Spark, opens a table's files (`lakehouse.read.files`). Raises `OptionError`."""
    choice = READ_FILES.read(options)
    return choice == "ENGINE" or (choice == "AUTO" and storage.local_path() is None)


class FetchedFrames(BySession[_Kept]):
    """Frames of each session, at most `limit` bytes per session."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit, lambda one: one[1])

    def get(self, spark: SparkSession, plan: ScanPlan, schema: pa.Schema, options: Mapping[str, Any]) -> DataFrame | None:
        """Rows of a plan with the columns of `schema`; None if they are too many for the driver.

        Raises as `read_arrow`.
        """
        most = FILES_ON_DRIVER.read(options)
        if plan.size > most:
            return None
        return self.of(spark).find(_key(plan, schema), lambda: _fetched(spark, plan, schema, most * _GROWN, options), _holds)[0]


def _holds(kept: _Kept) -> bool:
    return is_there(kept[0])


FETCHED = FetchedFrames(limit=256 * 1024 * 1024)


def _key(plan: ScanPlan, schema: pa.Schema) -> Hashable:
    """Files and logs never change under their names; an appended log is another one by its size."""
    logged = tuple(effect_key(plan.reader, piece) for piece in plan.logged) if plan.reader is not None else ()
    place = identity_of(plan.storage) or plan.storage.root
    files = tuple((file.path, file.size) for file in plan.files)
    return place, files, logged, schema, plan.schema, plan.instant, plan.commit_range, plan.verify


def _fetched(spark: SparkSession, plan: ScanPlan, schema: pa.Schema, most: int, options: Mapping[str, Any]) -> _Kept:
    budget = _Budget(most)
    tasks = plan_tasks(plan, schema.names)
    parts = looking_runner(local_runner(options), plan.storage).run(lambda task: _read(task, budget), tasks, name="fetch")
    if budget.is_spent:
        return None, 0
    rows = concat([table for part in parts for table in part], schema)
    abilities = abilities_of(spark)
    frame = abilities.frame(rows) if rows.nbytes <= _IN_PLAN else abilities.column_frame(rows)
    return frame, rows.nbytes + analyzed_bytes(rows.num_columns)


@dataclass(slots=True)
class _Budget:
    """Bytes that tasks together may still use."""

    left: int
    _lock: Lock = field(default_factory=Lock)

    @property
    def is_spent(self) -> bool:
        return self.left < 0

    def take(self, size: int) -> None:
        with self._lock:
            self.left -= size


def _read(task: ReadTask | SliceTask, budget: _Budget) -> Sequence[pa.Table]:
    parts: list[pa.Table] = []
    for part in iter_task(task):
        budget.take(part.nbytes)
        if budget.is_spent:
            return []
        parts.append(part)
    return parts
