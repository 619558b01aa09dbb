"""A warehouse directory as a catalog, on both storages."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.catalog.catalog import Catalog, RelationKind
from lakehouse_engine.catalog.names import RelationName, check_identifier, split_name
from lakehouse_engine.catalog.records import Comments, StoredView
from lakehouse_engine.errors import (
    LockTimeoutError,
    MetadataError,
    RelationNotFoundError,
    SqlError,
    TableError,
    TableExistsError,
    TableNotFoundError,
)
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.timeline.locks import kernel as lock_module

STORAGES: dict[str, Callable[[Path], Storage]] = {
    "local": lambda path: LocalStorage(str(path / "warehouse")),
    "memory": lambda path: MemoryStorage(),
}


@pytest.fixture(params=STORAGES)
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    return Catalog(STORAGES[request.param](tmp_path))


PROPERTIES = b"hoodie.table.name=x\nhoodie.table.type=COPY_ON_WRITE\nhoodie.table.version=6\n"


def name(text: str) -> RelationName:
    return RelationName.parse(text)


def make_table(catalog: Catalog, text: str) -> RelationName:
    stored = catalog.claim(name(text))
    catalog.storage.create(f"{stored.path}/.hoodie/hoodie.properties", PROPERTIES)
    catalog.storage.create(f"{stored.path}/part/file.parquet", b"data")
    return stored


def test_empty_warehouse_has_nothing(catalog: Catalog) -> None:
    assert (catalog.schemas(), catalog.tables(), catalog.views()) == ([], [], [])
    assert catalog.kind_of(("a", "b")) is None


def test_schema_is_created_listed_and_dropped(catalog: Catalog) -> None:
    assert catalog.create_schema("Sales", comment="c") == "Sales"
    assert catalog.create_schema("sales", if_not_exists=True) == "Sales"
    with pytest.raises(TableExistsError, match="Sales"):
        catalog.create_schema("SALES")
    assert (catalog.schemas(), catalog.schema_comment("sales")) == (["Sales"], "c")
    assert catalog.drop_schema("SALES")
    assert catalog.schemas() == []
    assert not catalog.drop_schema("sales", if_exists=True)
    with pytest.raises(RelationNotFoundError):
        catalog.drop_schema("sales")


def test_a_schema_in_whose_place_is_a_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "sales").write_text("not a folder")
    with pytest.raises(TableError, match=r"the schema sales cannot be made: there is a file of that name in .*; move it away"):
        Catalog(LocalStorage(str(tmp_path))).create_schema("sales", if_not_exists=True)
    assert (tmp_path / "sales").read_text() == "not a folder"


def test_table_is_found_without_regard_to_case_and_listed_in_its_own(catalog: Catalog) -> None:
    make_table(catalog, "Sales.Orders")
    assert catalog.tables() == [RelationName("Sales", "Orders")] == catalog.tables("SALES")
    assert catalog.find(name("sales.ORDERS")) == (RelationName("Sales", "Orders"), RelationKind.TABLE)
    assert catalog.kind_of(("spark_catalog", "sales", "orders")) is RelationKind.TABLE
    assert catalog.kind_of(("other", "sales", "orders")) is None
    assert catalog.kind_of(("orders",)) is None
    assert catalog.kind_of(("sales", "../orders")) is None
    assert catalog.claim(name("SALES.customers")) == RelationName("Sales", "customers")
    with pytest.raises(TableExistsError, match=r"Sales\.Orders is there already, as a table"):
        catalog.claim(name("sales.orders"))


def test_directory_without_properties_is_no_table(catalog: Catalog) -> None:
    catalog.storage.create("s/t/.hoodie/20260101.commit", b"x")
    assert catalog.tables() == []
    with pytest.raises(TableNotFoundError, match="not in the warehouse"):
        catalog.table(name("s.t"))
    catalog.storage.create("s/mine/file", b"x")
    with pytest.raises(TableNotFoundError, match="not in the warehouse"):
        catalog.drop_table(name("s.mine"))
    assert catalog.storage.read("s/mine/file") == b"x"


def test_dropped_table_leaves_nothing(catalog: Catalog) -> None:
    make_table(catalog, "s.t")
    catalog.set_comments(name("s.t"), "c", {"x": "y"})
    assert catalog.drop_table(name("S.T"))
    assert catalog.tables() == []
    assert [file.path for file in catalog.storage.walk()] == ["s/.schema.json"]
    assert not catalog.drop_table(name("s.t"), if_exists=True)
    make_table(catalog, "s.t")
    assert catalog.comments(name("s.t")) == Comments()


@pytest.mark.parametrize("call", range(1, 4))
def test_crash_while_a_table_is_dropped_leaves_all_of_it_or_no_table(call: int) -> None:
    inner = MemoryStorage()
    make_table(Catalog(inner), "s.t")
    files = {file.path for file in inner.walk()}
    with pytest.raises(SimulatedCrash):
        Catalog(FaultyStorage(inner, call, Fault.CRASH_BEFORE)).drop_table(name("s.t"))
    after = Catalog(inner)
    assert after.tables() == [] or {file.path for file in inner.walk()} == files
    after.drop_schema("s", cascade=True)
    assert inner.walk() == []


def exchanged(catalog: Catalog, may_go: Callable[[], None] = lambda: None) -> None:
    """Put what is in a hidden folder in the place of `s.t`."""
    catalog.exchange("s/.staged/new", name("s.t"), may_go=may_go, lock_timeout_ms=1000)


def make_staged(catalog: Catalog) -> None:
    catalog.storage.create("s/.staged/new/.hoodie/hoodie.properties", b"hoodie.table.name=x")
    catalog.storage.create("s/.staged/new/part/second.parquet", b"news")


def test_replaced_table_is_gone_and_the_new_one_has_its_name(catalog: Catalog) -> None:
    make_table(catalog, "s.t")
    make_staged(catalog)
    catalog.set_comments(name("s.t"), "c")
    with pytest.raises(SqlError, match="no"):
        exchanged(catalog, _refuse)
    assert catalog.tables() == [name("s.t")]
    assert catalog.storage.head("s/t/part/second.parquet") is None
    exchanged(catalog)
    assert catalog.tables() == [name("s.t")]
    assert catalog.storage.read("s/t/part/second.parquet") == b"news"
    assert catalog.comments(name("s.t")) == Comments()
    assert catalog.storage.head("s/.staged/new/part/second.parquet") is None


def _refuse() -> None:
    raise SqlError("no")


@pytest.mark.parametrize("call", range(1, 6))
def test_crash_while_a_table_is_replaced_leaves_one_of_the_two_under_its_name(call: int) -> None:
    inner = MemoryStorage()
    make_table(Catalog(inner), "s.t")
    make_staged(Catalog(inner))
    try:
        exchanged(Catalog(FaultyStorage(inner, call, Fault.CRASH_BEFORE)))
    except SimulatedCrash:
        replaced = inner.head("s/t/part/second.parquet") is not None
        assert replaced == (call > 1)
    assert name("s.t") in Catalog(inner).tables()


def test_a_reader_finds_one_of_the_two_tables_at_any_time(tmp_path: Path) -> None:
    catalog = Catalog(LocalStorage(str(tmp_path / "warehouse")))
    make_table(catalog, "s.t")
    missing, stop = [], threading.Event()

    def look() -> None:
        while not stop.is_set():
            if not (tmp_path / "warehouse/s/t/.hoodie/hoodie.properties").exists():
                missing.append(1)

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        for _ in range(30):
            make_staged(catalog)
            exchanged(catalog)
            catalog.storage.delete_tree("s/.staged/new")
        stop.set()
        looking.result()
    assert missing == []


def test_table_is_renamed_with_its_comments(catalog: Catalog) -> None:
    make_table(catalog, "s.t")
    make_table(catalog, "s.taken")
    catalog.create_schema("z")
    catalog.set_comments(name("s.t"), "c")
    with pytest.raises(TableExistsError):
        catalog.rename_table(name("s.t"), name("S.Taken"))
    with pytest.raises(RelationNotFoundError, match="no schema y"):
        catalog.rename_table(name("s.t"), name("y.t"))
    assert catalog.rename_table(name("s.t"), name("Z.New")) == RelationName("z", "New")
    assert catalog.tables() == [name("s.taken"), name("z.New")]
    assert catalog.comments(name("z.new")).comment == "c"
    assert catalog.storage.read("z/New/part/file.parquet") == b"data"
    assert b"hoodie.table.name=New" in catalog.storage.read("z/New/.hoodie/hoodie.properties")


def test_view_is_stored_replaced_and_dropped(catalog: Catalog) -> None:
    assert catalog.create_view(name("s.V"), "select 'é' as x", columns=(("x", None),), comment="c") == RelationName("s", "V")
    view = catalog.view(name("s.v"))
    assert (view.sql, view.columns, view.comment) == ("select 'é' as x", (("x", None),), "c")
    assert view.created.endswith("+00:00")
    with pytest.raises(TableExistsError, match="as a view"):
        catalog.create_view(name("s.v"), "select 2")
    assert catalog.create_view(name("s.v"), "select 2", if_not_exists=True) == RelationName("s", "V")
    assert catalog.view(name("s.v")).sql == "select 'é' as x"
    assert catalog.create_view(name("S.v"), "select 2", or_replace=True) == RelationName("s", "V")
    assert catalog.view(name("s.v")).sql == "select 2"
    assert (catalog.views("s"), catalog.tables("s")) == ([RelationName("s", "V")], [])
    assert catalog.drop_view(name("s.v"))
    assert not catalog.drop_view(name("s.v"), if_exists=True)
    with pytest.raises(RelationNotFoundError):
        catalog.drop_view(name("s.v"))


def test_name_is_a_table_or_a_view(catalog: Catalog) -> None:
    make_table(catalog, "s.t")
    catalog.create_view(name("s.v"), "select 1")
    for wrong in ("..", "a/b", "v" * 240):  # a name is made of parts that nobody looked at, as dbt's is
        with pytest.raises(SqlError, match="cannot be the name of a relation"):
            catalog.create_view(RelationName("s", wrong), "select 1", or_replace=True)
    with pytest.raises(TableExistsError, match="as a table"):
        catalog.create_view(name("s.T"), "select 1", or_replace=True)
    with pytest.raises(TableExistsError, match="as a view"):
        catalog.claim(name("s.V"))
    with pytest.raises(TableNotFoundError, match="is a view"):
        catalog.drop_table(name("s.v"), if_exists=True)
    with pytest.raises(RelationNotFoundError, match="is a table"):
        catalog.drop_view(name("s.t"), if_exists=True)


def test_view_is_renamed_with_its_comments(catalog: Catalog) -> None:
    catalog.create_view(name("s.v"), "select 1")
    catalog.set_comments(name("s.v"), "c")
    assert catalog.rename_view(name("s.v"), name("z.w")) == name("z.w")
    assert catalog.views() == [name("z.w")]
    assert (catalog.view(name("z.w")).sql, catalog.comments(name("z.w")).comment) == ("select 1", "c")


def test_schema_with_relations_is_dropped_only_with_cascade(catalog: Catalog) -> None:
    make_table(catalog, "s.t")
    catalog.create_view(name("s.v"), "select 1")
    with pytest.raises(TableError, match="1 tables and 1 views"):
        catalog.drop_schema("s")
    assert catalog.drop_schema("s", cascade=True)
    assert catalog.storage.walk() == []


def test_schema_with_foreign_directories_is_not_deleted(catalog: Catalog) -> None:
    make_table(catalog, "s.t")
    catalog.storage.create("s/mine/file", b"x")
    with pytest.raises(TableError, match="s/mine is no table"):
        catalog.drop_schema("s", cascade=True)
    assert catalog.tables() == [name("s.t")]


def test_comments_are_merged_and_removed(catalog: Catalog) -> None:
    make_table(catalog, "s.t")
    catalog.set_comments(name("s.t"), "table", {"x": "one", "y": "two"})
    catalog.set_comments(name("s.t"), columns={"y": "", "z.w": "three"})
    assert catalog.comments(name("s.t")) == Comments("table", {"x": "one", "z.w": "three"})
    catalog.set_comments(name("s.t"), "")
    assert catalog.comments(name("s.t")).comment is None
    with pytest.raises(RelationNotFoundError):
        catalog.set_comments(name("s.missing"), "x")


@pytest.mark.parametrize("data", [b"", b"[]", b'{"columns": []}', b"{"])
def test_damaged_view_file_is_an_error_that_names_it(catalog: Catalog, data: bytes) -> None:
    catalog.storage.create("s/.views/v.json", data)
    with pytest.raises(MetadataError) as caught:
        catalog.view(name("s.v"))
    assert caught.value.context["path"] == "s/.views/v.json"


def test_view_definition_round_trips() -> None:
    view = StoredView("select '\n\"é'", (("a", "c"), ("b", None)), "x", "2026-01-01T00:00:00+00:00")
    assert StoredView.from_json(view.to_json(), "p") == view


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a.b", ("a", "b")),
        (" a . b ", ("a", "b")),
        ("`a.b`.`c``d`", ("a.b", "c`d")),
        ("x.a.b", ("x", "a", "b")),
        ("é.two words", ("é", "two words")),
    ],
)
def test_dotted_names_are_split(text: str, parts: tuple[str, ...]) -> None:
    assert split_name(text) == parts


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".b", "a..b", "`a.b", "a`b.c", "`a`b.c", "a", "a.b.c", "x.y.z.w", "a.../b", "../a.b", "a.`.b`", "a.`b/c`"]
)
def test_what_is_no_relation_name_is_refused(text: str) -> None:
    with pytest.raises(SqlError):
        RelationName.parse(text)


@pytest.mark.parametrize("text", ["", ".", "..", ".hidden", "a/b", "a\\b", "a\0b", "a\nb", "a:b", 'a"b', "x" * 201])
def test_identifiers_that_cannot_be_directories_are_refused(text: str) -> None:
    with pytest.raises(SqlError, match="cannot be the name of a schema"):
        check_identifier(text, "schema")


def test_names_print_as_they_are_typed() -> None:
    assert [str(name(text)) for text in ("a.b", "spark_catalog.A.b", "`a b`.`c.d`")] == ["a.b", "A.b", "`a b`.`c.d`"]


# others at work


@pytest.fixture
def lake(tmp_path: Path) -> Lakehouse:
    lake = Lakehouse(str(tmp_path / "lake"), options={"hoodie.write.lock.wait_time_ms": "50"})
    lake.create_table("s.t", schema=pa.schema([("id", pa.int64())]), record_key=["id"])
    return lake


def _files(path: str) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(Path(path).rglob("*")) if file.is_file() and ".locks" not in file.parts}


def _elsewhere(act: Callable[[], object]) -> BaseException | None:
    """What `act` raises in a thread of its own, which does not hold the locks of this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(act).exception()


