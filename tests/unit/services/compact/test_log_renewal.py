"""A log compaction that is run after later writes: what the table was before them stays what it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import CommitConflictError, CompactionError, LakehouseError
from lakehouse_engine.files.log_scanner import LogScope
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.services import CompactionResult
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.options import CompactionOptions, ServiceOptions, WriteOptions
from lakehouse_engine.services import inline
from lakehouse_engine.services.compact.log_merging import LogCompactTask, compact_logs
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.verify import FindingKind, verify
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.local_table import LocalTable
from tests.unit.services.compact.tables import run_now, schedule_now, table_with_logs
from tests.unit.services.compact.test_log_compaction import TWO_BLOCKS

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])
BESIDE_HUDI = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}
Rows = list[tuple[int, int]]


def batch(*pairs: tuple[int, int]) -> pa.Table:
    return pa.table({"id": [key for key, _ in pairs], "v": [v for _, v in pairs]}, schema=SCHEMA)


def show(table: LocalTable, **query: Any) -> Rows:
    found = table.read(["id", "v"], **query)
    return sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))


class Planned:
    """A table with a log compaction planned: 1 was updated twice, 2 never."""

    def __init__(self, ordering: tuple[str, ...] = ("v",)) -> None:
        storage = MemoryStorage()
        create_table(storage, TableSpec("t", SCHEMA, ["id"], list(ordering), [], "mor"))
        self.table = LocalTable(storage)
        self.table.upsert(batch((1, 0), (2, 0)))
        self.table.upsert(batch((1, 1)))
        self.before = str(self.table.upsert(batch((1, 2))).instant)
        self.planned = str(self.table.schedule_compaction(log_compaction=True).instant)

    def upsert(self, *pairs: tuple[int, int]) -> str:
        return str(self.table.upsert(batch(*pairs)).instant)

    def run(self) -> CompactionResult:
        return self.table.run_compaction(log_compaction=True)


@pytest.fixture(params=[("v",), ()], ids=["ordered", "by time"])
def made(request: pytest.FixtureRequest) -> Planned:
    return Planned(request.param)


def test_earlier_moments_and_ranges_read_as_before(made: Planned) -> None:
    later = made.upsert((1, 9))
    asked: list[dict[str, str]] = [
        {"as_of": made.before},
        {"as_of": made.planned},
        {"as_of": later},
        {"query": "incremental", "begin": "earliest", "end": made.before},
        {"query": "incremental", "begin": "earliest", "end": made.planned},
        {"query": "incremental", "begin": made.planned},
    ]
    read = [show(made.table, **query) for query in asked]
    assert read[:3] == [[(1, 2), (2, 0)], [(1, 2), (2, 0)], [(1, 9), (2, 0)]]
    result = made.run()
    assert (result.state, result.files_created) == ("completed", 1)
    assert result.instant is not None
    assert result.instant > later
    assert [show(made.table, **query) for query in asked] == read
    assert show(made.table) == [(1, 9), (2, 0)]


def test_a_later_write_is_rolled_back_whole(made: Planned) -> None:
    later = made.upsert((1, 9))
    assert made.table.rollback(str(made.run().instant)).rolled_back > later
    assert made.table.rollback().rolled_back == later
    assert show(made.table) == [(1, 2), (2, 0)]


def test_a_savepoint_keeps_what_it_kept(made: Planned) -> None:
    saved = made.upsert((2, 5))
    made.table.savepoint(name="sp")
    made.upsert((1, 9), (3, 9))
    made.table.delete(pa.table({"id": [2]}))
    made.run()
    assert show(made.table, as_of=saved) == show(made.table, as_of="sp") == [(1, 2), (2, 5)]
    made.table.restore("sp")
    assert show(made.table) == [(1, 2), (2, 5)]


def test_a_restore_to_a_write_behind_the_plan(made: Planned) -> None:
    target = made.upsert((2, 5))
    made.upsert((1, 9))
    made.run()
    made.table.restore(to=target)
    assert show(made.table) == [(1, 2), (2, 5)]


def test_the_old_plan_is_gone_and_the_new_one_has_the_same_slices(made: Planned) -> None:
    made.upsert((1, 9))
    result = made.run()
    plans = [instant.requested_time for instant in made.table.state.timeline if instant.action is Action.LOG_COMPACTION]
    assert plans == []
    assert made.planned not in "".join(entry.path for entry in made.table.storage.walk(".hoodie"))
    (operation,) = result.operations
    assert operation.delta_file_paths is not None
    assert len(operation.delta_file_paths) == 3
    assert made.run().instant is None
    assert verify(made.table.state).ok


def test_a_plan_runs_as_it_is_where_others_were_written_to() -> None:
    storage = MemoryStorage()
    create_table(storage, TableSpec("t", SCHEMA, ["id"], ["v"], ["id"], "mor"))
    table = LocalTable(storage)
    for v in range(3):
        table.upsert(batch((1, v)))
    planned = table.schedule_compaction(log_compaction=True).instant
    later = table.upsert(batch((2, 9))).instant
    assert later is not None
    assert table.run_compaction(log_compaction=True).instant == planned
    assert show(table) == show(table, as_of=later) == [(1, 2), (2, 9)]
    table.rollback()
    assert show(table) == [(1, 2)]


def test_a_plan_is_made_anew_behind_a_savepoint_of_other_slices() -> None:
    storage = MemoryStorage()
    create_table(storage, TableSpec("t", SCHEMA, ["id"], ["v"], ["id"], "mor"))
    table = LocalTable(storage)
    for v in range(3):
        table.upsert(batch((1, v)))
    table.schedule_compaction(log_compaction=True)
    table.upsert(batch((2, 9)))
    saved = table.savepoint(name="sp").instant
    assert str(table.run_compaction(log_compaction=True).instant) > saved


def test_a_plan_whose_later_write_was_taken_back_runs_as_it_is(made: Planned) -> None:
    made.upsert((1, 9))
    made.table.rollback()
    assert made.run().instant == made.planned
    assert show(made.table) == [(1, 2), (2, 0)]


def test_a_writer_that_comes_in_between_is_no_failed_service(made: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two processes that see the plan, the second finds another one, or none."""
    made.upsert((1, 9))
    real: Callable[..., CompactionResult] = inline.run

    def late(*arguments: Any, **more: Any) -> CompactionResult:
        monkeypatch.setattr(inline, "run", real)
        made.run()
        return real(*arguments, **more)

    monkeypatch.setattr(inline, "run", late)
    options = ServiceOptions(compaction=CompactionOptions(log_inline=True, log_blocks=2))
    assert inline.after_commit(made.table.storage, options, WriteOptions(), LocalRunner()) == ()
    assert show(made.table) == [(1, 9), (2, 0)]


