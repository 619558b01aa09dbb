"""Hudi, copy-on-write, with its default index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks.contenders.hudi_spark import HudiSpark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Hudi(HudiSpark):
    options: ClassVar[dict[str, str]] = {
        **HudiSpark.options,
        "hoodie.datasource.write.precombine.field": "n",
        "hoodie.bulkinsert.sort.mode": "NONE",
    }
    largest_part = -1

    def make(self, spark: SparkSession, path: str, rows: DataFrame, table_type: str) -> None:
        self._write(path, rows, "bulk_insert", "overwrite")

    def ready(self, spark: SparkSession, path: str, options: dict[str, Any]) -> None:
        self.spark, self._path = spark, path

    def upsert(self, batch: DataFrame) -> str | None:  # type: ignore[override]
        self._write(self._path, batch, "upsert", "append")
        return None

    def total(self) -> int:
        return int(self.frame(self._path).selectExpr("sum(n)").collect()[0][0])


SUBJECT = Hudi
