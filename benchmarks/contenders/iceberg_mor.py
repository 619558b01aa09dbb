"""Iceberg, format version 3, merge-on-read: updated rows are marked in deletion vectors and written to new files."""

from __future__ import annotations

from typing import ClassVar

from benchmarks.contenders.iceberg_spark import IcebergSpark


class IcebergMor(IcebergSpark):
    properties: ClassVar[dict[str, str]] = {
        "format-version": "3",
        "write.delete.mode": "merge-on-read",
        "write.update.mode": "merge-on-read",
        "write.merge.mode": "merge-on-read",
    }

    def compact(self, *, table: str) -> None:
        """Every file, not only those with deletions: the small ones of the upserts are to go too."""
        _, schema, name = self.name(table).split(".")
        self.spark.sql(
            f"call lake.system.rewrite_data_files(table => '{schema}.{name}', options => map('rewrite-all', 'true'))"
        ).collect()

    def deltas(self, *, table: str) -> int:
        return int(self.spark.table(f"{self.name(table)}.delete_files").count())


CONTENDER = IcebergMor
