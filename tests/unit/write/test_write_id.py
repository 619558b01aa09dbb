"""Writes that were made before are found by their id, and not made twice."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import CommitOutcomeUnknownError, OptionError, StorageError
from lakehouse_engine.model.commit_metadata import WRITE_ID_KEY
from lakehouse_engine.repair import repair
from lakehouse_engine.storage.local import LocalStorage
from tests.support.untouched import files_below

SHORT = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("p", pa.string())])


def rows(ids: str, value: str, partition: str = "x") -> pa.Table:
    numbers = [int(one) for one in ids.split()]
    return pa.table({"id": numbers, "v": [value] * len(numbers), "p": [partition] * len(numbers)}, schema=SCHEMA)


@pytest.fixture(params=["cow", "mor"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    lake = Lakehouse(str(tmp_path / "w"))
    made = lake.create_table("s.t", schema=SCHEMA, record_key=["id"], partition_by=["p"], table_type=request.param)
    made.insert(rows("1 2", "old"))
    return made


WRITES = {
    "upsert": lambda table, name: table.upsert(rows("1 3", "new"), write_id=name),
    "delete": lambda table, name: table.delete(rows("1", "").select(["id", "p"]), write_id=name),
    "insert": lambda table, name: table.insert(rows("3 4", "new"), write_id=name),
    "bulk insert": lambda table, name: table.bulk_insert(rows("3 4", "new"), write_id=name),
    "overwrite": lambda table, name: table.insert_overwrite(rows("3", "new"), write_id=name),
    "overwrite table": lambda table, name: table.insert_overwrite_table(rows("3", "new"), write_id=name),
    "delete partitions": lambda table, name: table.delete_partitions(["p=x"], write_id=name),
}


@pytest.mark.parametrize("operation", WRITES)
def test_a_call_made_again_is_answered_by_its_commit_and_writes_nothing(table: HoodieTable, operation: str) -> None:
    first = WRITES[operation](table, "part 7")
    table.insert(rows("9", "later", "y"))
    before = files_below(Path(table.path))
    again = WRITES[operation](table, "part 7")
    assert files_below(Path(table.path)) == before
    assert again.was_written
    assert not first.was_written
    assert (again.instant, again.previous_instant) == (first.instant, first.previous_instant)
    assert (again.inserts, again.updates, again.deletes) == (first.inserts, first.updates, first.deletes)


def test_another_id_is_another_write(table: HoodieTable) -> None:
    table.insert(rows("3", "new"), write_id="a")
    table.insert(rows("3", "new"), write_id="b")
    assert sorted(table.to_arrow(["id"])["id"].to_pylist()) == [1, 2, 3, 3]


def test_an_id_is_of_one_operation(table: HoodieTable) -> None:
    done = table.insert(rows("3", "new"), write_id="a")
    with pytest.raises(OptionError, match="INSERT") as refused:
        table.upsert(rows("3", "new"), write_id="a")
    assert refused.value.context["instant"] == done.instant


def test_an_archived_commit_is_found(table: HoodieTable) -> None:
    first = table.insert(rows("3", "new"), write_id="part 7")
    for number in range(10, 20):
        table.upsert(rows(str(number), "more"), options=SHORT)
    HoodieTable.open(table.path, options=SHORT).archive(min_commits=2, max_commits=3)
    assert first.instant not in [one.requested_time for one in table.timeline]
    again = table.insert(rows("3", "new"), write_id="part 7")
    assert (again.instant, again.was_written, again.inserts) == (first.instant, True, 1)
    assert table.to_arrow(["id"])["id"].to_pylist().count(3) == 1


@pytest.mark.parametrize("archived", [False, True], ids=["active", "archived"])
def test_a_commit_that_a_restore_took_back_is_made_again(table: HoodieTable, archived: bool) -> None:
    saved = table.savepoint(name="before")
    first = table.insert(rows("3", "new"), write_id="part 7")
    if archived:
        for number in range(10, 20):
            table.upsert(rows(str(number), "more"), options=SHORT)
        HoodieTable.open(table.path, options=SHORT).archive(min_commits=2, max_commits=3)
        assert first.instant not in [one.requested_time for one in table.timeline]
    table.restore("before")
    again = table.insert(rows("3", "new"), write_id="part 7")
    assert not again.was_written
    assert again.instant is not None
    assert saved.instant < again.instant != first.instant
    assert table.to_arrow(["id"])["id"].to_pylist().count(3) == 1


def test_a_commit_without_an_answer_is_found_when_the_call_is_made_again(table: HoodieTable, monkeypatch: pytest.MonkeyPatch) -> None:
    create, read = LocalStorage.create, LocalStorage.read
    lost: list[str] = []

    def create_and_fail(self: LocalStorage, path: str, data: bytes) -> None:
        create(self, path, data)
        if path.endswith("commit") and not lost:
            lost.append(path)
            raise StorageError("the answer was lost", path=path)

    def read_unless_lost(self: LocalStorage, path: str) -> bytes:
        if path in lost:
            raise StorageError("no answer", path=path)
        return read(self, path)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "create", create_and_fail)
        patched.setattr(LocalStorage, "read", read_unless_lost)
        with pytest.raises(CommitOutcomeUnknownError, match="write_id"):
            table.insert(rows("3", "new"), write_id="part 7")
    again = table.insert(rows("3", "new"), write_id="part 7")
    assert again.was_written
    assert table.to_arrow(["id"])["id"].to_pylist().count(3) == 1


def test_of_two_calls_at_once_one_writes(table: HoodieTable) -> None:
    together, found = threading.Barrier(4), []

    def write() -> None:
        mine = HoodieTable.open(table.path)
        together.wait()
        found.append(mine.insert(rows("3", "new"), write_id="part 7"))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.was_written for one in found) == [False, True, True, True]
    assert len({one.instant for one in found}) == 1
    assert table.to_arrow(["id"])["id"].to_pylist().count(3) == 1


@pytest.mark.parametrize("name", ["", " a", 'a"b', "a\\b", "ä", "a\nb", "x" * 201])
def test_what_is_no_id_is_refused_before_anything_is_read(table: HoodieTable, name: str) -> None:
    before = files_below(Path(table.path))
    with pytest.raises(OptionError, match="write_id"):
        table.insert(rows("3", "new"), write_id=name)
    assert files_below(Path(table.path)) == before


def test_every_commit_has_an_id_of_its_own(table: HoodieTable) -> None:
    table.insert(rows("3", "new"))
    state = table.state
    ids = [state.commit_metadata(one).extra_metadata.get(WRITE_ID_KEY) for one in state.timeline.completed().writes()]
    assert len(set(ids)) == len(ids) == 2
    assert all(ids)


@pytest.mark.parametrize("operation", WRITES)
def test_a_commit_whose_damaged_record_was_made_anew_is_found(table: HoodieTable, operation: str) -> None:
    first = WRITES[operation](table, "part 7")
    table.insert(rows("9", "later", "y"))
    (record,) = Path(table.path, ".hoodie").glob(f"{first.instant}.*commit")
    record.write_bytes(record.read_bytes()[:50])
    assert repair(table.storage, lock_timeout_ms=1000, trust_files=True).repaired
    again = WRITES[operation](HoodieTable.open(table.path), "part 7")
    assert (again.instant, again.was_written) == (first.instant, True)


def test_an_id_is_not_given_as_extra_metadata(table: HoodieTable) -> None:
    with pytest.raises(OptionError, match="write_id"):
        table.insert(rows("3", "new"), extra_metadata={WRITE_ID_KEY: "a b"})
