"""Frames over base files, kept with their session: who reads the same files again lists nothing again.

Spark asks for every file that it is given, in a job of as many tasks where they are more than some thirty: of a thousand files that is
seconds, in each statement. Files never change under their names, and each is looked at before a frame of it is used again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager

from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.frames.by_session import BySession
from lakehouse_engine.spark.settings import with_settings

_FROM, _TASKS = "spark.sql.sources.parallelPartitionDiscovery.threshold", "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_NEVER = str(2**31 - 1)


class ScannedFrames(BySession[tuple[DataFrame, int]]):
    """Frames of each session, over at most `limit` files a session."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit, lambda one: one[1])

    def get(self, spark: SparkSession, key: Hashable, files: int, make: Callable[[], DataFrame]) -> DataFrame:
        """What `make` made for this key, now or before, of that many files. Its columns are the same ones each time it is given."""
        return self.of(spark).find(key, lambda: (make(), files))[0]


SCANNED = ScannedFrames(limit=100_000)


def listed_here(spark: SparkSession) -> AbstractContextManager[None]:
    """Where executors are this machine, the driver looks at files itself; elsewhere tasks share them, rather than have one each."""
    abilities = abilities_of(spark)
    given = {_FROM: _NEVER} if abilities.is_local else {_TASKS: str(abilities.parallelism)}
    return with_settings(spark, given)
