"""lakehouse_engine with merge-on-read tables: the default index, the bucket index, table version 9. Compaction runs when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from benchmarks.contenders.base import BUCKETS
from benchmarks.contenders.file_groups import count_logs
from benchmarks.contenders.ours import Ours
from lakehouse_engine import HoodieTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class OursMor(Ours):
    table_type: ClassVar[str] = "mor"

    def base_frame(self, table: str) -> DataFrame:
        return HoodieTable.open(table, spark=self.spark).dataframe(self.spark, query="read_optimized")

    def compact(self, *, table: str) -> None:
        HoodieTable.open(table, spark=self.spark).compact()

    def deltas(self, *, table: str) -> int:
        return count_logs(table)


class OursMorBucket(OursMor):
    properties: ClassVar[dict[str, str]] = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": str(BUCKETS)}


class OursMor9(OursMor):
    """In table version 9, in which headers of log blocks say positions, not footers."""

    properties: ClassVar[dict[str, str]] = {"hoodie.write.table.version": "9"}


CONTENDER = OursMor
