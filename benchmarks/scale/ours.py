"""Ours: the public Python API, with the largest part that a task is sent looked at on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.spark.tasks.parcels import Packing
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.write.create import TableSpec, create_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Ours:
    extra_settings: ClassVar[dict[str, str]] = {}
    largest_part = 0

    def make(self, spark: SparkSession, path: str, rows: DataFrame, table_type: str) -> None:
        schema = pa.schema([("id", pa.string()), ("n", pa.int64()), ("price", pa.float64()), ("text", pa.string())])
        create_table(LocalStorage(path), TableSpec("t", schema, ["id"], [], [], table_type))
        HoodieTable.open(path, spark=spark).bulk_insert(rows)

    def ready(self, spark: SparkSession, path: str, options: dict[str, Any]) -> None:
        self._table, self._options = HoodieTable.open(path, spark=spark), options
        self._look_at_parts()
        spark.range(10).mapInArrow(lambda batches: batches, "id long").collect()  # Python workers run

    def upsert(self, batch: DataFrame) -> str | None:
        return self._table.upsert(batch, options=self._options).route

    def total(self) -> int:
        return int(pc.sum(self._table.to_arrow(["n"]).column("n")).as_py())

    def _look_at_parts(self) -> None:
        add = Packing.add

        def looking(packing: Packing, data: bytes) -> None:
            self.largest_part = max(self.largest_part, len(data))
            add(packing, data)

        Packing.add = looking  # type: ignore[method-assign]


SUBJECT = Ours
