"""What a small write costs follows what it touches, not how large the table is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.commit.expected import ExpectedState
from lakehouse_engine.errors import ChangedSinceReadError, CorruptFileError, CorruptInstantError, MissingFileError
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.storage.local import LocalStorage

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("day", pa.string())])
CALLS = ("list", "walk", "unpublished", "head", "read", "create", "overwrite", "delete", "delete_tree", "open_input", "open_output")
INDEXES = {
    "simple": {"hoodie.index.type": "SIMPLE"},
    "bloom": {"hoodie.index.type": "BLOOM"},
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
}


@pytest.fixture(autouse=True)
def route() -> str:
    """Small writes: in the place of the folder's fixture, by which every other test plans them as large ones."""
    return "SMALL"


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Calls of the local storage by their verb."""
    found: Counter[str] = Counter()
    with monkeypatch.context() as patched:
        for verb in CALLS:
            original = getattr(LocalStorage, verb)

            def call(self: LocalStorage, *given: object, _original: object = original, _verb: str = verb) -> object:
                found[_verb] += 1
                return _original(self, *given)  # type: ignore[operator]

            patched.setattr(LocalStorage, verb, call)
        yield found


def rows(ids: range | list[int], days: int, ts: int) -> pa.Table:
    return pa.table({"id": [*ids], "ts": [ts] * len(ids), "day": [f"d{number % days:04d}" for number in ids]}, schema=SCHEMA)


def table_of(folder: Path, kind: str, index: str, days: int) -> str:
    lake = Lakehouse(str(folder / f"{days}"))
    lake.create_schema("s")
    table = lake.create_table(
        "s.t", schema=SCHEMA, record_key=["id"], ordering_fields=["ts"], partition_by=["day"], table_type=kind, properties=INDEXES[index]
    )
    table.upsert(rows(range(days), days, 0))
    table.upsert(rows([0, 1], days, 1))
    return table.path


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_small_write_makes_as_many_calls_whatever_the_number_of_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, index: str
) -> None:
    costs: dict[str, list[dict[str, int]]] = {}
    for days in (8, 80):
        table = HoodieTable.open(table_of(tmp_path, kind, index, days))
        batch = rows([0, 1], days, 2)
        writes = {
            "upsert": lambda: table.upsert(batch),  # noqa: B023
            "insert": lambda: table.insert(batch.set_column(0, "id", pa.array([500, 501]))),  # noqa: B023
            "delete": lambda: table.delete(batch.slice(0, 1).select(["id", "day"])),  # noqa: B023
        }
        for name, write in writes.items():
            with counted(monkeypatch) as calls:
                assert write().instant is not None
            costs.setdefault(name, []).append(dict(calls))
    for few, many in costs.values():
        assert many == few


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_table_that_is_known_is_written_and_read_by_what_is_new_whatever_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, index: str
) -> None:
    costs: dict[str, list[dict[str, int]]] = {}
    for days in (8, 80):
        table = HoodieTable.open(table_of(tmp_path, kind, "simple", days), options={"hoodie.index.type": index})
        assert table.upsert(rows([0, 1], days, 2)).updates == 2
        actions = {
            "upsert": lambda: table.upsert(rows([0, 1], days, 3)),  # noqa: B023
            "move": lambda: table.upsert(rows([0, 1], days, 4).set_column(2, "day", pa.array(["d0001", "d0000"]))),  # noqa: B023
            "insert": lambda: table.upsert(rows([0, 1], days, 5).set_column(0, "id", pa.array([5000, 5001]))),  # noqa: B023
            "delete": lambda: table.delete(rows([0], days, 6).select(["id"])),  # noqa: B023
            "plan": lambda: plan_query(table.state, Query()),  # noqa: B023
        }
        for name, act in actions.items():
            with counted(monkeypatch) as calls:
                act()
            costs.setdefault(name, []).append(dict(calls))
        fresh = HoodieTable.open(table.path).to_arrow().sort_by("id")
        assert table.to_arrow().sort_by("id") == fresh
        assert fresh.num_rows == days + 1
    for few, many in costs.values():
        assert many == few


def test_a_session_lists_a_table_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(table_of(tmp_path, "cow", "simple", 40))
    lake = Lakehouse(str(path.parent.parent))
    assert lake.table("s.t").to_arrow().num_rows == 40
    HoodieTable.open(str(path)).upsert(rows([3, 4], 40, 7))
    with counted(monkeypatch) as calls:
        plan_query(lake.table("s.t").state, Query())
    assert calls["list"] < 20
    assert lake.table("s.t").to_arrow(filters=pc.field("ts") == 7).num_rows == 2


def test_a_file_that_goes_without_a_word_is_named_by_who_knew_the_table(tmp_path: Path) -> None:
    path = table_of(tmp_path, "cow", "simple", 4)
    table = HoodieTable.open(path)
    assert table.to_arrow().num_rows == 4
    lost = next((Path(path) / "day=d0003").glob("*.parquet"))
    lost.unlink()
    with pytest.raises(MissingFileError, match=lost.name):
        table.to_arrow()
    for write in (table.upsert, table.insert):
        with pytest.raises(MissingFileError, match=lost.name):
            write(rows([3], 4, 5))
    with pytest.raises(MissingFileError, match=lost.name):
        table.upsert(rows([3], 4, 5).set_column(2, "day", pa.array(["d0001"])), options={"hoodie.index.type": "GLOBAL_SIMPLE"})


def test_a_file_that_is_lost_is_named_by_a_write_to_its_partition_and_by_every_read(tmp_path: Path) -> None:
    path = table_of(tmp_path, "cow", "simple", 4)
    lost = next((Path(path) / "day=d0003").glob("*.parquet"))
    lost.unlink()
    table = HoodieTable.open(path)
    with pytest.raises(MissingFileError, match=lost.name):
        table.upsert(rows([3], 4, 5))
    with pytest.raises(MissingFileError, match=lost.name):
        table.insert(rows([7], 4, 5))
    with pytest.raises(MissingFileError, match=lost.name):
        table.delete(rows([3], 4, 5).select(["id", "day"]))
    with pytest.raises(MissingFileError, match=lost.name):
        table.to_arrow()
    before = len(table.history())
    assert table.upsert(rows([0], 4, 5)).updates == 1
    assert len(table.history()) == before + 1
    with pytest.raises(MissingFileError, match=lost.name):
        table.to_arrow()


def test_a_global_index_asks_for_every_file(tmp_path: Path) -> None:
    path = table_of(tmp_path, "cow", "simple", 4)
    lost = next((Path(path) / "day=d0002").glob("*.parquet"))
    lost.write_bytes(lost.read_bytes()[:-1])
    table = HoodieTable.open(path)
    assert table.insert(rows([8], 4, 5)).inserts == 1
    with pytest.raises(CorruptFileError, match=lost.name):
        table.upsert(rows([0], 4, 5), options={"hoodie.index.type": "GLOBAL_SIMPLE"})


def test_commits_are_read_once_by_a_process_and_again_when_their_files_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = table_of(tmp_path, "mor", "bucket", 4)
    costs = []
    for ts in range(2, 8):
        with counted(monkeypatch) as calls:
            HoodieTable.open(path).upsert(rows([0, 1], 4, ts))
        costs.append(calls["read"])
    assert len(set(costs[1:])) == 1
    first = min((Path(path) / ".hoodie").glob("*.deltacommit"))
    text = first.read_bytes()
    first.write_bytes(text[:-2])
    with pytest.raises(CorruptInstantError, match=first.name):
        HoodieTable.open(path).to_arrow()
    first.write_bytes(text)
    assert HoodieTable.open(path).to_arrow().num_rows == 4


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_rows_that_say_where_they_are_are_replaced_without_opening_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    opened = []
    for days in (8, 80):
        table = HoodieTable.open(table_of(tmp_path, kind, "simple", days))
        stored = table.to_arrow(meta_columns=True)
        gone = stored.filter(pc.is_in(stored["id"], pa.array([0, 3])))
        with counted(monkeypatch) as calls:
            result = table.replace_rows(rows([900], days, 5), replaced=gone)
        assert (result.deletes, result.inserts) == (2, 1)
        assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2, *range(4, days), 900]
        opened.append(calls["open_input"])
    assert opened[0] == opened[1]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_rows_that_are_not_where_they_say_are_replaced_where_they_are(tmp_path: Path, kind: str) -> None:
    table = HoodieTable.open(table_of(tmp_path, kind, "simple", 8))
    stored = table.to_arrow(meta_columns=True)
    gone = stored.filter(pc.is_in(stored["id"], pa.array([0, 3, 5])))
    path = gone.schema.get_field_index("_hoodie_partition_path")
    elsewhere = pa.array([None, "day=d0004", "no such partition"])
    moved = gone.set_column(path, "_hoodie_partition_path", elsewhere)
    name = gone.schema.get_field_index("_hoodie_file_name")
    assert table.replace_rows(rows([900], 8, 5), replaced=moved).deletes == 3
    again = table.to_arrow(meta_columns=True)
    gone = again.filter(pc.is_in(again["id"], pa.array([1, 7]))).set_column(name, "_hoodie_file_name", pa.array([None, "else"]))
    assert table.replace_rows(rows([901], 8, 5), replaced=gone).deletes == 2
    assert sorted(table.to_arrow()["id"].to_pylist()) == [2, 4, 6, 900, 901]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_write_of_nothing_makes_no_instant_and_leaves_the_table_in_order_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    table = HoodieTable.open(table_of(tmp_path, kind, "simple", 4))
    newest = table.timeline.completed().writes().last()
    nothing = rows([], 4, 2)
    for write in (table.upsert, table.insert, lambda none: table.delete(none.select(["id", "day"]))):
        with counted(monkeypatch) as calls:
            result = write(nothing)
        assert result.instant is None
        assert result.previous_instant == newest.requested_time
        assert not calls.keys() & {"create", "overwrite", "delete", "open_output"}
    dead = Path(table.path, ".hoodie", f"{int(newest.requested_time) + 1}.commit.requested")
    dead.touch()
    assert table.upsert(nothing).instant is None
    assert not dead.exists()


def test_a_write_of_nothing_says_when_what_was_read_for_it_has_changed(tmp_path: Path) -> None:
    table = HoodieTable.open(table_of(tmp_path, "cow", "simple", 4))
    read = table.timeline.completed().writes().last()
    expected = ExpectedState.of(table.state)
    table.upsert(rows([3], 4, 5))
    with pytest.raises(ChangedSinceReadError):
        table.upsert(rows([], 4, 6), expected=expected)
    assert table.upsert(rows([], 4, 6), expected_instant=read.requested_time).instant is None  # of no partition


def test_a_write_of_nothing_that_looks_everywhere_says_when_anything_has_changed(tmp_path: Path) -> None:
    table = HoodieTable.open(table_of(tmp_path, "cow", "simple", 4), options={"hoodie.index.type": "GLOBAL_SIMPLE"})
    read = table.timeline.completed().writes().last()
    table.upsert(rows([3], 4, 5))
    with pytest.raises(ChangedSinceReadError):
        table.upsert(rows([], 4, 6), expected_instant=read.requested_time)
