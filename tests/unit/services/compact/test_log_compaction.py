from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import CompactionError
from lakehouse_engine.format.log.blocks import BlockType
from lakehouse_engine.format.log.delete_block import Wrapper, decode_delete_block
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.model.instant import Action, State
from lakehouse_engine.model.services import CompactionResult
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from lakehouse_engine.options import CompactionOptions, WriteOptions
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.scan import plan_incremental
from lakehouse_engine.services.compact import run, schedule_and_run
from lakehouse_engine.services.compact.log_merging import LogCompactTask, compact_logs
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.clock import InstantClock
from lakehouse_engine.verify import verify
from tests.unit.read.hand_made import PARTITION
from tests.unit.read.hand_made_logs import HandMadeLogTable, data_block, delete_block
from tests.unit.services.compact.tables import (
    ROWS,
    T1,
    T2,
    T3,
    T4,
    T5,
    TIMEOUT_MS,
    files,
    rows,
    run_now,
    schedule_now,
    storage_of,
    table_with_logs,
)

TWO_BLOCKS = CompactionOptions(log_blocks=2)
EVENT_TIME = {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}


def compact_logs_now(
    table: HandMadeLogTable, options: CompactionOptions = TWO_BLOCKS, write: WriteOptions | None = None
) -> CompactionResult:
    arguments = (storage_of(table), options, write or WriteOptions(), LocalRunner())
    return schedule_and_run(*arguments, lock_timeout_ms=TIMEOUT_MS, log_compaction=True)


def newest_log(table: HandMadeLogTable) -> Path:
    return max(table.folder.glob(f"{PARTITION}/.a-0_*"), key=lambda path: int(path.name.split(".log.")[1].split("_")[0]))


