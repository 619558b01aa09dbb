"""New tables that are filled where nobody sees them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.catalog.atomic_create import Fill, MayGo, made_empty, make_filled
from lakehouse_engine.catalog.catalog import Catalog, RelationKind
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.errors import CommitOutcomeUnknownError, LockTimeoutError, SqlError, StorageError, TableExistsError, WriteError
from lakehouse_engine.model.write_stats import WriteResult
from lakehouse_engine.options import LockOptions
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline import lock
from lakehouse_engine.timeline.locks import mounts
from lakehouse_engine.timeline.locks.provider import LockProvider
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def lake(tmp_path: Path) -> Lakehouse:
    return Lakehouse(str(tmp_path))


def filling(*ids: int, then: Callable[[], object] = lambda: None) -> Fill:
    """The table `ids`; `then` is what happens when it is filled, and has no name yet."""

    def fill(place: Storage, name: RelationName) -> WriteResult:
        create_table(place, TableSpec(name=name.name, schema=SCHEMA, record_key=("id",)))
        result = HoodieTable(place).bulk_insert(pa.table({"id": list(ids)}, schema=SCHEMA))
        then()
        return result

    return fill


def make(lake: Lakehouse, fill: Fill, may_go: MayGo | None = None, name: str = "s.t") -> RelationName:
    return make_filled(lake.catalog, RelationName.parse(name), fill, may_go=may_go, lock_timeout_ms=1000)[0]


def ids(lake: Lakehouse) -> list[int]:
    found: list[int] = lake.table("s.t").to_arrow().column("id").sort().to_pylist()
    return found


def anything_goes(name: RelationName, kind: RelationKind) -> None:
    """Whatever has the name may be replaced."""


def hidden(lake: Lakehouse) -> list[str]:
    return [entry.name for entry in lake.catalog.storage.list("s/.staged")]


def test_it_is_there_when_it_is_whole(lake: Lakehouse) -> None:
    seen = []
    assert make(lake, filling(1, 2, then=lambda: seen.append((lake.exists("s.t"), lake.tables())))) == RelationName("s", "t")
    assert seen == [(False, [])]
    assert ids(lake) == [1, 2]
    assert lake.table("s.t").config.name == "t"
    assert hidden(lake) == []


def test_what_cannot_be_filled_leaves_nothing(lake: Lakehouse) -> None:
    def fail() -> None:
        raise SqlError("no")

    with pytest.raises(SqlError, match="no"):
        make(lake, filling(1, then=fail))
    assert lake.schemas() == []
    lake.create_schema("s")
    with pytest.raises(SqlError, match="no"):
        make(lake, filling(1, then=fail))
    assert (lake.tables("s"), hidden(lake)) == ([], [])


def test_a_commit_that_was_not_answered_is_of_no_table(lake: Lakehouse) -> None:
    def unanswered() -> None:
        raise CommitOutcomeUnknownError("look at the timeline")

    with pytest.raises(WriteError, match=r"s\.t was not made"):
        make(lake, filling(1, then=unanswered))
    assert lake.tables() == []


@pytest.mark.parametrize("replaces", [False, True])
def test_a_killed_process_leaves_no_table_and_the_next_removes_its_files(lake: Lakehouse, replaces: bool) -> None:
    lake.create_schema("s")
    if replaces:
        make(lake, filling(7))
    script = (
        "import os; from lakehouse_engine import Lakehouse; from tests.unit.catalog.test_making import anything_goes, filling, make;"
        f"make(Lakehouse({lake.warehouse!r}), filling(1, then=lambda: os._exit(9)), anything_goes)"
    )
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
    assert done.returncode == 9
    assert len(hidden(lake)) == 2
    assert lake.tables("s") == (["s.t"] if replaces else [])
    assert not replaces or ids(lake) == [7]
    make(lake, filling(2), anything_goes)
    assert ids(lake) == [2]
    assert hidden(lake) == []


@pytest.mark.parametrize("may_go", [None, anything_goes])
def test_a_name_that_is_taken_meanwhile(lake: Lakehouse, may_go: MayGo | None) -> None:
    def other() -> None:
        make(lake, filling(9))

    if may_go is None:
        with pytest.raises(TableExistsError, match="meanwhile"):
            make(lake, filling(1, then=other))
        assert ids(lake) == [9]
    else:
        make(lake, filling(1, then=other), may_go)
        assert ids(lake) == [1]
    assert hidden(lake) == []


@pytest.mark.parametrize("may_go", [None, anything_goes])
def test_a_name_that_is_taken_at_the_last_moment(lake: Lakehouse, may_go: MayGo | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look whether the name is free and the move."""
    claim, others = Catalog.claim, [filling(9)]

    def claimed(catalog: Catalog, name: RelationName) -> RelationName:
        found = claim(catalog, name)
        while others:
            make(lake, others.pop())
        return found

    monkeypatch.setattr(Catalog, "claim", claimed)
    if may_go is None:
        with pytest.raises(TableExistsError, match="meanwhile"):
            make(lake, filling(1))
    else:
        make(lake, filling(1), may_go)
    assert ids(lake) == [9 if may_go is None else 1]
    assert hidden(lake) == []


