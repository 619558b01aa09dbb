"""`drop schema ... cascade` beside others who write, make and move tables in the schema; in directories and in a bucket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.catalog import schema_drop
from lakehouse_engine.catalog.atomic_create import make_filled
from lakehouse_engine.catalog.functions import Functions, Language, StoredFunction
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.catalog.schema_drop import SchemaDrop
from lakehouse_engine.errors import (
    LakehouseError,
    LockTimeoutError,
    RelationNotFoundError,
    StorageError,
    TableError,
    TableExistsError,
    TableNotFoundError,
)
from lakehouse_engine.model.write_stats import WriteResult
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.lock import LOCK_FILE, TableLock
from lakehouse_engine.write.create import TableSpec, create_table
from tests.crash.requests import Bucket, buckets

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])
OPTIONS = {"hoodie.write.lock.wait_time_ms": "50"}


def rows(value: int) -> pa.Table:
    return pa.table({"id": [1, 2], "v": [value, value]}, schema=SCHEMA)


@pytest.fixture(params=["directory", "bucket"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lakehouse]:
    """With a table, a view and a function in the schema `r`."""
    if request.param == "directory":
        lake = Lakehouse(str(tmp_path / "lake"), options=OPTIONS)
        yield _furnished(lake)
        return
    with buckets():
        storage = Bucket().storage
        yield _furnished(Lakehouse(storage.root, options=OPTIONS, storage_options=dict(storage.options)))


def _furnished(lake: Lakehouse) -> Lakehouse:
    lake.catalog.create_schema("r", comment="kept")
    new_table(lake, "r.old").upsert(rows(0))
    lake.create_view("r.v", "select 1 as id")
    lake.catalog.set_comments(RelationName("r", "v"), "of the view")
    Functions(lake.catalog).put(RelationName("r", "f"), StoredFunction(Language.SQL, (), "int", "1"))
    return lake


def new_table(lake: Lakehouse, name: str) -> HoodieTable:
    return lake.create_table(name, schema=SCHEMA, record_key=["id"])


def files(lake: Lakehouse) -> list[str]:
    return [entry.path for entry in lake.catalog.storage.walk()]


def _between(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], times: int = 1) -> None:
    """`act` comes after what was listed is deleted, and before the folder is."""
    remove, left = SchemaDrop._remove, [act] * times

    def then(self: SchemaDrop) -> bool:
        if left:
            left.pop()()
        return remove(self)

    monkeypatch.setattr(SchemaDrop, "_remove", then)


def _elsewhere(act: Callable[[], object]) -> BaseException | None:
    """What `act` raises in a thread of its own, which does not hold the locks of this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(act).exception()


def test_a_schema_goes_with_all_that_it_holds(lake: Lakehouse) -> None:
    with pytest.raises(TableError, match="1 tables and 1 views"):
        lake.drop_schema("r")
    assert lake.drop_schema("R", cascade=True)
    assert (lake.schemas(), files(lake)) == ([], [])
    assert not lake.drop_schema("r", cascade=True, if_exists=True)


