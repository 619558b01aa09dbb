"""lakehouse_engine through its public Python API, with its defaults."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow.dataset as ds

from benchmarks.contenders.base import KEY, ORDERING
from benchmarks.contenders.spark import SparkContender
from lakehouse_engine import HoodieTable, Lakehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Ours(SparkContender):
    table_type: ClassVar[str] = "cow"
    properties: ClassVar[dict[str, str]] = {}

    def start(self, *, memory: str, scratch: str, jars: list[str]) -> dict[str, str]:
        versions = super().start(memory=memory, scratch=scratch, jars=jars)
        return {"lakehouse_engine": installed_version(), **versions}

    def bulk_insert(self, *, table: str, source: str) -> None:
        rows = self.rows(source)
        self._create(table, rows.schema).bulk_insert(rows)

    def bulk_insert_arrow(self, *, table: str, source: str) -> None:
        rows = ds.dataset(source)
        self._create(table, rows.schema).bulk_insert(rows.scanner().to_reader())

    def upsert(self, *, table: str, source: str) -> None:
        HoodieTable.open(table, spark=self.spark).upsert(self.rows(source))

    def upsert_noop(self, *, table: str, source: str) -> None:
        HoodieTable.open(table, spark=self.spark).upsert(self.no_rows(source))

    def version(self, *, table: str) -> str:
        newest = HoodieTable.open(table).timeline.completed().last()
        if newest is None:
            raise ValueError(f"{table} has no completed instant")
        return newest.completed_at or newest.requested_time

    def frame(self, table: str) -> DataFrame:
        return HoodieTable.open(table, spark=self.spark).dataframe(self.spark)

    def scan_incremental(self, *, table: str, since: str) -> list[Any]:
        return self.narrow(HoodieTable.open(table, spark=self.spark).dataframe(self.spark, query="incremental", begin=since))

    def _create(self, table: str, schema: Any) -> HoodieTable:
        return create(table, schema, self.spark, table_type=self.table_type, properties=self.properties)


def create(table: str, schema: Any, spark: SparkSession | None = None, **form: Any) -> HoodieTable:
    """The benchmark's table, without rows; `form` as of `Lakehouse.create_table`."""
    path = Path(table)
    lakehouse, name = Lakehouse(str(path.parent.parent), spark=spark), f"{path.parent.name}.{path.name}"
    return lakehouse.create_table(name, schema=schema, record_key=[KEY], ordering_fields=[ORDERING], **form)


def installed_version() -> str:
    """Of the engine."""
    try:
        return version("dbt-lakehouse")
    except PackageNotFoundError:
        return "source tree"


CONTENDER = Ours
