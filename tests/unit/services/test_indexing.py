"""Index builds beside writers: planned and run apart, right whatever happens meanwhile, taken back or taken up after a crash."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.commit.concurrency.executors import executor_lock, lock_file
from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.commit.table_clock import table_clock
from lakehouse_engine.errors import CommitConflictError, IndexingError, LakehouseError, LockTimeoutError, OptionError, RecordKeyError
from lakehouse_engine.format.metadata_table.keys import split_secondary_keys
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.metadata_table.building import beside
from lakehouse_engine.metadata_table.building.plans import NO_INSTANT, build_of, made_at, plan_of
from lakehouse_engine.metadata_table.table import METADATA_TABLE, MetadataTable
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieIndexCommitMetadata, HoodieIndexPlan
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.services.metadata import building, indexing
from lakehouse_engine.services.metadata import indexes as service
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.locations import storage_below
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.verify.metadata_table import check_metadata_table
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.string())])
KINDS = [(version, kind) for version in (6, 8, 9) for kind in ("cow", "mor")]
BUILDING = "hoodie.table.metadata.partitions.inflight"


def rows(ids: Iterable[int], turn: int = 0) -> pa.Table:
    numbers = list(ids)
    values = [f"v{(number + turn) % 5}" for number in numbers]
    return pa.table({"id": numbers, "p": [f"p{number % 3}" for number in numbers], "v": values}, schema=SCHEMA)


def made(folder: Path, version: int = 9, kind: str = "cow") -> HoodieTable:
    spec = TableSpec("t", SCHEMA, ["id"], partition_by=["p"], table_type=kind, version=TableVersion(version))
    create_table(LocalStorage(str(folder)), spec)
    table = HoodieTable.open(str(folder), options={"hoodie.write.lock.wait_time_ms": 20_000})
    table.insert(rows(range(40)))
    table.upsert(rows(range(20, 50), 1))
    return table


def state_of(table: HoodieTable) -> TableState:
    return TableState.load(table.storage)


def check(table: HoodieTable, *partitions: str) -> None:
    """The metadata table has the partitions, says what the table has, and nothing is left of the build."""
    state = state_of(table)
    report = check_metadata_table(state)
    assert report.ok, report.findings
    assert set(partitions) <= set(report.partitions)
    assert not state.config.metadata_partitions_being_built
    assert not [one for one in state.timeline.pending() if one.action is Action.INDEXING]
    metadata = TableState.load(storage_below(table.storage, METADATA_TABLE))
    assert not list(metadata.timeline.pending())
    assert not [entry for entry in table.storage.list(".hoodie/.temp") if entry.name.startswith("lakehouse.metadata")]
    if "secondary_index_by_v" in partitions:
        stored = table.to_arrow()
        pairs = set(zip(stored["v"].to_pylist(), stored["id"].cast(pa.string()).to_pylist(), strict=True))
        assert pairs_of(state) == pairs


def pairs_of(state: TableState) -> set[tuple[str, str]]:
    opened, found = MetadataTable.open(state), set()
    for piece in opened.groups("secondary_index_by_v"):
        values, keys = split_secondary_keys(opened.newest(piece, "secondary_index_by_v").keys)
        found |= set(zip(values.to_pylist(), keys.to_pylist(), strict=True))
    return found


def during(monkeypatch: pytest.MonkeyPatch, before: Callable[[], Any], after: Callable[[], Any] = lambda: None) -> None:
    """Have something happen before and after base files of a build are written, when the lock is free."""
    real = beside.write

    def write(build: beside.Build) -> HoodieCommitMetadata:
        before()
        metadata = real(build)
        after()
        return metadata

    monkeypatch.setattr(beside, "write", write)


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_what_is_written_while_an_index_is_built_is_in_it(
    version: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path, version, kind)

    def before() -> None:
        table.upsert(rows(range(40, 60), 2))
        table.delete(rows(range(5)))

    def after() -> None:
        table.upsert(rows(range(3), 4))
        table.insert_overwrite(rows([7, 10, 100], 3))
        if kind == "mor":
            table.compact()
        table.cluster()
        table.clean(retain_commits=1)

    during(monkeypatch, before, after)
    names = ["record_index", "column_stats", "bloom_filters"]
    define = []
    if version != 6:
        define = service._definitions(state_of(table), "secondary_index_by_v", ["v"])
        names += ["partition_stats", "secondary_index_by_v"]
    planned = indexing.schedule(table.storage, names, define, lock_timeout_ms=20_000)
    assert planned is not None
    indexing.run(table.storage, planned[0].requested_time, lock_timeout_ms=20_000)
    check(table, *names)
    table.upsert(rows(range(200), 5))
    check(table, *names)
    monkeypatch.undo()
    building.rebuild(table.storage, ["record_index"], lock_timeout_ms=20_000)  # instants of both kinds of builds go together
    check(table, *names)


@pytest.mark.parametrize("version", [6, 9])
def test_writers_in_threads_go_on_while_an_index_is_built(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, version)
    written, errors = threading.Semaphore(0), list[BaseException]()
    end = threading.Event()

    def writes(first: int) -> None:
        try:
            turn, table = 0, HoodieTable.open(str(tmp_path), options={"hoodie.write.lock.wait_time_ms": 60_000})
            while not end.is_set():
                table.upsert(rows([first + turn, first + turn + 1, turn % 40], turn))
                turn += 1
                written.release()
        except LakehouseError as error:
            errors.append(error)

    def wait() -> None:
        for _ in range(4):
            assert written.acquire(timeout=120)

    during(monkeypatch, wait, wait)
    threads = [threading.Thread(target=writes, args=(1000 * number,)) for number in (1, 2)]
    table = HoodieTable.open(str(tmp_path), options={"hoodie.write.lock.wait_time_ms": 60_000})
    building.build(table.storage, ["files"], lock_timeout_ms=20_000)
    for thread in threads:
        thread.start()
    try:
        table.create_index("record_index")
        table.create_index("column_stats")
        if version == 9:
            table.create_index("by_v", columns=["v"])
    finally:
        end.set()
        for thread in threads:
            thread.join()
    assert not errors
    check(table, "record_index", "column_stats", *(["secondary_index_by_v"] if version == 9 else []))


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_build_is_planned_and_run_apart(version: int, tmp_path: Path) -> None:
    table = made(tmp_path, version)
    newest = state_of(table).timeline.completed().writes().last()
    assert newest is not None
    done = table.create_index("record_index", op="schedule")
    assert (done.planned, done.built) == (("record_index",), ())
    assert [(one.name, one.columns, one.planned) for one in table.indexes()] == [("record_index", ("id",), done.instant)]
    state = state_of(table)
    planned = build_of(state, "record_index")
    assert planned == Instant(done.instant or "", Action.INDEXING, State.REQUESTED)
    (info,) = state.active.plan(HoodieIndexPlan, planned).index_partition_infos or ()
    assert (info.metadata_partition_path, info.index_upto_instant) == ("record_index", newest.requested_time)
    assert not state.config.metadata_partitions
    assert not state.config.metadata_partitions_being_built
    assert table.create_index("record_index", op="schedule").instant == done.instant
    table.upsert(rows(range(60)))
    table.clean(retain_commits=1)
    run = table.create_index("record_index", op="run")
    assert (run.instant, run.built) == (done.instant, ("files", "record_index"))
    check(table, "record_index")
    completed = state_of(table).timeline.find(done.instant or "")
    assert completed is not None
    assert completed.is_completed
    (info,) = state_of(table).active.plan(HoodieIndexCommitMetadata, completed).index_partition_infos or ()
    assert info.metadata_partition_path == "record_index"
    assert (info.index_upto_instant or "") > newest.requested_time
    assert table.create_index("record_index", if_not_exists=True).built == ()


def test_what_cannot_be_done_is_refused_before_anything_changes(tmp_path: Path) -> None:
    table = made(tmp_path)
    with pytest.raises(OptionError, match="'build' is nothing that can be done about an index; there are schedule, run"):
        table.create_index("record_index", op="build")
    with pytest.raises(OptionError, match="t has no plan to build the index record_index; schedule it first"):
        table.create_index("record_index", op="run")
    planned = table.create_index("column_stats", columns=["v"], op="schedule")
    assert table.create_index("column_stats", columns=["v"], op="run", dry_run=True).built == ("column_stats", "files")
    assert table.create_index("record_index", op="schedule", dry_run=True).planned == ("files", "record_index")
    with pytest.raises(CommitConflictError, match=rf"column_stats of t is being built by {planned.instant}"):
        indexing.schedule(table.storage, ["column_stats", "bloom_filters"], [], lock_timeout_ms=500)
    with executor_lock(table.storage, planned.instant or "", 0):
        errors: list[BaseException] = []

        def run() -> None:
            try:
                indexing.run(table.storage, planned.instant or "", lock_timeout_ms=100)
            except LockTimeoutError as error:
                errors.append(error)

        other = threading.Thread(target=run)
        other.start()
        other.join()
        assert errors
    assert not state_of(table).config.metadata_partitions


def test_what_is_planned_is_not_built_otherwise_nor_made_useless(tmp_path: Path) -> None:
    table = made(tmp_path)
    planned = table.create_index("by_v", columns=["v"], op="schedule")
    with pytest.raises(OptionError, match=rf"a plan to build the index by_v otherwise, {planned.instant}"):
        table.create_index("by_v", columns=["id"])
    with pytest.raises(CommitConflictError, match=rf"secondary_index_by_v of t is to be built by {planned.instant}"):
        table.rebuild_metadata(["secondary_index_by_v"])
    table.drop_index("by_v")
    table.create_index("record_index")
    planned = table.create_index("by_v", columns=["v"], op="schedule")
    with pytest.raises(OptionError, match="the secondary index by_v needs the record index"):
        table.drop_index("record_index")
    assert table.create_index("by_v", columns=["v"], op="run").built == ("secondary_index_by_v",)


def test_a_plan_is_dropped_with_its_definition(tmp_path: Path) -> None:
    table = made(tmp_path)
    planned = table.create_index("by_v", columns=["v"], op="schedule")
    assert set(planned.planned) == {"record_index", "secondary_index_by_v"}
    assert table.drop_index("by_v").instant == planned.instant
    assert not [one for one in state_of(table).timeline if one.action is Action.INDEXING]
    assert table.create_index("by_v", columns=["id"]).built == ("files", "record_index", "secondary_index_by_v")


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    spec = TableSpec("t", SCHEMA, ["id"], version=TableVersion.NINE)
    create_table(LocalStorage(str(tmp_path)), spec)
    table = HoodieTable.open(str(tmp_path))
    table.insert(rows([1, 2]))
    table.insert(rows([1]), options={"hoodie.combine.before.insert": "false"})
    building.build(table.storage, ["files"], lock_timeout_ms=500)
    with pytest.raises(RecordKeyError, match="more than once"):
        table.create_index("by_v", columns=["v"])
    check(table, "files")
    assert state_of(table).config.metadata_partitions == ("files",)
    assert not [one for one in state_of(table).timeline if one.action is Action.INDEXING]
    assert not table.storage.list(f"{METADATA_TABLE}/record_index")
    index = Path(table.storage.root) / ".hoodie/.index_defs/index.json"
    assert not index.exists() or "by_v" not in index.read_text()


@pytest.mark.parametrize("version", [6, 9])
def test_a_rollback_ends_a_build_that_may_have_read_the_rows(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path, version)
    building.build(table.storage, ["files"], lock_timeout_ms=500)
    table.upsert(rows(range(70, 80)))
    during(monkeypatch, lambda: None, lambda: table.rollback())
    with pytest.raises(IndexingError, match=r"cannot be completed: it was taken back meanwhile.*Run it again"):
        table.create_index("record_index")
    assert not [one for one in state_of(table).timeline if one.action is Action.INDEXING]
    monkeypatch.undo()
    assert table.create_index("record_index").built == ("record_index",)
    check(table, "record_index")


@pytest.mark.parametrize("version", [6, 9])
def test_a_rollback_after_a_build_takes_the_rows_out_of_the_index(version: int, tmp_path: Path) -> None:
    table = made(tmp_path, version)
    building.build(table.storage, ["files"], lock_timeout_ms=500)
    table.upsert(rows(range(70, 80)))
    table.create_index("record_index")
    table.rollback()
    assert not state_of(table).config.metadata_partitions  # it has the rows in base files, and is dropped whole
    table.create_index("record_index")
    check(table, "record_index")


def test_a_dropped_metadata_table_ends_a_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path)
    during(monkeypatch, lambda: None, lambda: building.drop(table.storage, lock_timeout_ms=500))
    with pytest.raises(IndexingError, match="was dropped meanwhile"):
        table.create_index("record_index")
    monkeypatch.undo()
    table.upsert(rows(range(3)))
    assert table.create_index("record_index").built == ("files", "record_index")
    check(table, "record_index")


def begun(table: HoodieTable, *, ours: bool) -> Instant:
    """A build that has begun, and whose process is gone: one of this engine, or of a program without its locks."""
    building.build(table.storage, ["files"], lock_timeout_ms=500)
    table.create_index("record_index", op="schedule")
    planned = build_of(state_of(table), "record_index")
    assert planned is not None
    with executor_lock(table.storage, planned.requested_time, 0), locked_table(table.storage, lock_timeout_ms=500) as state:
        beside.begin(state, planned, {"record_index": 2})
    if not ours:
        table.storage.delete(lock_file(planned.requested_time))
        table.storage.overwrite(state.active.path(planned.at(State.INFLIGHT)), b"")
    return planned


@pytest.mark.parametrize("version", [6, 9])
def test_a_write_takes_back_a_build_whose_process_died(version: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = made(tmp_path, version)
    planned = begun(table, ours=True)
    table.upsert(rows(range(60, 70)))
    assert "is settled: the process that ran it died" in caplog.text
    state = state_of(table)
    assert build_of(state, "record_index") == planned
    assert not state.config.metadata_partitions_being_built
    assert not table.storage.list(f"{METADATA_TABLE}/record_index")
    assert table.create_index("record_index").instant == planned.requested_time
    check(table, "record_index")


@pytest.mark.parametrize("version", [6, 9])
def test_a_build_whose_process_died_is_taken_up(version: int, tmp_path: Path) -> None:
    table = made(tmp_path, version)
    planned = begun(table, ours=True)
    assert table.create_index("record_index").instant == planned.requested_time
    check(table, "record_index")


@pytest.mark.parametrize("version", [6, 9])
def test_a_build_of_another_program_is_kept_up_and_left_to_it(version: int, tmp_path: Path) -> None:
    table = made(tmp_path, version)
    planned = begun(table, ours=False)
    table.upsert(rows(range(60, 70)))
    table.upsert(rows(range(70, 80)))
    table.clean(retain_commits=1)
    state = state_of(table)
    running = build_of(state, "record_index")
    assert running == planned.at(State.INFLIGHT)
    assert state.config.metadata_partitions_being_built == ("record_index",)
    logged = MetadataTable.open(state).groups("record_index")
    assert sum(len(piece.log_files) for piece in logged) > len(logged)
    for act in (lambda: table.create_index("record_index"), lambda: table.drop_index("record_index")):
        with pytest.raises(IndexingError, match=r"another program began .*let it finish, or drop the index with that program"):
            act()
    assert made_at(state, running) is None
    assert build_of(state_of(table), "record_index") == running


def test_a_plan_of_another_program_is_left_alone_and_can_be_run(tmp_path: Path) -> None:
    """As Hudi's indexer leaves it: a plan and nothing else."""
    table = made(tmp_path)
    state = state_of(table)
    time, content = table_clock(state).next(state.timeline), encode_plan(plan_of(["bloom_filters"], NO_INSTANT))
    planned = state.active.create_requested(Instant(time, Action.INDEXING, State.REQUESTED), content)
    table.upsert(rows(range(60, 70)))
    table.clean(retain_commits=1)
    assert build_of(state_of(table), "bloom_filters") == planned
    assert table.create_index("bloom_filters", op="run").built == ("bloom_filters", "files")
    check(table, "bloom_filters")


def test_what_is_named_as_being_built_without_a_plan_is_dropped(tmp_path: Path) -> None:
    table = made(tmp_path)
    building.build(table.storage, ["files"], lock_timeout_ms=500)
    ConfigStore(table.storage).update({BUILDING: "record_index"})
    table.upsert(rows(range(60, 70)))
    check(table, "files")


def test_a_clean_keeps_what_a_running_build_reads(tmp_path: Path) -> None:
    table = made(tmp_path)
    planned = begun(table, ours=False)
    for turn in range(3):
        table.upsert(rows(range(40), turn))
    found = table.clean(retain_commits=1, dry_run=True)
    assert (found.files_deleted, found.kept) == ((), (f"what the pending indexing {planned.requested_time} may read is kept",))
    beside.take_back(state_of(table), planned.at(State.INFLIGHT))
    assert table.clean(retain_commits=1, dry_run=True).files_deleted
