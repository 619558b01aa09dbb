"""What happens between a savepoint and the restore to it: the scenarios of the restore matrix (HUDI-3705, extended).

A `Cell` is a table of ours in a directory, with what it was at the savepoint. A scenario is a function of a cell that makes its history,
takes the savepoint by `cell.savepoint()`, and lets things happen; the test restores and compares.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lakehouse_engine.commit.leftovers.log_owners import log_owners
from lakehouse_engine.commit.table_clock import completion_time
from lakehouse_engine.commit.transaction import begin
from lakehouse_engine.errors import InstantCleanedError
from lakehouse_engine.format.avro.arrow_avro import table_avro_schema
from lakehouse_engine.format.avro.avro_schema import with_meta_columns
from lakehouse_engine.format.file_names import is_base_file_name, parse_base_file, parse_log_file
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.commit_metadata import SCHEMA_KEY, HoodieCommitMetadata
from lakehouse_engine.model.files import BaseFile, FileSlice
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.plans import (
    HoodieClusteringGroup,
    HoodieClusteringPlan,
    HoodieRequestedReplaceMetadata,
    HoodieSliceInfo,
)
from lakehouse_engine.model.services import ArchiveResult
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from lakehouse_engine.options import ServiceOptions, WriteOptions
from lakehouse_engine.record.keys.keygen import key_generator_of
from lakehouse_engine.services.metadata.building import build
from lakehouse_engine.services.metadata.upkeep import run_due
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.faults import SimulatedCrash
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.clock import InstantClock
from lakehouse_engine.write.batch.input import Keying
from lakehouse_engine.write.create import TableSpec, create_table
from lakehouse_engine.write.source import MemorySource
from lakehouse_engine.write.tasks.append import AppendTask, GroupAppend, append_logs
from lakehouse_engine.write.tasks.base_files import FileContext
from tests.support.depth import IS_FULL
from tests.support.dying_storage import DyingStorage
from tests.support.local_table import LocalTable
from tests.support.metadata_checks import buildable
from tests.support.versions import VERSIONS, version_of_new_tables

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
WIDER = SCHEMA.append(pa.field("more", pa.string()))
PARTS = ("x", "y")


def rows(ids: Sequence[int], seed: int, part: str | None = None, schema: pa.Schema = SCHEMA) -> pa.Table:
    """Rows of these ids; `seed` is the ordering value and in the text. A row's partition follows from its id, or is `part`."""
    made = [{"id": number, "part": part or PARTS[number % 2], "ts": seed, "v": f"v{number}/{seed}", "more": f"m{seed}"} for number in ids]
    return pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in made], schema=schema)


@dataclass
class Kept:
    """The table at the savepoint: rows with meta columns now and by commit time, and the digest of every data file by path."""

    instant: str
    rows: pa.Table
    by_commit: dict[str, pa.Table]
    files: dict[str, str]


