"""Files that are lost, changed or put back while listings are kept (docs/adr/0026): the rows of a table opened anew, or an error."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import CorruptFileError, CorruptInstantError, MissingFileError
from lakehouse_engine.manifest import from_commits
from lakehouse_engine.manifest.manifest import ExpectedFile
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.complete_slices import check_complete
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.view.moment import at_one_moment
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.batch.input import ArrowInput
from lakehouse_engine.write.create import TableSpec, create_table
from lakehouse_engine.write.operation import execute_write
from lakehouse_engine.write.request import WriteRequest
from tests.support.local_table import LocalTable, Op

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("day", pa.string())])


class Handle:
    """Goes on from what it knows, as `HoodieTable` does."""

    def __init__(self, storage: Storage) -> None:
        self.storage, self.options = storage, LocalTable(storage)._write_options()
        self._state = TableState.load(storage)

    @property
    def state(self) -> TableState:
        self._state = self._state.advance()
        return self._state

    def read(self, filters: pc.Expression | None = None) -> list[int]:
        def ask(now: TableState) -> pa.Table:
            return read_arrow(plan_query(now, Query(filters=filters), {}), columns=["id"], meta_columns=False, runner=LocalRunner(1))

        return sorted(at_one_moment(self.state, ask).column("id").to_pylist())

    def upsert(self, *ids: int, ts: int, day: str) -> None:
        execute_write(self.storage, WriteRequest(Op.UPSERT, ArrowInput(rows(ids, ts, day)), self.options), LocalRunner(1), self._state)


def rows(ids: tuple[int, ...], ts: int, day: str) -> pa.Table:
    return pa.table({"id": list(ids), "ts": [ts] * len(ids), "day": [day] * len(ids)}, schema=SCHEMA)


def made(storage: Storage, kind: str = "cow") -> LocalTable:
    create_table(storage, TableSpec("t", SCHEMA, ("id",), ("ts",), ("day",), kind, properties={"hoodie.index.type": "GLOBAL_SIMPLE"}))
    table = LocalTable(storage)
    table.upsert(rows((1, 2, 3), 1, "a"))
    table.upsert(rows((101, 102, 103, 104), 1, "b"))
    return table


def base_of(table: LocalTable, day: str) -> str:
    piece = table.state.view.latest_slices(f"day={day}")[0]
    assert piece.base_file is not None
    return piece.base_file.path


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("filters", [None, pc.field("id") == 2])
def test_a_base_file_in_the_place_of_another_is_found_though_its_listing_is_kept(
    tmp_path: Path, opened: bool, filters: pc.Expression | None
) -> None:
    storage = LocalStorage(str(tmp_path / f"t{opened}"))
    table = made(storage)
    handle = Handle(storage)
    handle.state.view.latest_slices()
    if opened:
        assert handle.read() == [1, 2, 3, 101, 102, 103, 104]
    other = storage.read(base_of(table, "b"))
    assert len(other) != len(storage.read(base_of(table, "a")))
    storage.overwrite(base_of(table, "a"), other)
    with pytest.raises(CorruptFileError):
        handle.read(filters if not opened else None)


def test_a_write_finds_a_base_file_in_the_place_of_another_though_its_listing_is_kept(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path / "t"))
    table = made(storage)
    handle = Handle(storage)
    handle.upsert(50, ts=2, day="c")
    storage.overwrite(base_of(table, "a"), storage.read(base_of(table, "b")))
    with pytest.raises(CorruptFileError):
        Handle(storage).upsert(2, ts=3, day="c")
    with pytest.raises(CorruptFileError):
        handle.upsert(2, ts=3, day="c")


def test_a_file_of_a_partition_that_is_listed_each_time_is_missed() -> None:
    storage = MemoryStorage()
    table = made(storage, "mor")
    table.upsert(rows((1,), 2, "a"))
    base, log = base_of(table, "a"), table.state.view.latest_slices("day=a")[0].log_files[0].path
    handle = Handle(storage)
    storage.create(f"{log.rpartition('.log.')[0]}.log.7_9-9-9", storage.read(log))  # no commit named it
    check_complete(handle.state)
    storage.delete(base)
    with pytest.raises(MissingFileError):
        check_complete(handle.state)


def test_a_lost_file_that_one_write_missed_the_next_ones_miss_until_it_is_back(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path / "t"))
    table = made(storage)
    handle = Handle(storage)
    handle.upsert(50, ts=2, day="c")
    handle.upsert(51, ts=2, day="c")
    content = storage.read(path := base_of(table, "a"))
    storage.delete(path)
    for number, day in ((90, "a"), (2, "b"), (2, "b")):  # in no file: only the partition that it goes to is looked at
        with pytest.raises(MissingFileError):
            handle.upsert(number, ts=3, day=day)
    storage.create(path, content)
    handle.upsert(2, ts=3, day="b")
    assert handle.read() == [1, 2, 3, 50, 51, 101, 102, 103, 104]


@pytest.mark.parametrize("broken", ["gone", "torn"])
def test_a_table_is_written_and_read_by_who_saw_it_damaged_once_it_is_whole_again(broken: str) -> None:
    storage = MemoryStorage()
    table = made(storage)
    content = storage.read(path := base_of(table, "a"))
    storage.delete(path)
    if broken == "torn":
        storage.create(path, content[:-10])
    handle = Handle(storage)
    handle.state.view.latest_slices()
    for _ in range(2):
        with pytest.raises((MissingFileError, CorruptFileError)):
            handle.upsert(2, ts=3, day="b")
        with pytest.raises((MissingFileError, CorruptFileError)):
            handle.read()
    storage.overwrite(path, content)
    assert handle.read() == [1, 2, 3, 101, 102, 103, 104]
    handle.upsert(2, ts=3, day="b")
    assert handle.read() == [1, 2, 3, 101, 102, 103, 104]


def test_a_commit_whose_file_was_changed_is_read_again() -> None:
    storage = MemoryStorage()
    made(storage)
    state = TableState.load(storage)
    last = state.timeline.completed().writes().instants[-1]
    state.commit_metadata(last)
    storage.overwrite(f"{state.format.timeline_folder}/{state.format.file_name(last)}", b"{")
    for now in (state.refresh(), state.advance()):
        with pytest.raises(CorruptInstantError):
            now.commit_metadata(last)


def test_a_log_that_a_query_of_base_files_does_not_need_is_missed_by_the_snapshot_after_it() -> None:
    storage = MemoryStorage()
    table = made(storage, "mor")
    table.upsert(rows((1,), 2, "a"))
    storage.delete(table.state.view.latest_slices("day=a")[0].log_files[0].path)
    handle = Handle(storage)
    plan_query(handle.state, Query(kind="read_optimized"), {})
    plan_query(handle.state, Query(kind="read_optimized", filters=pc.field("day") == "a"), {})
    with pytest.raises(MissingFileError):
        handle.read()


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_plan_of_a_known_table_asks_only_of_what_was_written_since(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    storage = MemoryStorage()
    made(storage, kind)
    handle = Handle(storage)
    assert handle.read() == [1, 2, 3, 101, 102, 103, 104]
    handle.upsert(101, ts=2, day="b")
    asked: list[str] = []

    def told(group: FileGroupId, instant_time: str, path: str) -> ExpectedFile:
        asked.append(group.partition_path)
        return ExpectedFile(group, instant_time, path)

    with monkeypatch.context() as patched:
        patched.setattr(from_commits, "ExpectedFile", told)
        assert handle.read() == [1, 2, 3, 101, 102, 103, 104]
        assert set(asked) == {"day=b"}
        asked.clear()
        assert handle.read(pc.field("id") > 100) == [101, 102, 103, 104]
        assert asked == []