def test_a_table_made_before_the_first_look_ends_is_replaced(lake: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    find, others = Catalog.find, [filling(9)]

    def found(catalog: Catalog, name: RelationName) -> tuple[RelationName, RelationKind] | None:
        known = find(catalog, name)
        while others:
            make(lake, others.pop())
        return known

    lake.create_schema("s")
    monkeypatch.setattr(Catalog, "find", found)
    make(lake, filling(1), anything_goes)
    assert ids(lake) == [1]


def test_a_view_that_comes_before_the_move_stays(lake: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Into a place with the locks of a dropped table, whose directory stays where the new one was."""
    lake.create_schema("s")
    leftover = Path(lake.warehouse) / "s" / "t" / lock.LOCK_FILE
    leftover.parent.mkdir(parents=True)
    leftover.touch()
    put, views = Catalog.put, ["select 1 as id"]

    def put_after(catalog: Catalog, folder: str, name: RelationName, *, swaps: bool = False) -> None:
        assert swaps
        monkeypatch.setattr(Catalog, "find", lambda *_: None)  # as it was when the view's maker looked
        while views:
            lake.create_view("s.t", views.pop())
        monkeypatch.undo()
        put(catalog, folder, name, swaps=swaps)

    monkeypatch.setattr(Catalog, "put", put_after)
    with pytest.raises(TableExistsError, match="meanwhile"):
        make(lake, filling(1), anything_goes)
    assert (lake.tables("s"), lake.views("s")) == ([], ["s.t"])


def test_a_name_that_is_taken_is_refused_before_anything_is_filled(lake: Lakehouse) -> None:
    make(lake, filling(1))
    with pytest.raises(TableExistsError, match=r"s\.t is there already"):
        make(lake, lambda *_: pytest.fail("filled"), name="S.T")


def test_what_takes_a_place_has_the_name_as_it_is_stored(lake: Lakehouse) -> None:
    make(lake, filling(1))
    assert make(lake, filling(2), anything_goes, name="S.T") == RelationName("s", "t")
    assert (lake.tables(), lake.table("s.t").config.name, ids(lake)) == (["s.t"], "t", [2])


def test_what_must_stay_stays(lake: Lakehouse) -> None:
    def stay(name: RelationName, kind: RelationKind) -> None:
        raise SqlError(f"{kind} {name} stays")

    make(lake, filling(1))
    lake.create_view("s.v", "select 1 as id")
    for name, kind in (("s.t", "table"), ("s.v", "view")):
        with pytest.raises(SqlError, match=f"{kind} {name} stays"):
            make(lake, filling(2), stay, name)
    assert ids(lake) == [1]
    assert lake.view("s.v").sql == "select 1 as id"
    assert hidden(lake) == []


def test_a_view_goes_with_its_comment(lake: Lakehouse) -> None:
    lake.create_view("s.t", "select 1 as id")
    lake.catalog.set_comments(RelationName("s", "t"), "old")
    make(lake, filling(2), anything_goes)
    assert (ids(lake), lake.views("s"), lake.catalog.comments(RelationName("s", "t")).comment) == ([2], [], None)


def test_what_somebody_removed_is_not_put_in_a_tables_place(lake: Lakehouse) -> None:
    make(lake, filling(1))
    with pytest.raises(StorageError, match="was removed meanwhile; nothing is changed"):
        make(lake, filling(2, then=lambda: shutil.rmtree(f"{lake.warehouse}/s/.staged")), anything_goes)
    assert ids(lake) == [1]


def test_locks_that_a_dropped_table_left_are_in_nobodys_way(lake: Lakehouse) -> None:
    leftover = Path(lake.warehouse) / "s" / "t" / ".hoodie" / ".locks"
    leftover.mkdir(parents=True)
    (leftover / "table.lock").write_text("")
    make(lake, filling(1))
    assert (ids(lake), hidden(lake)) == ([1], [])


NO_TABLE = "s/t that is no table; move it away first"
REMAINS = "s/t holds what is left of a table without .hoodie/hoodie.properties"


@pytest.mark.parametrize(
    ("stranger", "message"), [("note.txt", NO_TABLE), (".hoodie/20240101000000000.commit", REMAINS), (".hoodie/.aux/x", REMAINS)]
)
def test_a_directory_that_is_no_table_is_left_alone(lake: Lakehouse, stranger: str, message: str) -> None:
    """A new table would take the timeline in it for its own."""
    path = Path(lake.warehouse) / "s" / "t" / stranger
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(TableExistsError, match=message):
        make(lake, lambda *_: pytest.fail("filled"))
    with pytest.raises(TableExistsError, match=message):
        lake.create_table("s.t", schema=SCHEMA)
    assert path.read_text() == "mine"
    assert lake.tables() == []


@pytest.mark.parametrize("empty", [False, True])
def test_of_two_that_find_the_same_leftover_one_takes_its_place(lake: Lakehouse, monkeypatch: pytest.MonkeyPatch, empty: bool) -> None:
    """The other one would take away the table, and its rows, that is there by then."""
    leftover = Path(lake.warehouse) / "s" / "t" / ("" if empty else ".hoodie/.locks")
    leftover.mkdir(parents=True)
    both, exchange = threading.Barrier(2), LocalStorage.exchange_trees

    def slowly(storage: LocalStorage, first: str, second: str) -> None:
        time.sleep(0.2)
        exchange(storage, first, second)

    def attempt(number: int) -> int | None:
        try:
            make(lake, filling(number, then=both.wait))
        except TableExistsError:
            return None
        return number

    monkeypatch.setattr(LocalStorage, "exchange_trees", slowly)
    with ThreadPoolExecutor(2) as threads:
        made = [number for number in threads.map(attempt, (1, 2)) if number is not None]
    assert (ids(lake), hidden(lake)) == (made, [])


def test_an_empty_table_is_not_made_while_another_one_takes_the_same_leftover(lake: Lakehouse) -> None:
    leftover = Path(lake.warehouse) / "s" / "t" / ".hoodie" / ".locks"
    leftover.mkdir(parents=True)
    name = RelationName("s", "t")
    with made_empty(lake.catalog, name, LockOptions()), ThreadPoolExecutor(1) as elsewhere, pytest.raises(LockTimeoutError):
        elsewhere.submit(make, lake, filling(1)).result()
    assert (lake.tables(), hidden(lake)) == ([], [])


@pytest.mark.parametrize("empty", [False, True])
def test_the_new_table_says_how_its_place_is_locked(lake: Lakehouse, monkeypatch: pytest.MonkeyPatch, empty: bool) -> None:
    """Where the kernel's lock is not kept among machines no table is made without a word on that; what was left there says none."""
    monkeypatch.setattr(mounts, "_KNOWN", {})
    monkeypatch.setattr(mounts, "_mounts", lambda: f"bucket {lake.warehouse} fuse.s3fs rw 0 0\n")
    (Path(lake.warehouse) / "s" / "t" / ".hoodie" / ".locks").mkdir(parents=True)
    locked = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}

    def fill(place: Storage, name: RelationName) -> WriteResult:
        create_table(place, TableSpec(name=name.name, schema=SCHEMA, record_key=("id",), properties=locked))
        return HoodieTable(place).bulk_insert(pa.table({"id": [1]}, schema=SCHEMA))

    if empty:
        lake.create_table("s.t", schema=SCHEMA, properties=locked)
    else:
        make(lake, fill)
    assert ids(lake) == ([] if empty else [1])


class NoLock(LockProvider):
    """The kernel's, to another machine."""

    def __init__(self, *_: object) -> None: ...
    def acquire(self, *_: object) -> None: ...
    def release(self) -> None: ...
    def confirm(self) -> bool:
        return True

    def keep(self) -> None: ...
    def forget(self) -> None: ...


HUDI_LOCK = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"}


def with_hudi_lock(place: Storage, name: RelationName) -> WriteResult:
    create_table(place, TableSpec(name=name.name, schema=SCHEMA, record_key=("id",), properties=HUDI_LOCK))
    return HoodieTable(place).bulk_insert(pa.table({"id": [1]}, schema=SCHEMA))


def test_makers_on_two_machines_take_a_leftover_one_after_the_other(lake: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hudi's lock file is what the two have in common: each of them took the place, and the other one's table with it."""
    path = Path(lake.warehouse) / "s" / "t" / ".hoodie"
    (path / ".locks").mkdir(parents=True)
    monkeypatch.setattr(lock, "KernelLock", NoLock)
    monkeypatch.setattr(lock, "_key", lambda storage, file: f"{threading.get_ident()} {file}")
    with ThreadPoolExecutor(1) as elsewhere:
        with made_empty(lake.catalog, RelationName("s", "t"), LockOptions.read(HUDI_LOCK)):
            with pytest.raises(LockTimeoutError):
                elsewhere.submit(make, lake, with_hudi_lock).result()
            assert (path / "lock").exists()
        assert not (path / "lock").exists()
        elsewhere.submit(make, lake, with_hudi_lock).result()
    assert ids(lake) == [1]
    assert not (path / "lock").exists()


def test_a_lock_file_of_hudis_that_was_left_does_not_keep_the_name(lake: Lakehouse) -> None:
    path = Path(lake.warehouse) / "s" / "t" / ".hoodie"
    path.mkdir(parents=True)
    (path / "lock").write_text("{}")
    with pytest.raises(LockTimeoutError):  # whoever made it may be at work
        make(lake, with_hudi_lock)
    make(lake, filling(2))
    assert ids(lake) == [2]
    assert not (path / "lock").exists()


@pytest.mark.parametrize("view", [False, True])
def test_a_file_in_its_place_is_left_alone(lake: Lakehouse, view: bool) -> None:
    path = Path(lake.warehouse) / "s" / "t"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    if view:
        lake.create_view("s.t", "select 1 as id")
    with pytest.raises(TableExistsError, match="s/t that is no table; move it away first"):
        make(lake, lambda *_: pytest.fail("filled"), anything_goes)
    assert (path.read_text(), lake.views("s")) == ("mine", ["s.t"] if view else [])
    if not view:
        with pytest.raises(TableExistsError, match="s/t that is no table; move it away first"):
            lake.create_table("s.t", schema=SCHEMA)


def test_a_schema_goes_with_locks_that_a_dropped_table_left(lake: Lakehouse) -> None:
    leftover = Path(lake.warehouse) / "s" / "t" / ".hoodie" / ".locks"
    leftover.mkdir(parents=True)
    (leftover / "table.lock").write_text("")
    lake.drop_schema("s")
    assert lake.schemas() == []


def test_a_directory_that_comes_meanwhile_is_left_alone(lake: Lakehouse) -> None:
    path = Path(lake.warehouse) / "s" / "t" / "note.txt"

    def come() -> None:
        path.parent.mkdir(parents=True)
        path.write_text("mine")

    lake.create_schema("s")
    with pytest.raises(TableExistsError, match="move it away first"):
        make(lake, filling(1, then=come))
    assert (path.read_text(), hidden(lake)) == ("mine", [])
