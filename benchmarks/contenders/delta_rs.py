"""delta-rs (`deltalake`): Delta tables without Spark. Its threads are those of its own runtime, one a core."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder, WriterProperties, write_deltalake

from benchmarks.contenders.base import KEY
from benchmarks.queries import COLUMNS, QUERIES, plain, select_list

_PROPERTIES = WriterProperties(compression="ZSTD")


class DeltaRs:
    def start(self, *, memory: str, scratch: str, jars: list[str]) -> dict[str, str]:
        return {"deltalake": deltalake.__version__, "pyarrow": pa.__version__}

    def bulk_insert_arrow(self, *, table: str, source: str) -> None:
        write_deltalake(table, ds.dataset(source).scanner().to_reader(), writer_properties=_PROPERTIES)

    def upsert(self, *, table: str, source: str) -> None:
        self._merge(table, pq.read_table(source))

    def upsert_noop(self, *, table: str, source: str) -> None:
        self._merge(table, pq.read_schema(next(Path(source).glob("*.parquet"))).empty_table())

    def scan(self, *, table: str, query: str) -> list[Any]:
        result = self._query(table, f"select {select_list(QUERIES[query])} from scanned")
        return [plain(column[0].as_py()) for column in result.columns]

    def export(self, *, table: str, target: str) -> None:
        Path(target).mkdir()
        pq.write_table(self._query(table, f"select {', '.join(COLUMNS)} from scanned"), f"{target}/part-0.parquet")

    def jobs_started(self) -> int:
        return -1

    def stop(self) -> None:
        """Nothing is held."""

    def _merge(self, table: str, updates: pa.Table) -> None:
        merger = DeltaTable(table).merge(
            updates, predicate=f"t.{KEY} = u.{KEY}", source_alias="u", target_alias="t", writer_properties=_PROPERTIES
        )
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def _query(self, table: str, sql: str) -> pa.Table:
        reader = QueryBuilder().register("scanned", DeltaTable(table)).execute(sql)
        return pa.table(reader.read_all())


CONTENDER = DeltaRs
