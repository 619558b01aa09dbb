"""Iceberg on Spark, in a Hadoop catalog."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from benchmarks.contenders.base import KEY
from benchmarks.contenders.spark import SparkContender

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CATALOG = "spark.sql.catalog.lake"


class IcebergSpark(SparkContender):
    properties: ClassVar[dict[str, str]] = {"format-version": "2", "write.merge.mode": "copy-on-write"}
    extra_settings: ClassVar[dict[str, str]] = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        _CATALOG: "org.apache.iceberg.spark.SparkCatalog",
        f"{_CATALOG}.type": "hadoop",
        # Tables are restored from copies behind the catalog's back.
        f"{_CATALOG}.cache-enabled": "false",
    }

    def bulk_insert(self, *, table: str, source: str) -> None:
        writer = self.rows(source).writeTo(self.name(table)).using("iceberg")
        for key, value in {**self.properties, "write.parquet.compression-codec": "zstd"}.items():
            writer = writer.tableProperty(key, value)
        writer.create()

    def upsert(self, *, table: str, source: str) -> None:
        self._merge(table, self.rows(source))

    def upsert_noop(self, *, table: str, source: str) -> None:
        self._merge(table, self.no_rows(source))

    def frame(self, table: str) -> DataFrame:
        return self.spark.table(self.name(table))

    def _merge(self, table: str, updates: DataFrame) -> None:
        updates.createOrReplaceTempView("updates")
        self.spark.sql(
            f"merge into {self.name(table)} as t using updates as u on t.{KEY} = u.{KEY} "
            "when matched then update set * when not matched then insert *"
        )

    def name(self, table: str) -> str:
        """The table's name. The catalog is initialized at its first use, so the first table decides the warehouse."""
        path = Path(table)
        self.spark.conf.set(f"{_CATALOG}.warehouse", str(path.parent.parent))
        return f"lake.{path.parent.name}.{path.name}"


CONTENDER = IcebergSpark
