"""Hudi deletes its lock file twice when it unlocks: a write must notice that it lost the lock before it publishes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.commit.transaction import Transaction
from lakehouse_engine.errors import CommitConflictError, CommitOutcomeUnknownError, LockError, LockLostError, StorageError
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.heartbeats import HEARTBEATS
from tests.unit.timeline.locks.tables import BESIDE_HUDI

ROWS = pa.table({"id": ["a", "b"], "n": pa.array([1, 2], pa.int64())})
LOCK = ".hoodie/lock"


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    lake = Lakehouse(str(tmp_path / "w"))
    return lake.create_table("s.t", schema=ROWS.schema, record_key=["id"], properties=BESIDE_HUDI)


def _before_publishing(monkeypatch: pytest.MonkeyPatch, does: object) -> None:
    complete = Transaction.complete

    def then(self: Transaction, metadata: HoodieCommitMetadata) -> None:
        assert callable(does)
        does()
        complete(self, metadata)

    monkeypatch.setattr(Transaction, "complete", then)


def _hudi_commits(table: HoodieTable, time: str) -> None:
    """As another writer would: by files, without the lock."""
    table_format = table.state.format
    content = table_format.encode_commit(HoodieCommitMetadata())
    for state in State:
        path = f"{table_format.timeline_folder}/{table_format.file_name(Instant(time, Action.COMMIT, state))}"
        table.storage.create(path, content)


def test_a_deleted_lock_file_is_taken_again_and_the_write_goes_on(table: HoodieTable, monkeypatch: pytest.MonkeyPatch) -> None:
    deleted: list[bool] = []
    _before_publishing(monkeypatch, lambda: deleted.append(table.storage.delete(LOCK)))
    assert table.upsert(ROWS).inserts == 2
    assert deleted == [True]
    assert table.storage.head(LOCK) is None


def test_a_write_that_lost_the_lock_to_a_commit_publishes_nothing(table: HoodieTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose() -> None:
        table.storage.delete(LOCK)
        _hudi_commits(table, "20260101000000000")

    with monkeypatch.context() as patched:
        _before_publishing(patched, lose)
        with pytest.raises(CommitConflictError, match="lock file was deleted"):
            table.upsert(ROWS)
    assert [instant.requested_time for instant in table.timeline] == ["20260101000000000"]
    assert table.storage.list(HEARTBEATS) == []


def test_a_write_whose_lock_another_took_publishes_nothing_and_leaves_it_the_lock(
    table: HoodieTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        _before_publishing(patched, lambda: table.storage.overwrite(LOCK, b"theirs"))
        with pytest.raises(LockError, match="taken by another program"):
            table.upsert(ROWS)
    assert list(table.timeline) == []
    assert table.storage.read(LOCK) == b"theirs"


def test_any_other_action_that_lost_the_lock_completes_nothing(table: HoodieTable) -> None:
    table.upsert(ROWS)
    create = ActiveTimeline.to_inflight
    with pytest.MonkeyPatch.context() as patched:

        def lose(self: ActiveTimeline, instant: Instant, content: bytes = b"") -> Instant:
            self.storage.delete(LOCK)
            return create(self, instant, content)

        patched.setattr(ActiveTimeline, "to_inflight", lose)
        with pytest.raises(LockError, match="was not published"):
            table.savepoint()
    assert table.savepoints() == []


def _while_publishing(monkeypatch: pytest.MonkeyPatch, suffix: str, does: Callable[[LocalStorage], object]) -> None:
    """A pause between the last look at the lock and the completed file, in which somebody else takes it."""
    create, done = LocalStorage.create, list[str]()

    def then(self: LocalStorage, path: str, data: bytes) -> None:
        if path.endswith(suffix) and not done:
            done.append(path)
            does(self)
        create(self, path, data)

    monkeypatch.setattr(LocalStorage, "create", then)


LOSSES = {"taken": lambda storage: storage.overwrite(LOCK, b"theirs"), "deleted": lambda storage: storage.delete(LOCK)}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_lock_that_is_lost_while_the_commit_is_published_takes_it_back(
    table: HoodieTable, monkeypatch: pytest.MonkeyPatch, loss: str
) -> None:
    table.upsert(ROWS)
    with monkeypatch.context() as patched:
        _while_publishing(patched, ".commit", LOSSES[loss])
        with pytest.raises(LockLostError, match="taken from the timeline again"):
            table.upsert(ROWS.slice(0, 1).set_column(1, "n", pa.array([9], pa.int64())))
    assert len(table.timeline.completed()) == 1
    assert sorted(table.to_arrow()["n"].to_pylist()) == [1, 2]
    table.storage.delete(LOCK)
    table.upsert(pa.table({"id": ["c"], "n": pa.array([3], pa.int64())}))
    assert sorted(table.to_arrow()["n"].to_pylist()) == [1, 2, 3]
    assert len(table.timeline.pending()) == 0


def test_a_commit_that_cannot_be_taken_back_is_of_unknown_outcome(table: HoodieTable, monkeypatch: pytest.MonkeyPatch) -> None:
    table.upsert(ROWS)
    delete = LocalStorage.delete

    def refuse(self: LocalStorage, path: str) -> bool:
        if path.endswith(".commit"):
            raise StorageError("the storage is gone", path=path)
        return delete(self, path)

    with monkeypatch.context() as patched:
        _while_publishing(patched, ".commit", LOSSES["taken"])
        patched.setattr(LocalStorage, "delete", refuse)
        with pytest.raises(CommitOutcomeUnknownError):
            table.upsert(ROWS)
    table.storage.delete(LOCK)
    assert len(table.timeline.completed().writes()) == 2
    assert sorted(table.to_arrow()["n"].to_pylist()) == [1, 2]


def test_a_savepoint_whose_lock_is_lost_while_it_is_published_is_none(table: HoodieTable, monkeypatch: pytest.MonkeyPatch) -> None:
    first = table.upsert(ROWS).instant
    table.upsert(ROWS)
    with monkeypatch.context() as patched:
        _while_publishing(patched, ".savepoint", LOSSES["taken"])
        with pytest.raises(LockLostError):
            table.savepoint(first)
    table.storage.delete(LOCK)
    assert table.savepoints() == []
    assert table.savepoint(first).instant == first


def test_a_commit_that_another_built_upon_before_the_loss_was_seen_stays(
    table: HoodieTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.insert(ROWS)
    prove, other = ActiveTimeline._prove_lock, tmp_path / "elsewhere"

    def pause(self: ActiveTimeline, completed: Instant) -> None:
        if self.storage.root == table.storage.root:
            table.storage.delete(LOCK)
            shutil.copytree(table.path, other)
            HoodieTable.open(str(other)).insert(pa.table({"id": ["d"], "n": pa.array([4], pa.int64())}))
            shutil.copytree(other, table.path, dirs_exist_ok=True)
            table.storage.create(LOCK, b"theirs")
        prove(self, completed)

    more = pa.table({"id": ["c"], "n": pa.array([3], pa.int64())})
    with monkeypatch.context() as patched:
        patched.setattr(ActiveTimeline, "_prove_lock", pause)
        with pytest.raises(CommitOutcomeUnknownError, match="write_id"):
            table.insert(more, write_id="part 7")
    table.storage.delete(LOCK)
    assert table.insert(more, write_id="part 7").was_written
    assert sorted(table.to_arrow()["id"].to_pylist()) == ["a", "b", "c", "d"]


KERNEL_LOCK = ".hoodie/.locks/table.lock"


@pytest.mark.parametrize(
    ("when", "error", "message"),
    [("before", LockError, "was removed or replaced"), ("while", LockLostError, "taken from the timeline again")],
)
def test_a_write_whose_lock_file_somebody_removed_is_refused_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, error: type[LockError], message: str
) -> None:
    table = Lakehouse(str(tmp_path / "w")).create_table("s.t", schema=ROWS.schema, record_key=["id"])
    table.upsert(ROWS)
    with monkeypatch.context() as patched:
        if when == "before":
            _before_publishing(patched, lambda: table.storage.delete(KERNEL_LOCK))
        else:
            _while_publishing(patched, ".commit", lambda storage: storage.delete(KERNEL_LOCK))
        with pytest.raises(error, match=message):
            table.upsert(ROWS.slice(0, 1).set_column(1, "n", pa.array([9], pa.int64())))
    assert len(table.timeline.completed()) == 1
    assert sorted(table.to_arrow()["n"].to_pylist()) == [1, 2]
    table.upsert(pa.table({"id": ["c"], "n": pa.array([3], pa.int64())}))
    assert sorted(table.to_arrow()["n"].to_pylist()) == [1, 2, 3]
    assert len(table.timeline.pending()) == 0