def test_a_table_that_is_made_and_filled_meanwhile_goes_whole_and_under_its_lock(
    lake: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was deleted with the folder, without its lock."""
    seen: list[object] = []
    take = schema_drop.take_away

    def watched(storage: Storage, name: RelationName, *rest: Callable[[], bool], lock_timeout_ms: int) -> bool:
        seen.append(name.name)
        return take(storage, name, *rest, lock_timeout_ms=lock_timeout_ms)

    monkeypatch.setattr(schema_drop, "take_away", watched)
    _between(monkeypatch, lambda: seen.append(new_table(lake, "r.new").upsert(rows(1)).inserts))
    assert lake.drop_schema("r", cascade=True)
    assert [one for one in seen if isinstance(one, int) or one in ("old", "new")] == ["old", 2, "new"]
    assert (lake.schemas(), files(lake)) == ([], [])


def test_without_cascade_what_is_made_meanwhile_stays_with_the_schema(lake: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.drop_table("r.old")
    lake.drop_view("r.v")

    def come() -> None:
        new_table(lake, "r.new").upsert(rows(1))
        lake.catalog.set_comments(RelationName("r", "new"), "mine")

    _between(monkeypatch, come)
    with pytest.raises(TableError, match="holds 1 tables"):
        lake.drop_schema("r")
    assert lake.table("r.new").to_arrow().num_rows == 2
    assert (lake.catalog.schema_comment("r"), lake.catalog.comments(RelationName("r", "new")).comment) == ("kept", "mine")


def test_a_schema_in_which_others_make_tables_again_and_again_is_refused_and_the_last_table_stays(
    lake: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_drop, "_ROUNDS", 3)
    monkeypatch.setattr(schema_drop, "_PAUSE", 0.0)
    _between(monkeypatch, lambda: new_table(lake, "r.again"), times=3)
    with pytest.raises(TableError, match="in each of 3 rounds"):
        lake.drop_schema("r", cascade=True)
    assert lake.tables("r") == ["r.again"]
    assert lake.table("r.again").upsert(rows(1)).inserts == 2


def test_a_table_that_somebody_writes_is_waited_for_and_stays(lake: Lakehouse) -> None:
    table = lake.table("r.old")
    with TableLock(table.storage):
        refused = _elsewhere(lambda: lake.drop_schema("r", cascade=True))
    assert isinstance(refused, LockTimeoutError)
    assert "r/old" in str(refused)
    assert lake.table("r.old").to_arrow().num_rows == 2


def test_a_lock_that_was_left_is_not_taken_from_whoever_makes_a_table_there(lake: Lakehouse) -> None:
    """A dropped table's lock file: the folder was deleted with it, and two writers had "the" lock."""
    place = RelationName("r", "x")
    with TableLock(lake.catalog.storage, file=f"{place.path}/{LOCK_FILE}") if _is_bucket(lake) else _left(lake, place):
        refused = _elsewhere(lambda: lake.drop_schema("r", cascade=True))
        assert isinstance(refused, LockTimeoutError)
    assert lake.drop_schema("r", cascade=True)
    assert files(lake) == []


def _is_bucket(lake: Lakehouse) -> bool:
    return lake.catalog.storage.local_path() is None


def _left(lake: Lakehouse, place: RelationName) -> TableLock:
    lake.catalog.storage.create(f"{place.path}/{LOCK_FILE}", b"")
    return TableLock(lake.catalog.storage, file=f"{place.path}/{LOCK_FILE}")


def test_two_drop_one_schema_and_both_are_told_that_it_is_gone(lake: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    _between(monkeypatch, lambda: lake.drop_schema("r", cascade=True))
    assert lake.drop_schema("r", cascade=True)
    assert files(lake) == []


def test_what_is_being_made_in_a_schema_gets_no_name_once_the_schema_is_dropped(tmp_path: Path) -> None:
    lake = _furnished(Lakehouse(str(tmp_path), options=OPTIONS))

    def fill(place: Storage, name: RelationName) -> WriteResult:
        create_table(place, TableSpec(name.name, SCHEMA, ["id"]))
        result = HoodieTable(place).bulk_insert(rows(1))
        with pytest.raises(TableError, match="others make 1 tables"):
            lake.drop_schema("r")
        lake.drop_schema("r", cascade=True)
        return result

    with pytest.raises(StorageError, match="was removed meanwhile; nothing is changed"):
        make_filled(lake.catalog, RelationName("r", "new"), fill, lock_timeout_ms=1000)
    assert lake.tables() == []


def test_tables_are_made_beside_a_schema_that_is_dropped_or_refused_typed(tmp_path: Path) -> None:
    """Whatever was acknowledged was whole, and is dropped whole."""

    def makes(number: int) -> list[str]:
        lake = Lakehouse(str(tmp_path))
        return [made(lake, f"r.t{number}_{turn}") for turn in range(6)]

    def made(lake: Lakehouse, name: str) -> str:
        try:
            table = new_table(lake, name)
            assert table.upsert(rows(1)).inserts == 2
            assert table.upsert(rows(2)).updates == 2
        except TableNotFoundError:
            return "dropped"
        return "whole"

    def drops() -> None:
        lake = Lakehouse(str(tmp_path))
        for _ in range(8):
            lake.drop_schema("r", cascade=True, if_exists=True)

    with ThreadPoolExecutor(3) as pool:
        makers = [pool.submit(makes, number) for number in range(2)]
        pool.submit(drops).result()
        for one in makers:
            assert set(one.result()) <= {"whole", "dropped"}
    lake = Lakehouse(str(tmp_path))
    for table in lake.tables():
        assert lake.table(table).to_arrow().num_rows == 2
    lake.drop_schema("r", cascade=True, if_exists=True)
    assert files(lake) == []


# folders without properties

REMAINS = ("r/t/.hoodie/20260101000000000.commit", "r/t/part/file.parquet")


@pytest.fixture
def half(lake: Lakehouse) -> Lakehouse:
    """`r.t` is what a deletion left that was cut off."""
    for path in REMAINS:
        lake.catalog.storage.create(path, b"x")
    return lake


def test_what_is_left_of_a_table_is_told_by_whoever_makes_or_repairs_one(half: Lakehouse) -> None:
    with pytest.raises(TableExistsError, match=r"what is left of a table without \.hoodie/hoodie\.properties.*dropping the table deletes"):
        new_table(half, "r.t")
    with pytest.raises(TableExistsError, match="what is left of a table"):
        half.clone("r.old", "r.t")
    with pytest.raises(TableNotFoundError, match="put it back from a backup, or drop the table"):
        half.repair_table("r.t")
    with pytest.raises(TableError, match="what is left of r/t"):
        half.drop_schema("r")
    assert {*REMAINS} <= {*files(half)}


@pytest.mark.parametrize("if_exists", [False, True])
def test_what_is_left_of_a_table_is_dropped_as_one(half: Lakehouse, if_exists: bool) -> None:
    assert half.drop_table("R.t", if_exists=if_exists)
    assert not half.drop_table("r.t", if_exists=True)
    with pytest.raises(TableNotFoundError):
        half.drop_table("r.t")
    assert new_table(half, "r.t").upsert(rows(1)).inserts == 2


def test_a_schema_goes_with_what_is_left_of_a_table(half: Lakehouse) -> None:
    assert half.drop_schema("r", cascade=True)
    assert files(half) == []


def test_properties_that_were_removed_are_put_back_and_the_table_is_one_again(lake: Lakehouse) -> None:
    lake.catalog.storage.delete("r/old/.hoodie/hoodie.properties")
    with pytest.raises(TableExistsError, match="`repair` puts them back"):
        new_table(lake, "r.old")
    lake.repair_table("r.old")
    assert lake.table("r.old").to_arrow().num_rows == 2


@pytest.mark.parametrize("left", [".hoodie/.temp/staged-1/rows.arrow", ".hoodie/.heartbeat/20260101000000000", ".hoodie/.locks/waiting/1"])
def test_what_a_writer_leaves_who_met_a_drop_is_in_nobodys_way(lake: Lakehouse, left: str) -> None:
    for name in ("t", "u", "w"):
        lake.catalog.storage.create(f"r/{name}/{left}", b"{}")
    assert not lake.drop_table("r.t", if_exists=True)
    assert new_table(lake, "r.t").upsert(rows(1)).inserts == 2
    assert lake.clone("r.old", "r.u") is not None
    if not _is_bucket(lake):
        lake.rename_table("r.t", "r.w")
        assert lake.table("r.w").config.name == "w"
    assert lake.drop_schema("r", cascade=True)
    assert files(lake) == []


def test_schemas_that_go_while_they_are_looked_at_are_told_as_gone(lake: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    read = type(lake.catalog.storage).read

    def after_the_drop(self: Storage, path: str) -> bytes:
        with monkeypatch.context() as patched:
            patched.setattr(type(self), "read", read)
            Lakehouse(lake.warehouse, storage_options=dict(getattr(self, "options", ()))).drop_schema("r", cascade=True, if_exists=True)
        return read(self, path)

    monkeypatch.setattr(type(lake.catalog.storage), "read", after_the_drop)
    with pytest.raises(RelationNotFoundError, match=r"r\.v is not in the warehouse"):
        lake.view("r.v")
    assert Functions(lake.catalog).find(("r", "f")) is None
    with pytest.raises(LakehouseError):
        lake.table("r.old")
