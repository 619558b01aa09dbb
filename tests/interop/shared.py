"""A table that we and Apache Hudi write in turns, with the model that follows both."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lakehouse_engine.commit.transaction import Transaction
from tests.interop.client import HudiJudge
from tests.interop.continuation import HudiWriter
from tests.model_based.restore_scenarios import Cell
from tests.support.readers import assert_same_rows, read_with_hudi_rs
from tests.support.table_builder import TableBuilder, rich_row
from tests.support.table_model import Row

NULLS_IN_LISTS = {"spark.hadoop.parquet.avro.write-old-list-structure": "false"}
"""Without this a writing Hudi refuses a null inside a list, whoever wrote it."""


class Shared:
    """One table, of which our builder and a Hudi writer take turns; the builder's model follows both."""

    def __init__(
        self,
        built: TableBuilder,
        judge: HudiJudge,
        partition_by: Sequence[str] = ("region",),
        *,
        more: Mapping[str, str] | None = None,
        **writer: Any,
    ) -> None:
        self.built = built
        options = {
            "hoodie.table.name": built.path.name,
            "hoodie.datasource.write.table.type": str(built.table.config.table_type.value),
            "hoodie.datasource.write.recordkey.field": ",".join(built.model.key_fields),
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": ",".join(partition_by),
            "hoodie.datasource.write.hive_style_partitioning": str(built.table.config.hive_style_partitioning).lower(),
            "hoodie.datasource.write.partitionpath.urlencode": "true",
            # Every batch makes file groups of its own, so that clustering has something to do.
            "hoodie.parquet.small.file.limit": "0",
            **(more or {}),
        }
        options = {key: value for key, value in options.items() if value}
        self.hudi = HudiWriter(judge=judge, path=built.path, options=options, **writer)

    def upsert(self, rows: Sequence[Row]) -> None:
        self.hudi.upsert(self.built.arrow(rows))
        self._follow(lambda instant: self.built.model.upsert(rows, instant))

    def delete(self, rows: Sequence[Row]) -> None:
        self.hudi.delete(self.built.arrow(rows))
        self._follow(lambda instant: self.built.model.delete(rows, instant))

    def compact(self, op: str = "scheduleAndExecute") -> None:
        """Let Hudi plan a compaction (`schedule`), run a planned one (`run`), or both (`scheduleAndExecute`)."""
        before = set(self.hudi.instants())
        self.hudi.compact(op)
        self._compacted(set(self.hudi.instants()) - before, op != "schedule")

    def compact_ourselves(self, op: str = "schedule_and_run") -> None:
        done = self.built.table.compact(op)
        assert done.instant is not None, "there is nothing to compact"
        self._compacted({done.instant}, op != "schedule")

    def _compacted(self, instants: set[str], completed: bool) -> None:
        assert not completed or len(instants) == 1, "nothing was compacted"
        for instant in sorted(instants) if completed else ():
            self.built.model.compact(instant)

    def rollback(self) -> None:
        """Let Hudi take back the newest write; 1.2.0 looks for it in a timeline of version 8 only, so there we do."""
        newest = self.newest()
        if self.hudi.judge.version == "1.2.0":
            assert self.built.table.rollback(newest).rolled_back == newest
        else:
            self.hudi.rollback(newest)
        earlier = [time for time in self.built.model.snapshots if time < newest]
        self.built.model.go_back(earlier[-1])

    def restore(self, instant: str) -> None:
        self.hudi.restore(instant)
        self.built.model.go_back(instant)

    def check(self, *, hudi_rs: bool = True) -> None:
        """The model, we, Hudi (by listing, and through its metadata table if it keeps one) and hudi-rs have the same rows."""
        ours = self.built.check_snapshot()
        assert_same_rows(self.hudi.read(), ours)
        if hudi_rs:
            assert_same_rows(read_with_hudi_rs(self.built.path), ours)
        assert self.hudi.version() == str(int(self.built.table.config.version))

    def check_incremental(self, begin: str) -> None:
        end = self.newest()
        ours = self.built.table.to_arrow(query="incremental", begin=begin, end=end, meta_columns=True)
        assert_same_rows(self.hudi.read(begin=begin, end=end), ours)
        assert_same_rows(read_with_hudi_rs(self.built.path, begin=begin, end=end), ours)

    def newest(self) -> str:
        last = self.built.table.timeline.completed().writes().last()
        assert last is not None
        return last.requested_time

    def has_metadata_table(self) -> bool:
        return (self.built.path / ".hoodie" / "metadata").exists()

    def _follow(self, change: Callable[[str], None]) -> None:
        change(self.newest())


def rows(numbers: Sequence[int], seed: int, *, null_elements: bool = True) -> list[Row]:
    made = [rich_row(number, seed=seed) for number in numbers]
    if not null_elements:
        made = [{**row, "tags": row["tags"] and [tag for tag in row["tags"] if tag]} for row in made]
        made = [{**row, "parts": row["parts"] and [part for part in row["parts"] if part]} for row in made]
    return made


def crashed_copy(built: TableBuilder, write: Callable[[], object], target: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a writer killed right before its commit leaves, at `target`; the instant it had."""
    instants = []

    def die(transaction: Transaction, metadata: object) -> None:
        instants.append(transaction.instant_time)
        shutil.copytree(built.path, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "complete", die)
        with pytest.raises(KeyboardInterrupt):
            write()
    return instants[0]


def writer_of(hudi: HudiJudge, cell: Cell) -> HudiWriter:
    """Hudi as the next writer of the table of a restore scenario."""
    options = {
        "hoodie.table.name": "restored",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ" if cell.merge_on_read else "COPY_ON_WRITE",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "part" if cell.partitioned else "",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
    }
    return HudiWriter(judge=hudi, path=cell.path, options=options)


def files_of(path: Path, instant: str) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in path.rglob(f"*{instant}*") if file.suffix != ".crc")
