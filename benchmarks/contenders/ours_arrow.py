"""lakehouse_engine without Spark: rows come as Arrow data, as delta-rs takes them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.contenders.ours import create, installed_version
from benchmarks.queries import COLUMNS
from lakehouse_engine import HoodieTable


class OursArrow:
    def start(self, *, memory: str, scratch: str, jars: list[str]) -> dict[str, str]:
        return {"lakehouse_engine": installed_version(), "pyarrow": pa.__version__}

    def bulk_insert_arrow(self, *, table: str, source: str) -> None:
        rows = ds.dataset(source)
        create(table, rows.schema).bulk_insert(rows.scanner().to_reader())

    def upsert(self, *, table: str, source: str) -> None:
        HoodieTable.open(table).upsert(pq.read_table(source))

    def upsert_noop(self, *, table: str, source: str) -> None:
        HoodieTable.open(table).upsert(pq.read_schema(next(Path(source).glob("*.parquet"))).empty_table())

    def export(self, *, table: str, target: str) -> None:
        Path(target).mkdir()
        pq.write_table(HoodieTable.open(table).to_arrow(columns=list(COLUMNS)), f"{target}/part-0.parquet")

    def jobs_started(self) -> int:
        return -1

    def stop(self) -> None:
        """Nothing is held."""


CONTENDER = OursArrow
