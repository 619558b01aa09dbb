"""Spark's own Parquet writer and reader, without a table format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.contenders.spark import SparkContender

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkParquet(SparkContender):
    def bulk_insert(self, *, table: str, source: str) -> None:
        self.rows(source).write.parquet(table)

    def frame(self, table: str) -> DataFrame:
        return self.rows(table)


CONTENDER = SparkParquet
