from __future__ import annotations

import os
import time as clock
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lakehouse_engine.commit.concurrency.executors import lock_file
from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import CommitOutcomeUnknownError, CompactionError, LockTimeoutError, StorageError
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from lakehouse_engine.options import CompactionOptions, WriteOptions
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.scan import plan_incremental
from lakehouse_engine.services.compact import schedule_and_run
from lakehouse_engine.services.compact.merging import CompactTask, compact_slice
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.clock import InstantClock
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.verify import verify
from tests.unit.read.hand_made import PARTITION
from tests.unit.read.hand_made_logs import HandMadeLogTable, data_block, delete_block
from tests.unit.services.compact.tables import (
    ROWS,
    T1,
    T2,
    T3,
    TIMEOUT_MS,
    files,
    rows,
    run_now,
    schedule_now,
    storage_of,
    table_with_logs,
)

RUN = "lakehouse_engine.services.compact.compaction.compact_slice"


def scheduled(table: HandMadeLogTable) -> str:
    time = schedule_now(table).instant
    assert time is not None
    return time


def base_files(table: HandMadeLogTable, time: str) -> list[Path]:
    return sorted(table.folder.glob(f"{PARTITION}/*_{time}.parquet"))


def append_now(table: HandMadeLogTable, base: str, version: int, content: Callable[[str], bytes]) -> str:
    """A delta commit of this moment that logs to the slice `base` of group a."""
    time = InstantClock().next(table.state().timeline)
    table.append(time, base, version, content(time))
    return time


def test_logs_become_part_of_a_new_base_file_whose_rows_keep_their_meta_columns(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)
    result = run_now(table)
    assert (result.instant, result.state, result.operation) == (time, "completed", "COMPACT")
    assert (result.files_created, result.rows_written, result.log_files_compacted) == (1, 2, 2)
    assert rows(table) == ROWS
    assert rows(table, read_optimized=True) == ROWS
    (made,) = base_files(table, time)
    assert made.stat().st_size == result.bytes_written
    found = pq.read_table(made)
    assert found.column("_hoodie_record_key").to_pylist() == ["k2", "k3"]
    assert found.column("_hoodie_commit_seqno").to_pylist() == [f"{T2}_0_0", f"{T2}_0_1"]
    assert set(found.column("_hoodie_file_name").to_pylist()) == {made.name}
    assert verify(table.state()).ok
    assert not table.state().storage.walk(f".hoodie/.temp/{time}")
    assert table.state().storage.head(lock_file(time)) is None


def test_the_commit_says_what_was_compacted(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)
    run_now(table)
    state = table.state()
    completed = state.timeline.find(time)
    assert completed == Instant(time, Action.COMMIT, State.COMPLETED)
    metadata = state.commit_metadata(completed)
    assert (metadata.operation_type, metadata.compacted) == (WriteOperationType.COMPACT, True)
    (stat,) = metadata.partition_to_write_stats[PARTITION]
    assert (stat.prev_commit, stat.num_writes, stat.num_update_writes, stat.num_deletes, stat.num_inserts) == (T1, 2, 1, 1, 1)
    assert (stat.total_log_records, stat.total_log_files_compacted, stat.total_log_blocks) == (2, 2, 2)
    assert (stat.total_updated_records_compacted, stat.total_corrupt_log_block, stat.total_rollback_blocks) == (3, 0, 0)
    logs = sum(path.stat().st_size for path in table.folder.glob(f"{PARTITION}/.a-0_*"))
    assert stat.total_log_size_compacted == logs