def test_what_a_program_without_the_lock_logs_meanwhile_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_with_logs(tmp_path)
    planned = schedule_now(table, TWO_BLOCKS, log_compaction=True).instant
    later = str(int(str(planned)) + 1)

    def and_a_write(task: LogCompactTask) -> HoodieWriteStat:
        table.timeline_file(f"{later}.deltacommit.requested", b"")
        return compact_logs(task)

    monkeypatch.setattr("lakehouse_engine.services.compact.log_compaction.compact_logs", and_a_write)
    with pytest.raises(CompactionError, match="while a write is going on"):
        run_now(table, log_compaction=True)
    monkeypatch.undo()
    assert len(list(tmp_path.glob("*/.a-0_*"))) == 2
    (tmp_path / ".hoodie" / f"{later}.deltacommit.requested").unlink()
    assert run_now(table, log_compaction=True).instant == planned


def test_beside_a_live_writer_of_hudi_nothing_is_begun(tmp_path: Path) -> None:
    """What it has logged would stand before the block that is older."""
    table = table_with_logs(tmp_path, BESIDE_HUDI)
    planned = schedule_now(table, TWO_BLOCKS, log_compaction=True).instant
    later = str(int(str(planned)) + 1)
    table.timeline_file(f"{later}.deltacommit.requested", b"")
    (tmp_path / ".hoodie" / ".heartbeat").mkdir(exist_ok=True)
    table.timeline_file(f".heartbeat/{later}", b"")
    with pytest.raises(CommitConflictError, match="another writer is at work"):
        run_now(table, log_compaction=True, lock_timeout_ms=300)
    assert (tmp_path / ".hoodie" / f"{planned}.logcompaction.requested").exists()


