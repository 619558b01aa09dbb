"""Delta Lake on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from benchmarks.contenders.base import KEY
from benchmarks.contenders.spark import SparkContender

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class DeltaSpark(SparkContender):
    extra_settings: ClassVar[dict[str, str]] = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
    }

    def bulk_insert(self, *, table: str, source: str) -> None:
        self.rows(source).write.format("delta").save(table)

    def upsert(self, *, table: str, source: str) -> None:
        self._merge(table, self.rows(source))

    def upsert_noop(self, *, table: str, source: str) -> None:
        self._merge(table, self.no_rows(source))

    def frame(self, table: str) -> DataFrame:
        return self.spark.read.format("delta").load(table)

    def _merge(self, table: str, updates: DataFrame) -> None:
        updates.createOrReplaceTempView("updates")
        self.spark.sql(
            f"merge into delta.`{table}` as t using updates as u on t.{KEY} = u.{KEY} "
            "when matched then update set * when not matched then insert *"
        )


CONTENDER = DeltaSpark
