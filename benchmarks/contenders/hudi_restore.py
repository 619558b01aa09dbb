"""Apache Hudi on tables of ten files, for savepoints and restores by its procedures, which know tables by name only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.contenders.base import KEY
from benchmarks.contenders.hudi_mor import HudiMor
from benchmarks.contenders.hudi_spark import HudiSpark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILES = 10


class HudiTenFiles(HudiSpark):
    _load = False

    def bulk_insert(self, *, table: str, source: str) -> None:
        self._load = True
        super().bulk_insert(table=table, source=source)
        self._load = False

    def rows(self, source: str) -> DataFrame:
        """A load writes one file of each partition of its input."""
        found = super().rows(source)
        return found.repartitionByRange(FILES, KEY) if self._load else found

    def version(self, *, table: str) -> str:
        """The request time of the newest commit, which the procedures take. Gives the table its name, too."""
        self.spark.sql(f"create table if not exists {_name(table)} using hudi location '{table}'")
        timeline = Path(table) / ".hoodie" / "timeline"
        return max(path.name.partition("_")[0] for path in timeline.glob("*_*.*commit"))

    def savepoint(self, *, table: str) -> str:
        newest = self.version(table=table)
        self.spark.sql(f"call create_savepoint(table => '{_name(table)}', commit_time => '{newest}')").collect()
        return newest

    def restore(self, *, table: str, savepoint: str) -> None:
        (row,) = self.spark.sql(f"call rollback_to_savepoint(table => '{_name(table)}', instant_time => '{savepoint}')").collect()
        if row[0] is not True:
            raise RuntimeError(f"rollback_to_savepoint answered {row}")


class HudiMorTenFiles(HudiTenFiles, HudiMor):
    pass


def _name(table: str) -> str:
    """A name that no other copy of the table has."""
    return f"orders_{Path(table).parents[1].name.replace('-', '_')}"


CONTENDER = HudiTenFiles