@pytest.mark.parametrize("is_planned", [False, True])
def test_behind_a_commit_nobody_waits_for_a_writer_of_hudi(is_planned: bool, tmp_path: Path) -> None:
    table = table_with_logs(tmp_path, BESIDE_HUDI)
    if is_planned:
        schedule_now(table, TWO_BLOCKS, log_compaction=True)
    local = LocalTable(LocalStorage(str(tmp_path)))
    before = list(local.state.timeline)
    time = f"{int(before[-1].requested_time) + 1}"
    table.timeline_file(f"{time}.deltacommit.requested", b"")
    (tmp_path / ".hoodie" / ".heartbeat").mkdir(exist_ok=True)
    table.timeline_file(f".heartbeat/{time}", b"")
    options = ServiceOptions(compaction=CompactionOptions(log_inline=True, log_blocks=2))
    began = monotonic()
    assert inline.after_commit(local.storage, options, WriteOptions(lock_timeout_ms=30_000), LocalRunner()) == ()
    assert monotonic() - began < 15
    assert [one for one in local.state.timeline if one.requested_time != time] == before


def _with_a_newer_row(monkeypatch: pytest.MonkeyPatch) -> Planned:
    """Run as it was before: at the instant that was planned, with all that there is by now."""
    made, module = Planned(), "lakehouse_engine.services.compact.log_compaction"
    made.upsert((1, 9))
    monkeypatch.setattr(f"{module}.is_outdated", lambda state, time, slices: False)
    monkeypatch.setattr(f"{module}.LogScope", type("_Unbounded", (), {"of": staticmethod(lambda timeline, window: LogScope.of(timeline))}))
    assert made.run().instant == made.planned
    monkeypatch.undo()
    return made


def test_verify_names_a_block_that_has_what_is_newer_than_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = _with_a_newer_row(monkeypatch)
    (finding,) = verify(made.table.state).findings
    assert finding.kind is FindingKind.NEWER_ROWS
    assert ".log." in finding.path
    assert made.planned in finding.message
    assert max(made.table.instants()) in finding.message


def test_a_block_has_nothing_newer_than_its_instant_whatever_is_overlooked(made: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    later = made.upsert((1, 9))
    monkeypatch.setattr("lakehouse_engine.services.compact.log_compaction.is_outdated", lambda state, time, slices: False)
    assert made.run().instant == made.planned
    logs = [entry.path for entry in made.table.storage.walk() if ".log." in entry.path]
    blocks = [block for path in logs for block in read_blocks(made.table.storage.read(path)) if block.compacted_times]
    assert blocks
    assert all(later not in block.compacted_times for block in blocks)
    assert show(made.table, as_of=made.planned) == [(1, 2), (2, 0)]


@pytest.mark.parametrize("fails", ["delete", "request"])
def test_one_who_stops_while_the_plan_is_made_anew_leaves_a_whole_table(
    made: Planned, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    later = made.upsert((1, 9))

    class Stopped(LakehouseError):
        """What a test makes go wrong."""

    def stop(*arguments: object) -> None:
        raise Stopped("here")

    if fails == "delete":
        monkeypatch.setattr(ActiveTimeline, "delete_pending", stop)
    else:
        monkeypatch.setattr("lakehouse_engine.services.compact.log_renewal.request", stop)
    with pytest.raises(Stopped):
        made.run()
    monkeypatch.undo()
    assert verify(made.table.state).ok
    result = made.run()
    if fails == "request":
        assert result.instant is None
        made.table.schedule_compaction(log_compaction=True)
        result = made.run()
    assert str(result.instant) > later
    assert show(made.table) == [(1, 9), (2, 0)]
    assert show(made.table, as_of=made.planned) == [(1, 2), (2, 0)]


def test_a_savepoint_beside_a_dead_run_does_not_pin_what_it_wrote(made: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "lakehouse_engine.services.compact.log_compaction"

    def die(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"{module}.LogCompaction.settle", die)
    monkeypatch.setattr("lakehouse_engine.services.executor.execution._Execution._give_back", lambda execution, job: None)
    with pytest.raises(KeyboardInterrupt):
        made.run()
    monkeypatch.undo()
    made.table.savepoint(name="sp")
    made.upsert((1, 9))
    assert made.run().state == "completed"
    assert show(made.table, as_of="sp") == [(1, 2), (2, 0)]
    made.table.restore("sp")
    assert show(made.table) == [(1, 2), (2, 0)]