def test_one_log_stands_for_all_blocks_of_its_slice(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    result = compact_logs_now(table)
    assert result.instant is not None
    assert (result.state, result.operation, result.files_created, result.log_files_compacted) == ("completed", "LOG_COMPACT", 1, 2)
    assert rows(table) == ROWS
    made = newest_log(table)
    assert made.name.startswith(f".a-0_{T1}.log.3_")
    kinds = [(block.type, block.instant_time, block.compacted_times) for block in read_blocks(made.read_bytes())]
    assert kinds == [(kind, result.instant, (T3, T2)) for kind in (BlockType.PARQUET_DATA, BlockType.DELETE)]
    completed = table.state().timeline.find(result.instant)
    assert completed is not None
    assert (completed.action, completed.state) == (Action.DELTA_COMMIT, State.COMPLETED)
    metadata = table.state().commit_metadata(completed)
    assert (metadata.operation_type, metadata.compacted) == (WriteOperationType.LOG_COMPACT, True)
    (stat,) = metadata.write_stats()
    assert (stat.log_version, stat.log_offset, stat.prev_commit, stat.base_file) == (3, 0, T1, table.versions["a"].name)
    assert (stat.num_writes, stat.num_deletes, stat.total_updated_records_compacted) == (2, 1, 3)
    assert stat.log_files is not None
    assert stat.log_files[-1] == made.name
    assert verify(table.state()).ok


def test_the_blocks_merged_need_not_be_whole_any_more(tmp_path: Path) -> None:
    """Proof that the new block is what is read: without what it stands for the rows would be others."""
    table = table_with_logs(tmp_path)
    compact_logs_now(table)
    later = InstantClock().next(table.state().timeline)
    table.append(later, T1, 4, data_block(later, {"k1": 11}))
    assert rows(table) == {**ROWS, "k1": (later, 11)}
    again = compact_logs_now(table)
    assert again.instant is not None
    (earlier,) = table.folder.glob(f"{PARTITION}/.a-0_*.log.3_*")
    (first,) = {block.instant_time for block in read_blocks(earlier.read_bytes())}
    assert [block.compacted_times for block in read_blocks(newest_log(table).read_bytes())] == [(later, first)]
    assert rows(table) == {**ROWS, "k1": (later, 11)}


def test_earlier_instants_and_incremental_reads_are_as_before(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    before = {time: rows(table, time) for time in (T1, T2, T3)}
    time = compact_logs_now(table).instant
    assert {earlier: rows(table, earlier) for earlier in (T1, T2, T3)} == before
    state = table.state()
    assert read_arrow(plan_incremental(state, T3, time)).num_rows == 0
    assert sorted(read_arrow(plan_incremental(state, T1)).column("id").to_pylist()) == ["k2", "k3"]
    schedule_now(table)
    run_now(table)
    assert rows(table, read_optimized=True) == ROWS


def test_slices_with_few_blocks_are_left(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    before = files(table)
    assert compact_logs_now(table, CompactionOptions(log_blocks=3)).instant is None
    assert files(table) == before


def test_deletions_keep_their_ordering_values(tmp_path: Path) -> None:
    table = HandMadeLogTable(tmp_path, EVENT_TIME)
    table.write(T1, {"a": {f"k{number}": (T1, 5) for number in range(5)}})
    table.append(T2, T1, 1, delete_block(T2, ["k0", "k1", "k2"], [6, 7, 8]))
    table.append(T3, T1, 2, delete_block(T3, ["k1"], [9]))
    table.append(T4, T1, 3, delete_block(T4, ["k3"]))
    table.append(T5, T1, 4, data_block(T5, {"k2": 9}))
    before = rows(table)
    compact_logs_now(table)
    assert rows(table) == before == {"k2": (T5, 9), "k4": (T1, 5)}
    found = [decode_delete_block(block) for block in read_blocks(newest_log(table).read_bytes()) if block.type is BlockType.DELETE]
    assert [(records.keys.to_pylist(), set(records.wrappers.tolist())) for records in found] == [
        (["k3"], {Wrapper.INT}),
        (["k0", "k1"], {Wrapper.LONG}),
    ]
    assert found[1].values[Wrapper.LONG].to_pylist() == [6, 9]


def test_a_large_outcome_is_several_blocks(tmp_path: Path) -> None:
    table = HandMadeLogTable(tmp_path)
    table.write(T1, {"a": {"k": (T1, 1)}})
    many = {f"key-{number:06d}": number for number in range(12_000)}
    table.append(T2, T1, 1, data_block(T2, many, parquet=True))
    table.append(T3, T1, 2, data_block(T3, {"k": 2}))
    before = rows(table)
    compact_logs_now(table, write=replace(WriteOptions(), batch_size_mb=1))
    assert len(list(read_blocks(newest_log(table).read_bytes()))) > 1
    assert rows(table) == before


def test_log_rows_beyond_the_memory_limit_spill_and_the_log_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spilled, seen = list[str](), LocalStorage.open_output

    def watched(storage: LocalStorage, path: str) -> object:
        spilled.append(path)
        return seen(storage, path)

    monkeypatch.setattr(LocalStorage, "open_output", watched)
    sizes = []
    for memory in (1, 10**9):
        table = table_with_logs(tmp_path / str(memory))
        before = rows(table)
        compact_logs_now(table, replace(TWO_BLOCKS, memory_bytes=memory))
        assert rows(table) == before
        assert bool(spilled) == (memory == 1)
        assert all("/.spill/" in path for path in spilled)
        spilled.clear()
        blocks = list(read_blocks(newest_log(table).read_bytes()))
        sizes.append([(block.type, len(block.content)) for block in blocks])
    assert sizes[0] == sizes[1]
    assert not list(tmp_path.rglob("*.arrow"))


def test_slices_rewritten_since_are_left_out_and_an_empty_plan_goes(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    planned = schedule_now(table, TWO_BLOCKS, log_compaction=True)
    assert planned.instant is not None
    schedule_now(table)
    run_now(table)
    before = files(table)
    assert run_now(table, log_compaction=True).instant is None
    assert {path for path in before if planned.instant in path} == {f".hoodie/{planned.instant}.logcompaction.requested"}
    assert files(table) == {path for path in before if planned.instant not in path}
    assert rows(table) == ROWS


def test_a_slice_is_in_one_log_compaction_at_a_time(tmp_path: Path) -> None:
    table = table_with_logs(tmp_path)
    planned = schedule_now(table, TWO_BLOCKS, log_compaction=True)
    assert (planned.state, planned.operation) == ("requested", "LOG_COMPACT")
    assert schedule_now(table, TWO_BLOCKS, log_compaction=True).instant is None
    with pytest.raises(CompactionError, match="no pending compaction"):
        run_now(table, instant=planned.instant)
    result = run_now(table, instant=planned.instant, log_compaction=True)
    assert result.instant == planned.instant


class Broken(RuntimeError):
    """What a test makes go wrong."""


@pytest.mark.parametrize("dies", [False, True], ids=["fails", "dies"])
def test_after_a_failure_or_a_death_it_is_run_again(tmp_path: Path, dies: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_with_logs(tmp_path)
    planned = schedule_now(table, TWO_BLOCKS, log_compaction=True)
    before = files(table)

    def fail(task: LogCompactTask) -> HoodieWriteStat:
        compact_logs(task)
        raise Broken

    module = "lakehouse_engine.services.compact.log_compaction"
    monkeypatch.setattr(f"{module}.compact_logs", fail)
    if dies:
        monkeypatch.setattr("lakehouse_engine.services.executor.execution._Execution._give_back", lambda execution, job: None)
    arguments = (storage_of(table), TWO_BLOCKS, WriteOptions(), LocalRunner())
    with pytest.raises(Broken):
        run(*arguments, lock_timeout_ms=TIMEOUT_MS, log_compaction=True)
    assert (files(table) == before) is not dies
    assert rows(table) == ROWS
    monkeypatch.undo()
    assert run_now(table, log_compaction=True).instant == planned.instant
    assert rows(table) == ROWS
    assert len(list(tmp_path.glob(f"{PARTITION}/.a-0_*"))) == 3