@dataclass
class Cell:
    """`exact`: whether after the restore there must be exactly the data files of the savepoint (no clean took some meanwhile)."""

    path: Path
    merge_on_read: bool
    partitioned: bool
    kept: Kept | None = None
    exact: bool = True
    hudi_rs: bool = True
    notes: dict[str, Any] = field(default_factory=dict)
    indexed: bool = False

    @classmethod
    def create(cls, path: Path, *, merge_on_read: bool, partitioned: bool, indexed: bool = False) -> Cell:
        """`indexed`: with a metadata table that has all that this engine builds without a definition."""
        spec = TableSpec(
            name="restored",
            schema=SCHEMA,
            record_key=["id"],
            ordering_fields=["ts"],
            partition_by=["part"] if partitioned else [],
            table_type="mor" if merge_on_read else "cow",
            version=version_of_new_tables(),
        )
        create_table(LocalStorage(str(path)), spec)
        cell = cls(path, merge_on_read, partitioned, indexed=indexed)
        if indexed:
            build(cell.storage, buildable(cell.table.state), lock_timeout_ms=5000)
        return cell

    @property
    def storage(self) -> LocalStorage:
        return LocalStorage(str(self.path))

    @property
    def table(self) -> LocalTable:
        return LocalTable(self.storage, {"lakehouse.task.threads": 1}, lock_timeout_ms=5000)

    @property
    def saved(self) -> Kept:
        assert self.kept is not None, "the scenario has to take a savepoint"
        return self.kept

    # history

    def begin(self) -> None:
        """Two commits: ten rows, then some changed (in logs where the table merges on read) and two added."""
        self.table.insert(rows(range(10), 1))
        self.table.upsert(rows([1, 2, 3, 10, 11], 2))

    def upsert(self, seed: int, ids: Sequence[int] = (2, 3, 4, 5, 20)) -> str:
        instant = self.table.upsert(rows(ids, seed)).instant
        assert instant is not None
        return instant

    def delete(self, ids: Sequence[int]) -> None:
        names = ["id", "part"] if self.partitioned else ["id"]
        self.table.delete(rows(ids, 9).select(names))

    def archive(self) -> ArchiveResult:
        """A metadata table is compacted before: the table is archived no further than that."""
        if self.indexed:
            options = ServiceOptions.read({"hoodie.metadata.compact.max.delta.commits": 1})
            run_due(self.table.state, options, self.table.runner, lock_timeout_ms=5000)
        return self.table.archive(2, 3)

    def savepoint(self, instant: str | None = None, name: str | None = "kept") -> None:
        made = self.table.savepoint(instant, name)
        self.kept = self.look(made.instant)

    def look(self, instant: str) -> Kept:
        files = {path: digest for path, digest in self.data_files().items() if not self._is_later(path, instant)}
        return Kept(instant, self.read(as_of=instant), self.by_commit(instant), files)

    def _is_later(self, path: str, instant: str) -> bool:
        order, (partition, _, name) = self.table.state.order, path.rpartition("/")
        if is_base_file_name(name):
            return order.is_after(parse_base_file(partition, name).instant_time, instant)
        return log_owners(self.storage, parse_log_file(partition, name)).only_after(order, instant)

    # looking

    def read(self, *, as_of: str | None = None) -> pa.Table:
        """Now, or when an instant had just been completed."""
        return self.table.read(meta_columns=True, as_of=None if as_of is None else self.table.state.order.moment(as_of))

    def by_commit(self, until: str) -> dict[str, pa.Table]:
        """The table as of every commit up to `until` that can be read."""
        found = {}
        timeline = self.table.state.timeline
        for instant in timeline.completed().writes().up_to(timeline.order.moment(until)):
            with contextlib.suppress(InstantCleanedError):
                found[instant.requested_time] = self.read(as_of=instant.requested_time)
        return found

    def data_files(self) -> dict[str, str]:
        entries = (entry for entry in self.storage.walk() if not entry.path.startswith(".hoodie"))
        return {
            entry.path: hashlib.sha256(self.storage.read(entry.path)).hexdigest()
            for entry in entries
            if ".hoodie_partition" not in entry.path
        }

    def last_write(self) -> str:
        last = self.table.state.timeline.completed().writes().last()
        assert last is not None
        return last.requested_time

    # what dies

    def dies(self, before: str, act: Callable[[LocalTable], object]) -> None:
        """`act` in a process that dies before the call that matches."""
        dying = LocalTable(DyingStorage(self.storage, before), {"lakehouse.task.threads": 1}, lock_timeout_ms=5000)
        with contextlib.suppress(SimulatedCrash):
            act(dying)
            raise AssertionError(f"nothing matched {before!r}")

    # what the engine does not make itself

    def cluster(self, *, complete: bool = True) -> str:
        """A clustering of every slice without logs, as Hudi leaves one: each file again in a group of its own, replacing the old one."""
        state = self.table.state
        pieces = [piece for piece in state.view.latest_slices() if piece.base_file is not None and not piece.log_files]
        assert pieces, "nothing to cluster"
        timeline = ActiveTimeline(state.storage, state.format)
        time = InstantClock("UTC").next(state.timeline)
        plan = HoodieRequestedReplaceMetadata(operation_type="CLUSTER", clustering_plan=_clustering(state.storage, pieces), version=1)
        instant = timeline.create_requested(Instant(time, state.format.clustering_action, State.REQUESTED), encode_plan(plan))
        if complete:
            instant = timeline.to_inflight(instant)
            stats = [self._rewrite(piece, time) for piece in pieces]
            timeline.complete(instant, state.format.encode_commit(_clustered(state, pieces, stats)), completion_time(state, instant))
        return time

    def _rewrite(self, piece: FileSlice, time: str) -> HoodieWriteStat:
        assert piece.base_file is not None
        new = BaseFile(piece.partition_path, f"clustered-{piece.file_id[:8]}-0", "0-1-1", time)
        data = self.storage.read(piece.base_file.path)
        self.storage.create(new.path, data)
        size = len(data)
        return HoodieWriteStat(
            file_id=new.file_id, path=new.path, partition_path=piece.partition_path, total_write_bytes=size, file_size_in_bytes=size
        )

    def log_new_group(self, ids: Sequence[int], seed: int) -> str:
        """A delta commit that puts new rows into a group of logs only, as Hudi's Flink writers do."""
        added = rows(ids, seed, "x")
        state = self.table.state
        avro = table_avro_schema(state.config.name, SCHEMA)
        with begin(self.storage, lock_timeout_ms=5000) as transaction:
            transaction.start(Action.DELTA_COMMIT)
            time = transaction.instant_time
            transaction.inflight(HoodieCommitMetadata(operation_type=WriteOperationType.INSERT))
            context = FileContext(
                storage=self.storage,
                instant_time=time,
                schema=SCHEMA,
                avro_schema=with_meta_columns(avro),
                options=WriteOptions.read({}),
                unique_columns=frozenset({"id"}),
            )
            keying = Keying(
                schema=SCHEMA, generator=key_generator_of(state.config), instant_time=time, keyless=False, allow_timestamp_ntz=False
            )
            partition = "part=x" if self.partitioned else ""
            group = FileSlice(FileGroupId(partition, f"loggroup-{seed}-0"), time)
            append = GroupAppend(group, time, np.arange(len(ids), dtype=np.int64), len(ids))
            statuses = append_logs(AppendTask(context, 0, (append,), MemorySource(keying.key(added))))
            stats = tuple(status.stat for status in statuses if status.stat is not None)
            transaction.complete(
                HoodieCommitMetadata(
                    partition_to_write_stats={partition: stats},
                    operation_type=WriteOperationType.INSERT,
                    extra_metadata={SCHEMA_KEY: avro},
                )
            )
        return time


