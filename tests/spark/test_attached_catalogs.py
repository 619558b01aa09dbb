"""Warehouses attached by name: read in every way that SQL and Python read, and never changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.catalog.functions import Language, Parameter, StoredFunction
from lakehouse_engine.errors import LakehouseError, OptionError, ReadOnlyError, RelationNotFoundError, SqlError, TableNotFoundError


def doubling(factor: int) -> StoredFunction:
    return StoredFunction(Language.SQL, (Parameter("x", "bigint"),), "bigint", f"x * {factor}")


@pytest.fixture
def prod(lakehouse: Lakehouse, tmp_path: Path) -> Lakehouse:
    """Production, which nobody of these tests attaches to anything."""
    prod = Lakehouse(str(tmp_path / "prod"), spark=lakehouse._spark, catalog="prod")
    for kind in ("cow", "mor"):
        keys = f"tblproperties (type = '{kind}', primaryKey = 'id', preCombineField = 'ts')"
        prod.sql(f"create table shop.{kind} (id bigint, ts bigint, v string) {keys}")
        prod.sql(f"insert into shop.{kind} values (1, 1, 'a'), (2, 1, 'b')")
        prod.sql(f"update shop.{kind} set v = 'c', ts = 2 where id = 2")
    prod.create_function("shop.f", doubling(2))
    prod.sql("create view shop.names (key, name) as select shop.f(id), v from prod.shop.cow")
    prod.sql("comment on table shop.cow is 'theirs'")
    return prod


@pytest.fixture
def ours(lakehouse: Lakehouse, prod: Lakehouse, tmp_path: Path) -> Lakehouse:
    found = Lakehouse(str(tmp_path / "ours"), spark=lakehouse._spark, catalogs={"Prod": prod.warehouse}, catalog="dev")
    found.sql("create table shop.cow (id bigint, v string) tblproperties (primaryKey = 'id')")
    found.sql("insert into shop.cow values (1, 'ours')")
    found.create_function("shop.f", doubling(100))
    return found


def rows(lakehouse: Lakehouse, text: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in lakehouse.sql(text).collect()), key=str)


def state_of(folder: str) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in Path(folder).rglob("*") if path.is_file()}


READS = {
    "select prod.shop.mor.id, v from prod.shop.mor": [(1, "a"), (2, "c")],
    "select p.v, o.v from PROD.shop.cow p join shop.cow o on p.id = o.id": [("a", "ours")],
    "select p.v, o.v from prod.shop.cow p join dev.shop.cow o using (id)": [("a", "ours")],
    "select key, name, shop.f(key) from prod.shop.names": [(2, "a", 200), (4, "c", 400)],
    "select v from prod.shop.cow version as of '-1'": [("a",), ("b",)],
    "select count(*) from hudi_table_changes('prod.shop.cow', 'latest_state', 'earliest')": [(2,)],
    "select count(*) from hudi_read_optimized('prod.shop.mor')": [(2,)],
    "select table_name from prod.information_schema.tables": [("cow",), ("mor",), ("names",)],
    "select count(*) from prod.shop.cow where id in (select id from prod.shop.mor where v = 'c')": [(1,)],
    "show columns in prod.shop.cow": [("id",), ("ts",), ("v",)],
    "show indexes from prod.shop.cow": [],
    "select *, p._hoodie_record_key from prod.shop.cow p where _hoodie_record_key = '1'": [(1, 1, "a", "1")],
    "select name from (select * from prod.shop.names) where key = 4": [("c",)],
}


@pytest.mark.parametrize(("text", "expected"), READS.items())
def test_a_name_of_three_parts_is_read_in_the_attached_warehouse(
    ours: Lakehouse, prod: Lakehouse, text: str, expected: list[tuple[object, ...]]
) -> None:
    before = state_of(prod.warehouse)
    assert rows(ours, text) == expected
    assert state_of(prod.warehouse) == before


CHANGES = [
    "insert into prod.shop.cow values (3, 1, 'x')",
    "insert overwrite prod.shop.cow select * from prod.shop.cow",
    "update prod.shop.cow set v = 'x'",
    "delete from prod.shop.cow",
    "merge into prod.shop.cow t using shop.cow s on t.id = s.id when matched then delete",
    "truncate table prod.shop.cow",
    "drop table prod.shop.cow",
    "drop view prod.shop.names",
    "alter table prod.shop.cow add columns (x int)",
    "alter table shop.cow rename to prod.shop.mine",
    "comment on table prod.shop.cow is 'x'",
    "create table prod.shop.mine (id bigint)",
    "create or replace table prod.shop.mine as select 1 as id",
    "create view prod.shop.mine as select 1 as id",
    "create materialized view prod.shop.mine as select 1 as id",
    "create or replace table prod.shop.cow clone shop.cow",
    "from shop.cow insert into prod.shop.cow select id, 1, v",
    "create schema prod.mine",
    "drop schema prod.shop cascade",
    "call run_clean(table => 'prod.shop.cow')",
    "vacuum prod.shop.cow",
    "restore table prod.shop.cow to version as of '-1'",
]


@pytest.mark.parametrize("text", CHANGES)
def test_nothing_in_an_attached_warehouse_is_changed(ours: Lakehouse, prod: Lakehouse, text: str) -> None:
    before, mine = state_of(prod.warehouse), state_of(ours.warehouse)
    with pytest.raises(LakehouseError):
        ours.sql(text)
    assert state_of(prod.warehouse) == before
    assert state_of(ours.warehouse) == mine


def test_statements_on_attached_tables_say_that_these_are_read_only(ours: Lakehouse) -> None:
    for text in CHANGES[:8]:
        with pytest.raises(ReadOnlyError, match=r"the catalog prod .* is attached to be read only"):
            ours.sql(text)


def test_rows_and_clones_of_attached_tables_become_tables_here(ours: Lakehouse, prod: Lakehouse) -> None:
    before = state_of(prod.warehouse)
    ours.sql("insert into shop.cow select id, v from prod.shop.mor where id = 2")
    assert rows(ours, "select * from shop.cow") == [(1, "ours"), (2, "c")]
    ours.sql("create or replace table shop.cow clone prod.shop.cow")
    assert rows(ours, "select * from shop.cow") == [(1, 1, "a"), (2, 2, "c")]
    assert ours.catalog.comments(ours._named("shop.cow")).comment == "theirs"
    ours.clone("prod.shop.mor", "other.mor", as_of="-1")
    assert rows(ours, "select * from other.mor") == [(1, 1, "a"), (2, 1, "b")]
    assert state_of(prod.warehouse) == before
    prod.sql("drop table shop.cow")
    assert rows(ours, "select v from shop.cow") == [("a",), ("c",)]
    newest = ours.table("shop.cow").timeline.completed().writes().last()
    assert newest is not None
    assert ours.table("shop.cow").state.commit_metadata(newest).extra_metadata["lakehouse.clone.source"] == "prod.shop.cow"


def test_a_table_of_an_attached_warehouse_opened_in_python_is_read_only(ours: Lakehouse, prod: Lakehouse) -> None:
    table, before = ours.table("prod.shop.mor"), state_of(prod.warehouse)
    assert table.to_arrow().column("v").to_pylist() == ["a", "c"]
    assert (ours.exists("prod.shop.cow"), ours.exists("prod.shop.no")) == (True, False)
    assert ours.view("prod.shop.names").sql.startswith("select shop.f(id)")
    assert ours.catalogs["prod"].tables() == ["shop.cow", "shop.mor"]
    for change in (
        lambda: table.upsert(pa.table({"id": [1], "ts": [9], "v": ["x"]})),
        lambda: table.delete(pa.table({"id": [1]})),
        lambda: table.clean(),
        lambda: table.compact(),
        lambda: table.savepoint("s"),
        lambda: table.repair(),
        lambda: ours.drop_table("prod.shop.mor"),
        lambda: ours.rename_table("prod.shop.mor", "shop.mor"),
        lambda: ours.create_view("prod.shop.w", "select 1"),
        lambda: ours.create_table("prod.shop.t", schema=pa.schema([("id", pa.int64())])),
        lambda: ours.catalogs["prod"].create_schema("more"),
        lambda: ours.catalogs["prod"].drop_table("shop.mor"),
        lambda: ours.catalogs["prod"].sql("delete from shop.mor"),
    ):
        with pytest.raises(ReadOnlyError):
            change()  # type: ignore[no-untyped-call]
    assert state_of(prod.warehouse) == before


def test_what_is_not_there_is_told_with_its_catalog(ours: Lakehouse, prod: Lakehouse) -> None:
    with pytest.raises(RelationNotFoundError, match=r"there is no relation shop\.no in the catalog prod"):
        ours.sql("select * from prod.shop.no")
    with pytest.raises(TableNotFoundError):
        ours.table("prod.shop.no")


def test_a_materialized_view_over_an_attached_table_is_computed_anew_each_time(ours: Lakehouse, prod: Lakehouse) -> None:
    ours.sql("create materialized view shop.m as select v from prod.shop.cow")
    prod.sql("insert into shop.cow values (3, 1, 'd')")
    ours.sql("refresh materialized view shop.m")
    assert rows(ours, "select * from shop.m") == [("a",), ("c",), ("d",)]


def test_statements_that_belong_together_read_one_state_of_an_attached_table(ours: Lakehouse, prod: Lakehouse) -> None:
    reading = ours.reading()
    assert reading.sql("select count(*) from prod.shop.cow").collect()[0][0] == 2
    prod.sql("insert into shop.cow values (3, 1, 'd')")
    assert reading.sql("select count(*) from prod.shop.cow").collect()[0][0] == 2
    assert rows(ours, "select count(*) from prod.shop.cow") == [(3,)]


@pytest.mark.parametrize(
    ("catalogs", "message"),
    [
        ({"spark_catalog": "/x"}, "cannot be called 'spark_catalog'"),
        (["a"], "catalogs is a mapping, not list"),
        ({"a b": "/x"}, "a plain word, not 'a b'"),
        ({"a": "/x", "A": "/y"}, "two catalogs called 'A'"),
        ({"dev": "/x"}, "two catalogs called 'dev'"),
        ({"a": {}}, "needs a warehouse"),
        ({"a": {"warehouse": "/x", "options": {}}}, "no key 'options'"),
        ({"a": {"warehouse": "/x", "storage_options": {"region": "x"}}}, "the catalog 'a': a directory has no storage_options"),
        ({"a": "ftp://x"}, "the catalog 'a': 'ftp://x'"),
    ],
)
def test_wrong_catalogs_are_refused_by_name(tmp_path: Path, catalogs: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Lakehouse(str(tmp_path), catalog="dev", catalogs=catalogs)


def test_names_of_three_parts_mean_nothing_without_a_catalog(lakehouse: Lakehouse) -> None:
    with pytest.raises(SqlError, match="not a relation of the warehouse"):
        lakehouse.table("prod.shop.cow")
