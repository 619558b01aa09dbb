"""Apache Hudi with merge-on-read tables: the default index, and the simple bucket index. Compaction runs when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from benchmarks.contenders.base import BUCKETS
from benchmarks.contenders.file_groups import count_logs
from benchmarks.contenders.hudi_spark import HudiSpark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class HudiMor(HudiSpark):
    options: ClassVar[dict[str, str]] = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}

    def base_frame(self, table: str) -> DataFrame:
        return self.spark.read.format("hudi").option("hoodie.datasource.query.type", "read_optimized").load(table)

    def compact(self, *, table: str) -> None:
        # The procedure does not see the options of earlier writes: without the codec it would write gzip.
        codec = "hoodie.parquet.compression.codec=zstd"
        self.spark.sql(f"call run_compaction(op => 'scheduleAndExecute', path => '{table}', options => '{codec}')").collect()

    def deltas(self, *, table: str) -> int:
        return count_logs(table)


class HudiMorBucket(HudiMor):
    options: ClassVar[dict[str, str]] = {
        **HudiMor.options,
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "SIMPLE",
        "hoodie.bucket.index.num.buckets": str(BUCKETS),
    }


CONTENDER = HudiMor