def _clustering(storage: Storage, pieces: Sequence[FileSlice]) -> HoodieClusteringPlan:
    slices = [
        HoodieSliceInfo(file_id=piece.file_id, data_file_path=storage.uri(piece.base_file.path), partition_path=piece.partition_path)
        for piece in pieces
        if piece.base_file is not None
    ]
    return HoodieClusteringPlan(input_groups=tuple(HoodieClusteringGroup(slices=(piece,)) for piece in slices))


def _clustered(state: Any, pieces: Sequence[FileSlice], stats: Sequence[HoodieWriteStat]) -> HoodieCommitMetadata:
    partitions = sorted({piece.partition_path for piece in pieces})
    return HoodieCommitMetadata(
        partition_to_write_stats={path: tuple(stat for stat in stats if stat.partition_path == path) for path in partitions},
        operation_type=WriteOperationType.CLUSTER,
        extra_metadata={SCHEMA_KEY: table_avro_schema(state.config.name, SCHEMA)},
        partition_to_replace_file_ids={
            path: tuple(piece.file_id for piece in pieces if piece.partition_path == path) for path in partitions
        },
    )


# scenarios


def plain(cell: Cell) -> None:
    cell.begin()
    cell.savepoint()
    cell.upsert(3)
    cell.delete([1, 6])
    cell.upsert(4, [6, 7, 21])


def inflight_after(cell: Cell) -> None:
    cell.begin()
    cell.savepoint()
    cell.upsert(3)
    cell.dies(r"\.(delta)?commit$", lambda table: table.upsert(rows([4, 5, 30], 5)))


def completed_rollback_after(cell: Cell) -> None:
    cell.begin()
    cell.savepoint()
    cell.upsert(3)
    cell.upsert(4)
    cell.table.rollback()


def pending_rollback_after(cell: Cell) -> None:
    cell.begin()
    cell.savepoint()
    cell.upsert(3)
    cell.upsert(4)
    cell.dies(r"\.rollback\.inflight", lambda table: table.rollback())


def clean_after(cell: Cell) -> None:
    cell.begin()
    cell.savepoint()
    for seed in range(3, 7):
        cell.upsert(seed)
        if cell.merge_on_read:
            cell.table.compact()
    cell.table.clean(1)
    cell.exact = False


def pending_clean(cell: Cell) -> None:
    """Its plan names the files of the savepoint's time as superfluous; it must not outlive the restore."""
    cell.begin()
    saved_later = cell.upsert(3)
    for seed in range(4, 7):
        cell.upsert(seed)
        if cell.merge_on_read:
            cell.table.compact()
    cell.dies(r"\.clean\.inflight", lambda table: table.clean(2))
    cell.savepoint(saved_later)


