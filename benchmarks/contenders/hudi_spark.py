"""Apache Hudi on Spark, with its defaults except the codec (its gzip would cost it most of its time)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks.contenders.base import KEY, ORDERING
from benchmarks.contenders.spark import SparkContender

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OPTIONS = {
    "hoodie.datasource.write.recordkey.field": KEY,
    "hoodie.datasource.write.precombine.field": ORDERING,
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.parquet.compression.codec": "zstd",
}


class HudiSpark(SparkContender):
    options: ClassVar[dict[str, str]] = {"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}
    extra_settings: ClassVar[dict[str, str]] = {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    }

    def bulk_insert(self, *, table: str, source: str) -> None:
        self._write(table, self.rows(source), "bulk_insert", "overwrite")

    def upsert(self, *, table: str, source: str) -> None:
        self._write(table, self.rows(source), "upsert", "append")

    def upsert_noop(self, *, table: str, source: str) -> None:
        self._write(table, self.no_rows(source), "upsert", "append")

    def version(self, *, table: str) -> str:
        """The completion time of the newest commit, which the incremental query of table version 9 compares."""
        timeline = Path(table) / ".hoodie" / "timeline"
        return max(path.stem.partition("_")[2] for path in timeline.glob("*_*.commit"))

    def frame(self, table: str) -> DataFrame:
        return self.spark.read.format("hudi").load(table)

    def scan_incremental(self, *, table: str, since: str) -> list[Any]:
        options = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": since}
        return self.narrow(self.spark.read.format("hudi").options(**options).load(table))

    def _write(self, table: str, frame: DataFrame, operation: str, mode: str) -> None:
        options = {**_OPTIONS, **self.options, "hoodie.table.name": Path(table).name, "hoodie.datasource.write.operation": operation}
        frame.write.format("hudi").options(**options).mode(mode).save(table)


CONTENDER = HudiSpark
