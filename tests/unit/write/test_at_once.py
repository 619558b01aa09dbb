"""Writers of one table whose files are made at the same time: another one comes while the first one's tasks run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.commit.concurrency.attempts import close_to_attempts
from lakehouse_engine.commit.rollback import recover
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import CommitConflictError, LakehouseError, LockTimeoutError
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline.at_rest import table_at_rest
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.verify import verify
from lakehouse_engine.write.alter import evolve_schema
from lakehouse_engine.write.create import TableSpec, create_table
from tests.crash.checker import check_no_orphans, look
from tests.support.local_table import LocalTable

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64())])
SHORT = {"hoodie.write.lock.wait_time_ms": 300}
Row = tuple[str, str, int]
LOCKED = (["table.lock"], ["table_lock.json"])
"""The lock alone: a file, or an object of a store."""
FIRST: list[Row] = [("a", "x", 1), ("b", "y", 1)]


def batch(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def make(path: Path, version: int = 9, kind: str = "cow", index: str = "SIMPLE") -> HoodieTable:
    properties = {"hoodie.index.type": index}
    spec = TableSpec("t", SCHEMA, ["id"], [], ["part"], kind, properties=properties, version=TableVersion(version))
    create_table(LocalStorage(str(path)), spec)
    table = HoodieTable.open(str(path))
    table.bulk_insert(batch(FIRST))
    return table


class Meanwhile(LocalRunner):
    """Before the first task that writes, somebody else does something, in a thread of its own: this one may hold the lock."""

    def __init__(self, act: Callable[[], Any]) -> None:
        super().__init__()
        self._act: Callable[[], Any] | None = act
        self.raised: LakehouseError | None = None
        self.rounds = 0

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any], *, name: str) -> list[Any]:
        if name == "write":
            self.rounds += 1
            act, self._act = self._act, None
            if act is not None:
                thread = threading.Thread(target=self._try, args=(act,))
                thread.start()
                thread.join()
        return super().run(function, tasks, name=name)

    def _try(self, act: Callable[[], Any]) -> None:
        try:
            act()
        except LakehouseError as error:
            self.raised = error


def beside(path: Path, rows: Sequence[Row], act: Callable[[HoodieTable], Any]) -> tuple[Meanwhile, Any]:
    """Upsert rows, while another user of the table does something."""
    other = HoodieTable.open(str(path), options=SHORT)
    runner = Meanwhile(lambda: act(other))
    table = LocalTable(LocalStorage(str(path)))
    table.runner = runner
    return runner, table.upsert(batch(rows))


def rows_of(path: Path) -> list[Row]:
    table = HoodieTable.open(str(path))
    assert not verify(table.state).findings
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def left(path: Path) -> list[str]:
    """What a write leaves behind that it should not, and the table's lock."""
    folders = (path / ".hoodie" / name for name in (".heartbeat", ".temp", ".locks"))
    return sorted(file.name for folder in folders if folder.exists() for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_writes_of_other_partitions_are_completed_in_another_order_than_requested(tmp_path: Path, kind: str) -> None:
    make(tmp_path / "t", kind=kind)
    done: list[str] = []
    runner, result = beside(tmp_path / "t", [("a", "x", 2)], lambda other: done.append(other.upsert(batch([("b", "y", 2)])).instant))
    assert runner.raised is None
    assert runner.rounds == 1
    assert done[0] > result.instant  # requested later
    timeline = HoodieTable.open(str(tmp_path / "t")).timeline
    assert [one.requested_time for one in timeline.completed().writes()][-2:] == [done[0], result.instant]
    assert rows_of(tmp_path / "t") == [("a", "x", 2), ("b", "y", 2)]
    assert left(tmp_path / "t") in LOCKED
    before = HoodieTable.open(str(tmp_path / "t")).to_arrow(as_of=done[0]).to_pylist()
    assert sorted(row["n"] for row in before) == [1, 2]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_write_of_the_same_partition_is_made_once_more(tmp_path: Path, kind: str) -> None:
    make(tmp_path / "t", kind=kind)
    theirs = batch([("a", "x", 3), ("c", "x", 3)])
    runner, result = beside(tmp_path / "t", [("a", "x", 2), ("c", "x", 2)], lambda other: other.upsert(theirs))
    assert runner.raised is None
    assert runner.rounds == 2
    assert result.updates == 2
    assert rows_of(tmp_path / "t") == [("a", "x", 2), ("b", "y", 1), ("c", "x", 2)]
    assert left(tmp_path / "t") in LOCKED


@pytest.mark.parametrize("operation", [WriteOperationType.UPSERT, WriteOperationType.INSERT])
def test_one_write_id_is_written_once(tmp_path: Path, operation: WriteOperationType) -> None:
    """Also where nothing is looked up, so that nothing else is a conflict."""
    make(tmp_path / "t")
    table, other = (LocalTable(LocalStorage(str(tmp_path / "t"))) for _ in range(2))
    rows = batch([("z", "z", 2)])
    table.runner = runner = Meanwhile(lambda: other.write(operation, rows, write_id="one"))
    result = table.write(operation, rows, write_id="one")
    assert runner.raised is None
    assert result.was_written
    assert rows_of(tmp_path / "t") == [("a", "x", 1), ("b", "y", 1), ("z", "z", 2)]


def _evolve(table: HoodieTable) -> None:
    evolve_schema(table.storage, pa.schema([("more", pa.string())]), lock_timeout_ms=300)


@pytest.mark.parametrize("act", [HoodieTable.savepoint, HoodieTable.rollback, _evolve], ids=lambda act: act.__name__)
def test_who_has_to_be_alone_waits_for_writers(tmp_path: Path, act: Callable[[HoodieTable], Any]) -> None:
    make(tmp_path / "t")
    runner, _ = beside(tmp_path / "t", [("a", "x", 2)], act)
    assert isinstance(runner.raised, CommitConflictError)
    assert "another writer is at work" in str(runner.raised)
    assert rows_of(tmp_path / "t") == [("a", "x", 2), ("b", "y", 1)]
    assert left(tmp_path / "t") in LOCKED


def test_who_waits_to_be_alone_gets_its_turn(tmp_path: Path) -> None:
    """Writers that begin while somebody waits keep the lock: a stream of them has an end for who waits."""
    make(tmp_path / "t")
    held: list[bool] = []

    def wait_and_write(other: HoodieTable) -> None:
        patient = HoodieTable.open(str(tmp_path / "t"), options={"hoodie.write.lock.wait_time_ms": 60_000})
        waiting = threading.Thread(target=patient.savepoint)
        waiting.start()
        while not (tmp_path / "t/.hoodie/.locks/write-alone.lock").exists():
            assert waiting.is_alive()
        third = LocalTable(LocalStorage(str(tmp_path / "t")))
        third.runner = Meanwhile(lambda: held.append(_is_locked(tmp_path / "t")))
        third.upsert(batch([("b", "y", 5)]))
        waiters.append(waiting)

    waiters: list[threading.Thread] = []
    runner, _ = beside(tmp_path / "t", [("a", "x", 2)], wait_and_write)
    waiters[0].join(60)
    assert runner.raised is None
    assert held == [True]
    assert len(HoodieTable.open(str(tmp_path / "t")).savepoints()) == 1


def _is_locked(path: Path) -> bool:
    try:
        with TableLock(LocalStorage(str(path)), 100):
            return False
    except LockTimeoutError:
        return True


def test_a_compaction_is_planned_beside_a_writer_whose_files_fit_it_then(tmp_path: Path) -> None:
    table = make(tmp_path / "t", kind="mor")
    table.upsert(batch([("a", "x", 2)]))
    runner, _ = beside(tmp_path / "t", [("a", "x", 3)], lambda other: other.compact("schedule"))
    assert runner.raised is None
    assert runner.rounds == 2
    table.compact("run")
    assert rows_of(tmp_path / "t") == [("a", "x", 3), ("b", "y", 1)]


def test_a_table_is_not_dropped_beside_a_writer(tmp_path: Path) -> None:
    make(tmp_path / "t")

    def drop(other: HoodieTable) -> None:
        with table_at_rest(LocalStorage(str(tmp_path)), "t", lock_timeout_ms=300):
            raise AssertionError("a writer is at work")

    runner, _ = beside(tmp_path / "t", [("a", "x", 2)], drop)
    assert isinstance(runner.raised, LockTimeoutError)
    with table_at_rest(LocalStorage(str(tmp_path)), "t", lock_timeout_ms=300):
        pass


def test_a_writer_that_is_taken_for_dead_makes_its_files_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "t")

    def take_back(other: HoodieTable) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(recover, "_is_dead", lambda state, instant, options: True)
            other.upsert(batch([("b", "y", 2)]))

    runner, _ = beside(tmp_path / "t", [("a", "x", 2), ("c", "x", 2)], take_back)
    assert runner.raised is None
    assert rows_of(tmp_path / "t") == [("a", "x", 2), ("b", "y", 2), ("c", "x", 2)]
    assert left(tmp_path / "t") in LOCKED
    storage = LocalStorage(str(tmp_path / "t"))
    check_no_orphans(storage, look(storage, ("id", "part", "n")))


def test_a_writer_that_is_being_taken_back_makes_its_files_again(tmp_path: Path) -> None:
    """Its instant is closed to tasks before anything shows on the timeline."""
    make(tmp_path / "t")

    def close(other: HoodieTable) -> None:
        close_to_attempts(other.storage, other.timeline.pending().instants[0].requested_time)

    runner, _ = beside(tmp_path / "t", [("a", "x", 2)], close)
    assert runner.raised is None
    assert runner.rounds == 2
    assert rows_of(tmp_path / "t") == [("a", "x", 2), ("b", "y", 1)]
    assert left(tmp_path / "t") in LOCKED


@pytest.mark.parametrize(("version", "index"), [(6, "SIMPLE"), (9, "GLOBAL_SIMPLE")])
def test_others_wait_where_writes_are_in_order_or_keys_are_everywhere(tmp_path: Path, version: int, index: str) -> None:
    make(tmp_path / "t", version, index=index)
    runner, _ = beside(tmp_path / "t", [("a", "x", 2)], lambda other: other.upsert(batch([("b", "y", 2)])))
    assert isinstance(runner.raised, LockTimeoutError)
    assert runner.rounds == 1