def clustering_completed_after(cell: Cell) -> None:
    cell.table.insert(rows(range(10), 1))
    cell.savepoint()
    cell.cluster()
    cell.upsert(3)


def clustering_pending_after(cell: Cell) -> None:
    cell.table.insert(rows(range(10), 1))
    cell.savepoint()
    cell.cluster(complete=False)


def clustering_completed_before(cell: Cell) -> None:
    cell.table.insert(rows(range(10), 1))
    cell.cluster()
    cell.upsert(2, [1, 2, 30])
    cell.savepoint()
    cell.upsert(3)
    cell.delete([4])


def clustering_around(cell: Cell) -> None:
    """Scheduled before the savepoint, run after it; a write took a file out of the plan, and what it replaced is cleaned."""
    cell.begin()
    cell.table.insert(rows(range(30, 34), 2))
    cell.table.schedule_clustering("v")
    cell.upsert(3)
    cell.savepoint()
    cell.table.run_clustering()
    cell.upsert(4)
    cell.table.cluster("ts")
    cell.upsert(5)
    cell.table.clean(1)
    cell.exact = False


def clustering_taken_over_after(cell: Cell) -> None:
    """Its executor is killed before it commits, another one runs the plan."""
    cell.begin()
    cell.savepoint()
    cell.dies(r"\.(replace)?commit$", lambda table: table.cluster("v"))
    cell.upsert(3, [2, 3])
    cell.table.run_clustering()
    cell.table.cluster("ts")
    cell.upsert(4)


def clusterings_rolled_back_after(cell: Cell) -> None:
    """One that was completed, and the plan of another one whose executor was killed."""
    cell.begin()
    cell.savepoint()
    cell.table.cluster("v")
    cell.table.rollback()
    cell.dies(r"\.(replace)?commit$", lambda table: table.cluster("v"))
    state = cell.table.state
    cell.table.rollback(next(one.requested_time for one in state.timeline.pending() if one.action is state.format.clustering_action))
    cell.upsert(3)


def compaction_completed_after(cell: Cell) -> None:
    cell.begin()
    cell.savepoint()
    cell.upsert(3)
    cell.table.compact()
    cell.upsert(4)


def compaction_pending_after(cell: Cell) -> None:
    cell.begin()
    cell.savepoint()
    cell.table.schedule_compaction()
    cell.upsert(3)
    cell.delete([2])


def compaction_around(cell: Cell) -> None:
    """Requested before the savepoint, completed after it, and everything it replaced cleaned where nothing pins it."""
    cell.begin()
    cell.table.schedule_compaction()
    cell.upsert(3)
    cell.savepoint()
    cell.upsert(4)
    cell.table.run_compaction()
    cell.upsert(5)
    cell.table.compact()
    cell.upsert(6)
    cell.table.clean(1)
    # The compaction's own base file is newer than the savepoint's files and stays: it was planned before.
    cell.exact = False


def deltacommit_over_compaction(cell: Cell) -> None:
    """Delta commits log to the slice of a compaction that is pending, some before the savepoint and some after it."""
    cell.begin()
    cell.table.schedule_compaction()
    cell.upsert(3)
    cell.savepoint()
    cell.upsert(4)
    cell.delete([5])


def savepoint_on_compaction(cell: Cell) -> None:
    cell.begin()
    cell.table.compact()
    cell.savepoint()
    cell.upsert(3)
    cell.table.compact()
    cell.upsert(4)


def first_commit(cell: Cell) -> None:
    cell.table.insert(rows(range(10), 1))
    cell.savepoint()
    cell.upsert(3)
    cell.delete([0, 1])


def older_than_the_archive(cell: Cell) -> None:
    """Commits on both sides of the savepoint are archived, and some rows are still in the files of the very first one."""
    cell.table.bulk_insert(rows([1000, 1001], 1))
    cell.begin()
    cell.savepoint()
    for seed in range(3, 12):
        cell.upsert(seed, [2, 3, 20 + seed])
        if cell.merge_on_read and seed % 3 == 0:
            cell.table.compact()
    cell.table.clean(1)
    archived = cell.archive()
    assert len(archived.archived) > 3, archived
    cell.exact = False


def two_savepoints(cell: Cell) -> None:
    cell.begin()
    cell.savepoint()
    cell.upsert(3)
    cell.table.savepoint(None, "later")
    cell.upsert(4)
    cell.notes["cascade"] = True