@pytest.mark.parametrize("lock", [".hoodie/.locks/table.lock", ".hoodie/.locks/compaction-20260101000000000.lock"])
@pytest.mark.parametrize("act", [lambda lake: lake.drop_table("s.t"), lambda lake: lake.rename_table("s.t", "s.u")])
def test_a_table_that_somebody_is_at_work_on_is_neither_dropped_nor_renamed(
    lake: Lakehouse, act: Callable[[Lakehouse], object], lock: str
) -> None:
    table = lake.table("s.t")
    table.upsert(pa.table({"id": [1]}))
    before = _files(table.path)
    with TableLock(table.storage, file=lock):
        refused = _elsewhere(lambda: act(lake))
    assert isinstance(refused, LockTimeoutError)
    assert f"process {os.getpid()}" in str(refused)
    assert "s/t" in str(refused)
    assert (lake.tables("s"), _files(table.path)) == (["s.t"], before)
    act(lake)
    assert "s.t" not in lake.tables("s")


def test_a_writer_that_waited_for_a_table_that_went_is_told_and_brings_nothing_back(
    lake: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, waiting, try_lock = HoodieTable.open(lake.table("s.t").path), threading.Event(), lock_module._try_lock
    table.upsert(pa.table({"id": [0]}))

    def noticed(descriptor: int) -> bool:
        waiting.set()
        return try_lock(descriptor)

    monkeypatch.setattr(lock_module, "_try_lock", noticed)
    with ThreadPoolExecutor(1) as pool:
        with open(f"{table.path}/.hoodie/.locks/table.lock", "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            writer = pool.submit(lambda: table.upsert(pa.table({"id": [1]})))
            assert waiting.wait(30)
            # As another process drops it, under the lock that the writer gets next.
            Path(table.path).rename(f"{table.path}-away")
        assert isinstance(writer.exception(60), TableNotFoundError)
    assert not Path(table.path).exists()
