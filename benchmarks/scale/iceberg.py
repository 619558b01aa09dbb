"""Iceberg, copy-on-write, by its MERGE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.contenders.iceberg_spark import IcebergSpark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Iceberg(IcebergSpark):
    largest_part = -1

    def make(self, spark: SparkSession, path: str, rows: DataFrame, table_type: str) -> None:
        self.spark = spark
        writer = rows.writeTo(self.name(path)).using("iceberg")
        for key, value in {**self.properties, "write.parquet.compression-codec": "zstd", "write.distribution-mode": "none"}.items():
            writer = writer.tableProperty(key, value)
        writer.create()

    def ready(self, spark: SparkSession, path: str, options: dict[str, Any]) -> None:
        self.spark, self._path = spark, path

    def upsert(self, batch: DataFrame) -> str | None:  # type: ignore[override]
        self._merge(self._path, batch)
        return None

    def total(self) -> int:
        return int(self.frame(self._path).selectExpr("sum(n)").collect()[0][0])


SUBJECT = Iceberg