def deleted_then_cleaned_and_archived(cell: Cell) -> None:
    """An overwrite between two savepoints, the first of which is deleted: what it pinned is cleaned, and must not come back."""
    cell.begin()
    cell.table.savepoint(None, "first")
    cell.table.insert_overwrite(rows([40, 41], 3))
    cell.upsert(4, [40, 42])
    cell.savepoint()
    for seed in range(5, 10):
        cell.upsert(seed, [41, 43 + seed])
    cell.table.delete_savepoint("first")
    cell.table.clean(1)
    cell.archive()
    cell.exact = False


def crashed_restore(cell: Cell) -> None:
    """The test itself crashes the restore at every call."""
    plain(cell)
    cell.notes["crash"] = True


def restored_twice(cell: Cell) -> None:
    plain(cell)
    cell.table.restore("kept")
    cell.upsert(5, [1, 50])
    cell.delete([2])


def schema_changed(cell: Cell) -> None:
    cell.begin()
    cell.savepoint()
    wide = LocalTable(cell.storage, {"hoodie.datasource.write.reconcile.schema": "true"})
    wide.upsert(rows([2, 60], 3, schema=WIDER))
    assert "more" in cell.read().column_names


def new_partition(cell: Cell) -> None:
    cell.begin()
    cell.savepoint()
    cell.table.upsert(rows([70, 71], 3, "new"))
    cell.upsert(4)


def overwritten(cell: Cell) -> None:
    cell.begin()
    cell.savepoint()
    cell.table.insert_overwrite(rows([80, 82], 3))
    cell.upsert(4, [80, 81])
    cell.table.insert_overwrite_table(rows([90], 5))


def partition_deleted(cell: Cell) -> None:
    cell.begin()
    cell.savepoint()
    cell.table.delete_partitions(["part=x"] if cell.partitioned else [""])
    cell.upsert(4, [80, 81])


def log_only_group(cell: Cell) -> None:
    cell.begin()
    cell.log_new_group([100, 102], 2)
    cell.savepoint()
    cell.log_new_group([104, 106], 3)
    cell.upsert(4)
    cell.hudi_rs = False  # hudi-rs does not read groups without a base file


def reader_open(cell: Cell) -> None:
    """The test opens a reader before the restore and reads it after."""
    plain(cell)
    cell.notes["reader"] = True


BOTH = (
    plain,
    inflight_after,
    completed_rollback_after,
    pending_rollback_after,
    clean_after,
    pending_clean,
    clustering_completed_after,
    clustering_pending_after,
    clustering_completed_before,
    clustering_around,
    clustering_taken_over_after,
    clusterings_rolled_back_after,
    first_commit,
    older_than_the_archive,
    two_savepoints,
    deleted_then_cleaned_and_archived,
    crashed_restore,
    restored_twice,
    schema_changed,
    new_partition,
    overwritten,
    partition_deleted,
    reader_open,
)
MERGE_ON_READ_ONLY = (
    compaction_completed_after,
    compaction_pending_after,
    compaction_around,
    deltacommit_over_compaction,
    savepoint_on_compaction,
    log_only_group,
)


def cells_with_metadata() -> Iterator[tuple[Callable[[Cell], None], bool, bool, int]]:
    """Cells of tables with a metadata table, and their version: every scenario once, or with LAKEHOUSE_DEPTH=full in both versions as often
    as `cells_of_9`.
    """
    once = {scenario.__name__: (scenario, merge_on_read, partitioned) for scenario, merge_on_read, partitioned in cells_of_9()}
    for number, cell in enumerate(cells_of_9() if IS_FULL else once.values()):
        yield from ((*cell, version) for version in (VERSIONS if IS_FULL else (VERSIONS[number % len(VERSIONS)],)))


def cells() -> Iterator[tuple[Callable[[Cell], None], bool, bool]]:
    """Scenario, whether the table merges on read, whether it is partitioned."""
    for scenario in (*BOTH, *MERGE_ON_READ_ONLY):
        for merge_on_read in (False, True):
            if merge_on_read or scenario in BOTH:
                for partitioned in (False, True):
                    yield scenario, merge_on_read, partitioned


def cells_of_9() -> Iterator[tuple[Callable[[Cell], None], bool, bool]]:
    """Every scenario on a partitioned table that merges on read, and on one without partitions that copies on write."""
    for scenario, merge_on_read, partitioned in cells():
        if merge_on_read == partitioned:
            yield scenario, merge_on_read, partitioned
