"""Hudi deletes its lock file twice when it unlocks: a write must notice that it lost the lock before it publishes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.commit.transaction import Transaction
from lakehouse_engine.errors import CommitConflictError, LockError
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
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
    layout = table.state.layout
    content = layout.encode_commit(HoodieCommitMetadata())
    for state in State:
        path = f"{layout.timeline_folder}/{layout.file_name(Instant(time, Action.COMMIT, state))}"
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
