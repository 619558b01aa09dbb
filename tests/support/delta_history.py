"""Merge-on-read tables of every kind that we write, with a copy of each after every commit of a mixed load."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakehouse_engine.table import HoodieTable
from tests.support.table_builder import RICH, TableBuilder, rich_row
from tests.support.table_model import Row

COMMITS = 12
"""Writes of a history, compactions not counted."""

EARLY = pa.schema([field for field in RICH if field.name not in ("price", "tags", "address")])
"""What an evolving table begins with: three columns come later."""
RECONCILE = {"hoodie.datasource.write.reconcile.schema": True}
BUCKETS = {"hoodie.bucket.index.num.buckets": "3"}


@dataclass(frozen=True)
class Moment:
    """The table as one step left it: a copy at `path`, the rows it must have, and its commits so far."""

    step: str
    path: Path
    rows: pa.Table
    instants: tuple[str, ...]
    pending: bool = False

    @property
    def table(self) -> HoodieTable:
        return HoodieTable.open(str(self.path))


@dataclass
class History:
    """A table at work, and what it was like after each step."""

    built: TableBuilder
    moments: list[Moment] = field(default_factory=list)
    pending: bool = False

    def moment(self, step: str) -> Moment:
        return next(moment for moment in self.moments if moment.step == step)

    def keep(self, step: str) -> None:
        """Copy the table as it is now, modification times included."""
        path = self.built.path.parent / f"{self.built.path.name}_{len(self.moments):02d}_{step.replace(' ', '_')}"
        shutil.copytree(self.built.path, path)
        model = self.built.model
        self.moments.append(Moment(step, path, self.built.expected(model.snapshot()), tuple(model.snapshots), self.pending))

    # services

    def schedule(self) -> None:
        """Plan a compaction, for `run_compaction` or another writer to run."""
        assert self.built.table.compact("schedule").instant is not None, "no slice has logs"
        self.pending = True

    def run_compaction(self) -> None:
        self._compacted(self.built.table.compact("run").instant)
        self.pending = False

    def compact(self) -> None:
        self._compacted(self.built.table.compact().instant)

    def evolve(self) -> None:
        """From now on rows have every column; what is stored has nulls in those that it had not."""
        added = dict.fromkeys(set(RICH.names) - set(self.built.schema.names))
        self.built.schema = RICH
        for stored in [self.built.model.stored, *self.built.model.snapshots.values()]:
            for _, row in stored.values():
                row.update(added)

    def _compacted(self, instant: str | None) -> None:
        assert instant is not None, "there was nothing to compact"
        self.built.model.compact(instant)


@dataclass(frozen=True)
class Kind:
    """`rewrites`: updates need stored rows, so that none can be logged while a compaction is pending; hudi-rs does not read its payload.

    `late_rows`: whether some rows are older than the stored ones. With buckets such rows are logged unseen, and incremental queries may
    show them. `evolves`: the table begins with the columns of `EARLY`.
    """

    keys: Sequence[str] = ("id",)
    partitions: Sequence[str] = ()
    ordering: str | None = "ts"
    log_format: str = "parquet"
    rewrites: bool = False
    late_rows: bool = True
    evolves: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)

    def create(self, folder: Path, name: str) -> TableBuilder:
        options = {
            # Many small files, so that an upsert touches some groups and leaves others.
            "hoodie.parquet.small.file.limit": 2000,
            "hoodie.logfile.data.block.format": self.log_format,
            "hoodie.clean.automatic": False,
        }
        more = {"ordering": self.ordering, **self.more}
        return TableBuilder.create(
            folder / name,
            EARLY if self.evolves else RICH,
            record_key=self.keys,
            partition_by=self.partitions,
            table_type="mor",
            options={**options, **more.pop("options", {})},
            **more,
        )


KINDS: dict[str, Kind] = {
    "simple": Kind(partitions=("region",)),
    "nonpartitioned_avro": Kind(log_format="avro"),
    "simple_plain_avro": Kind(("code",), ("day",), log_format="avro", more={"hive_style": False, "index": "SIMPLE"}),
    "complex": Kind(("id", "code"), ("region", "day")),
    "complex_one_key_plain": Kind(("id",), ("region", "day"), more={"hive_style": False}),
    "nonpartitioned_two_keys": Kind(("id", "code"), ordering=None),
    "overwrite_with_ordering": Kind(partitions=("region",), late_rows=False, more={"payload": "overwrite"}),
    "partial": Kind(log_format="avro", rewrites=True, late_rows=False, more={"payload": "partial"}),
    "bucket": Kind(partitions=("region",), late_rows=False, more={"index": "BUCKET", "properties": BUCKETS}),
    "bucket_avro": Kind(("id", "code"), ordering=None, log_format="avro", more={"index": "BUCKET", "properties": BUCKETS}),
    "evolved": Kind(partitions=("region",), evolves=True, more={"options": RECONCILE}),
    "evolved_avro": Kind(log_format="avro", evolves=True, more={"options": RECONCILE}),
}


def rows(numbers: Sequence[int], seed: int, **fixed: Any) -> list[Row]:
    return [rich_row(number, seed, **fixed) for number in numbers]


def history(folder: Path, name: str) -> History:
    """Twelve commits: inserts, updates, deletes, deleted keys again, late rows. One compaction is pending for two of them, one is not."""
    kind = KINDS[name]
    made = History(kind.create(folder, name))
    built = made.built
    late = [rich_row(number, 9, ts=(None, 50, 300)[number % 3]) for number in range(0, 24, 2)]
    steps: list[tuple[str, Callable[[], object]]] = [
        ("first rows", lambda: built.bulk_insert(rows(range(12), 0))),
        ("updates and inserts", lambda: built.upsert(rows(range(5, 18), 1))),
        ("deletes", lambda: built.delete(rows([1, 7, 13, 99], 0))),
        ("inserts", lambda: built.insert(rows(range(18, 24), 2))),
        ("late rows", lambda: built.upsert(late if kind.ordering and kind.late_rows else rows(range(0, 24, 2), 9))),
        ("deleted keys again", lambda: built.upsert(rows([1, 7, 2, 30], 210))),
        ("scheduled", made.compact if kind.rewrites else made.schedule),
        ("updates while pending", lambda: built.upsert(rows(range(3, 15), 220))),
        ("deletes while pending", lambda: built.delete(rows([3, 14, 20], 0))),
        ("compacted", made.compact if kind.rewrites else made.run_compaction),
        ("updates after", lambda: built.upsert(rows(range(10, 28), 230))),
        ("some columns", lambda: built.upsert(rows(range(4, 9), 240, name="partly", price=None), columns=["name", "price"])),
        ("elsewhere", lambda: built.upsert([rich_row(number, 400, **_moved(number, kind)) for number in range(10, 16)])),
        ("compacted again", made.compact),
        ("last updates", lambda: built.upsert(rows(range(0, 32, 3), 500))),
    ]
    for step, do in steps:
        if kind.evolves and step == "late rows":
            made.evolve()
        do()
        made.keep(step)
    return made


def _moved(number: int, kind: Kind) -> Row:
    """Under a global index these leave their partition; else they are other records."""
    return {column: rich_row(number + 1)[column] for column in kind.partitions}