def test_earlier_instants_read_as_before_and_a_compaction_changes_no_rows(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    before = {time: rows(table, time) for time in (T1, T2, T3)}
    time = scheduled(table)
    run_now(table)
    assert {earlier: rows(table, earlier) for earlier in (T1, T2, T3)} == before
    assert rows(table, time) == ROWS
    state = table.state()
    assert read_arrow(plan_incremental(state, T3, time)).num_rows == 0
    assert sorted(read_arrow(plan_incremental(state, T1)).column("id").to_pylist()) == ["k2", "k3"]


def test_what_is_logged_while_a_compaction_is_pending_stays_on_top_of_it(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)
    later = append_now(table, time, 1, lambda now: data_block(now, {"k3": 33, "k4": 4}))
    expected = {**ROWS, "k3": (later, 33), "k4": (later, 4)}
    assert rows(table) == expected
    run_now(table)
    assert rows(table) == expected
    assert rows(table, read_optimized=True) == ROWS
    assert rows(table, time) == ROWS
    again = scheduled(table)
    last = append_now(table, again, 1, lambda now: delete_block(now, ["k2"]))
    run_now(table)
    assert rows(table) == {key: row for key, row in expected.items() if key != "k2"}
    assert rows(table, later) == expected
    assert last > again


def test_a_slice_whose_rows_are_all_gone_becomes_an_empty_file(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    append_now(table, T1, 3, lambda now: delete_block(now, ["k2", "k3"]))
    time = scheduled(table)
    assert run_now(table).rows_written == 0
    assert rows(table) == {"k8": (T1, 8)}
    (made,) = base_files(table, time)
    assert pq.read_table(made).num_rows == 0
    back = append_now(table, time, 1, lambda now: data_block(now, {"k1": 100}))
    assert rows(table) == {"k8": (T1, 8), "k1": (back, 100)}
    scheduled(table)
    run_now(table)
    assert rows(table) == {"k8": (T1, 8), "k1": (back, 100)}


def test_a_slice_of_logs_only_gets_its_first_base_file(tmp_path: Path) -> None:
    table = HandMadeLogTable(tmp_path)
    table.append(T1, T1, 1, data_block(T1, {"k1": 1, "k2": 2}))
    table.append(T2, T1, 2, data_block(T2, {"k2": 20}))
    time = scheduled(table)
    run_now(table)
    assert rows(table, read_optimized=True) == {"k1": (T1, 1), "k2": (T2, 20)}
    assert rows(table, T1) == {"k1": (T1, 1), "k2": (T1, 2)}
    completed = table.state().timeline.find(time)
    assert completed is not None
    (stat,) = table.state().commit_metadata(completed).write_stats()
    assert (stat.prev_commit, stat.num_inserts) == ("null", 2)


def test_without_a_pending_compaction_there_is_nothing_to_run(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    before = files(table)
    result = run_now(table)
    assert (result.instant, result.state) == (None, "none")
    assert files(table) == before


def test_an_instant_that_is_no_pending_compaction_is_refused_by_name(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)
    with pytest.raises(CompactionError, match=rf"{T2} is no pending compaction of this table; pending: {time}"):
        run_now(table, instant=T2)
    run_now(table, instant=time)
    with pytest.raises(CompactionError, match="pending: none"):
        run_now(table, instant=time)


def test_the_oldest_runs_first_unless_one_is_named(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    first = scheduled(table)
    time = InstantClock().next(table.state().timeline)
    table.append(time, T1, 1, data_block(time, {"k8": 80}), group="b")
    second = scheduled(table)
    assert run_now(table, instant=second).instant == second
    assert run_now(table).instant == first
    assert rows(table) == {**ROWS, "k8": (time, 80)}


def test_a_dry_run_shows_the_pending_plan(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    planned = schedule_now(table)
    before = files(table)
    both = schedule_and_run(
        storage_of(table), CompactionOptions(), WriteOptions(), LocalRunner(1), lock_timeout_ms=TIMEOUT_MS, dry_run=True
    )
    for result in (run_now(table, dry_run=True), both):
        assert (result.instant, result.operations, result.state, result.dry_run) == (planned.instant, planned.operations, "planned", True)
    assert files(table) == before


def test_schedule_and_run_ends_with_what_was_pending(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)
    arguments = (storage_of(table), CompactionOptions(), WriteOptions(), LocalRunner())
    assert schedule_and_run(*arguments, lock_timeout_ms=TIMEOUT_MS).instant == time
    assert schedule_and_run(*arguments, lock_timeout_ms=TIMEOUT_MS).instant is None
    assert rows(table, read_optimized=True) == ROWS


class Broken(RuntimeError):
    """What a test makes go wrong."""


def test_a_failed_run_takes_the_table_back_to_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_with_logs(tmp_path)
    scheduled(table)
    before = files(table)

    def fail(task: CompactTask) -> HoodieWriteStat:
        compact_slice(task)
        raise Broken

    monkeypatch.setattr(RUN, fail)
    with pytest.raises(Broken):
        run_now(table)
    assert files(table) == before
    monkeypatch.undo()
    run_now(table)
    assert rows(table, read_optimized=True) == ROWS


def test_what_a_dead_executor_left_is_removed_and_the_compaction_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)
    died = "lakehouse_engine.services.executor.execution._Execution._give_back"

    def die(task: CompactTask) -> HoodieWriteStat:
        compact_slice(task)
        raise Broken

    monkeypatch.setattr(RUN, die)
    monkeypatch.setattr(died, lambda execution, job: None)
    with pytest.raises(Broken):
        run_now(table)
    monkeypatch.undo()
    (left,) = base_files(table, time)
    (pending,) = table.state().timeline.pending()
    assert pending.state is State.INFLIGHT
    assert rows(table) == ROWS
    assert run_now(table).instant == time
    assert not left.exists()
    assert len(base_files(table, time)) == 1
    assert rows(table, read_optimized=True) == ROWS
    assert verify(table.state()).ok


def test_writers_leave_a_running_compaction_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)

    def meanwhile(task: CompactTask) -> HoodieWriteStat:
        stat = compact_slice(task)
        # A writer takes the lock, which brings the table to order, and logs to the slice to be.
        with locked_table(storage_of(table), lock_timeout_ms=TIMEOUT_MS) as state:
            assert [instant.requested_time for instant in state.timeline.pending()] == [time]
            append_now(table, time, 1, lambda now: data_block(now, {"k4": 4}))
        return stat

    monkeypatch.setattr(RUN, meanwhile)
    run_now(table)
    assert set(rows(table)) == {*ROWS, "k4"}
    assert rows(table, read_optimized=True) == ROWS


def test_a_second_executor_waits_or_gives_up(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)
    refused: list[BaseException] = []
    LocalStorage(str(tmp_path)).create(lock_file(time), b"")
    with TableLock(storage_of(table), TIMEOUT_MS, file=lock_file(time)):
        runner = LocalRunner(2)

        def try_run(_: int) -> None:
            try:
                run_now(table, wait=False)
            except LockTimeoutError as error:
                refused.append(error)

        runner.run(try_run, [0, 1], name="executors")
    assert len(refused) == 2
    assert run_now(table).instant == time


def foreign(table: HandMadeLogTable, time: str, age_seconds: float) -> None:
    """The compaction as one that a program without our lock began."""
    inflight = table.folder / ".hoodie" / f"{time}.compaction.inflight"
    inflight.write_bytes(b"")
    moment = inflight.stat().st_mtime - age_seconds
    os.utime(inflight, (moment, moment))


def test_a_compaction_that_another_program_began_is_left_alone_until_it_is_old(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)
    foreign(table, time, age_seconds=100)
    before = files(table)
    with pytest.raises(CompactionError, match=r"another program began this compaction .*compaction\.timeout\.seconds=1200"):
        run_now(table)
    assert files(table) == before
    foreign(table, time, age_seconds=1300)
    assert run_now(table).instant == time
    assert rows(table, read_optimized=True) == ROWS


def test_how_old_it_is_the_storage_tells_and_not_this_machines_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that is ahead would take over what is running, and delete the files that it is about to complete."""
    table = table_with_logs(tmp_path)
    time = scheduled(table)
    foreign(table, time, age_seconds=100)
    real = clock.time
    monkeypatch.setattr(clock, "time", lambda: real() + 3600)
    with pytest.raises(CompactionError, match="another program began this compaction"):
        run_now(table)
    assert (tmp_path / ".hoodie" / f"{time}.compaction.inflight").exists()


def test_a_plan_that_is_gone_when_it_was_run_is_not_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_with_logs(tmp_path)
    before = files(table)
    time = scheduled(table)

    def meanwhile(task: CompactTask) -> HoodieWriteStat:
        stat = compact_slice(task)
        state = table.state()
        ActiveTimeline(state.storage, state.format).delete_pending(Instant(time, Action.COMPACTION, State.INFLIGHT))
        return stat

    monkeypatch.setattr(RUN, meanwhile)
    with pytest.raises(CompactionError, match="was removed while it ran"):
        run_now(table)
    assert files(table) == before
    assert rows(table) == ROWS


def test_a_completion_of_unknown_outcome_leaves_everything_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_with_logs(tmp_path)
    time = scheduled(table)

    def unknown(timeline: ActiveTimeline, instant: Instant, content: bytes, completed_at: str | None) -> Instant:
        raise CommitOutcomeUnknownError("lost the answer")

    monkeypatch.setattr(ActiveTimeline, "complete", unknown)
    with pytest.raises(CommitOutcomeUnknownError):
        run_now(table)
    monkeypatch.undo()
    assert len(base_files(table, time)) == 1
    assert rows(table) == ROWS
    assert run_now(table).instant == time
    assert rows(table, read_optimized=True) == ROWS


def test_a_completion_that_was_refused_takes_the_files_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_with_logs(tmp_path)
    scheduled(table)
    before = files(table)

    def refuse(timeline: ActiveTimeline, instant: Instant, content: bytes, completed_at: str | None) -> Instant:
        raise StorageError("the disk is full")

    monkeypatch.setattr(ActiveTimeline, "complete", refuse)
    with pytest.raises(StorageError):
        run_now(table)
    assert files(table) == before


@pytest.mark.parametrize("memory", [1, 1024 * 1024 * 1024])
def test_log_rows_beyond_the_memory_limit_spill_and_the_outcome_is_the_same(
    tmp_path: Path, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_with_logs(tmp_path)
    append_now(table, T1, 3, lambda now: data_block(now, {"k3": 30, "k5": 5}, parquet=True))
    expected = rows(table)
    scheduled(table)
    spilled: list[str] = []
    seen = LocalStorage.open_output

    def watched(storage: LocalStorage, path: str) -> object:
        spilled.extend([path] if "/.spill/" in path else [])
        return seen(storage, path)

    monkeypatch.setattr(LocalStorage, "open_output", watched)
    run_now(table, CompactionOptions(memory_bytes=memory))
    assert rows(table, read_optimized=True) == expected
    assert len(spilled) == (2 if memory == 1 else 0)
    assert not list(tmp_path.rglob("*.arrow"))


@pytest.mark.parametrize("row_group", [1, 2, 1000])
def test_rows_only_in_logs_are_written_in_row_groups(tmp_path: Path, row_group: int) -> None:
    table = HandMadeLogTable(tmp_path)
    table.append(T1, T1, 1, data_block(T1, {f"k{number}": number for number in range(5)}))
    time = scheduled(table)
    arguments = (storage_of(table), CompactionOptions(memory_bytes=1), WriteOptions(row_group_rows=row_group), LocalRunner())
    schedule_and_run(*arguments, lock_timeout_ms=TIMEOUT_MS)
    assert rows(table, read_optimized=True) == {f"k{number}": (T1, number) for number in range(5)}
    (made,) = base_files(table, time)
    assert pq.read_metadata(made).num_row_groups == -(-5 // row_group)
