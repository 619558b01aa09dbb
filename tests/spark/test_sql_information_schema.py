"""information_schema: what packages ask of a warehouse, in queries like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import LakehouseError, UnsupportedSqlError, UnsupportedTableVersionError


@pytest.fixture
def shop(lakehouse: Lakehouse) -> Lakehouse:
    lakehouse.sql(
        "create table shop.orders (id bigint, amount decimal(10, 2), name varchar(7), st struct<f: int>, ts bigint not null, day string)"
        " partitioned by (day) tblproperties (primaryKey = 'id', preCombineField = 'ts')"
    )
    lakehouse.sql("create view shop.names (key comment 'the id', name) as select id, name from shop.orders")
    lakehouse.sql("comment on table shop.orders is 'all of them'")
    lakehouse.sql("comment on column shop.orders.amount is 'in euros'")
    lakehouse.create_schema("other")
    return lakehouse


def rows(lakehouse: Lakehouse, text: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in lakehouse.sql(text).collect()]


@pytest.mark.parametrize("prefix", ["", "spark_catalog.", "shop.", "`other`.", "None."])
def test_tables_and_views_are_listed_behind_any_name_of_the_one_catalog(shop: Lakehouse, prefix: str) -> None:
    found = rows(
        shop,
        "select distinct table_schema, table_name, table_type, comment, is_insertable_into"
        f" from {prefix}information_schema.tables where table_schema ilike 'SHOP' and table_name ilike '%' order by 2",
    )
    assert found == [("shop", "names", "VIEW", None, "NO"), ("shop", "orders", "BASE TABLE", "all of them", "YES")]


def test_columns_have_types_places_and_comments(shop: Lakehouse) -> None:
    asked = "column_name, ordinal_position, full_data_type, data_type, is_nullable, numeric_precision, numeric_scale"
    text = f"select {asked}, character_maximum_length, partition_index, comment from information_schema.columns where table_name = "
    assert rows(shop, f"{text} 'orders' order by 2") == [
        ("id", 1, "bigint", "BIGINT", "YES", 19, 0, None, None, None),
        ("amount", 2, "decimal(10,2)", "DECIMAL", "YES", 10, 2, None, None, "in euros"),
        ("name", 3, "varchar(7)", "VARCHAR", "YES", None, None, 7, None, None),
        ("st", 4, "struct<f:int>", "STRUCT", "YES", None, None, None, None, None),
        ("ts", 5, "bigint", "BIGINT", "NO", 19, 0, None, None, None),
        ("day", 6, "string", "STRING", "YES", None, None, None, 1, None),
    ]
    assert rows(shop, f"{text} 'names' order by 2")[0] == ("key", 1, "bigint", "BIGINT", "YES", 19, 0, None, None, "the id")


def test_schemata_and_views(shop: Lakehouse) -> None:
    assert rows(shop, "select schema_name from information_schema.schemata order by 1") == [("other",), ("shop",)]
    found = rows(shop, "select table_name, view_definition from information_schema.views")
    assert found == [("names", "select id, name from shop.orders")]


def test_conditions_on_names_keep_other_tables_closed(shop: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.sql("create table shop.closed (id int)")
    opened: list[str] = []
    state = shop._pins._state_of  # type: ignore[union-attr]

    def noting(name: object) -> object:
        opened.append(str(name))
        return state(name)  # type: ignore[arg-type]

    monkeypatch.setattr(shop._pins, "_state_of", noting)
    rows(shop, "select column_name from information_schema.columns c where c.table_schema = 'shop' and c.table_name = 'orders'")
    assert opened == ["shop.orders"]
    rows(shop, "select column_name from information_schema.columns")
    assert {"shop.closed", "shop.orders"} <= set(opened)


def test_a_view_may_read_it_and_is_listed_by_it(shop: Lakehouse) -> None:
    shop.sql("create view other.all_columns as select table_name, column_name from information_schema.columns")
    found = rows(shop, "select column_name from other.all_columns where table_name = 'all_columns' order by 1")
    assert found == [("column_name",), ("table_name",)]


def test_a_view_that_cannot_be_read_hides_no_other_column(shop: Lakehouse) -> None:
    shop.sql("drop table shop.orders")
    shop.sql("create table shop.kept (id int)")
    assert rows(shop, "select table_name, column_name from information_schema.columns") == [("kept", "id")]


def test_a_table_that_cannot_be_read_hides_no_other(shop: Lakehouse) -> None:
    shop.sql("create table shop.later (id int) tblproperties (primaryKey = 'id')")
    properties = Path(shop.warehouse, "shop", "later", ".hoodie", "hoodie.properties")
    properties.write_text("\n".join(f"hoodie.table.{key}" for key in ("name=later", "type=COPY_ON_WRITE", "version=10")))
    fresh = Lakehouse(shop.warehouse, spark=shop._spark)
    found = rows(fresh, "select distinct table_name from information_schema.columns where table_schema = 'shop' order by 1")
    assert found == [("names",), ("orders",)]
    shown = {row.tableName: row.information for row in fresh.sql("show table extended in shop like '*'").collect()}
    assert "|-- id: bigint" in shown["orders"]
    assert "Error: hoodie.table.version='10' is no table version that is known" in shown["later"]
    with pytest.raises(UnsupportedTableVersionError):
        fresh.sql("select * from shop.later")


def test_what_it_holds_has_no_history_and_cannot_be_changed(shop: Lakehouse) -> None:
    with pytest.raises(UnsupportedSqlError, match="no history"):
        shop.sql("select * from information_schema.tables timestamp as of '2026-01-01'")
    for text in ("drop table information_schema.tables", "delete from information_schema.tables"):
        with pytest.raises(LakehouseError, match=r"information_schema\.tables"):
            shop.sql(text)


def test_a_schema_of_that_name_comes_first(shop: Lakehouse) -> None:
    shop.create_schema("information_schema")
    shop.sql("create table information_schema.tables (mine int)")
    assert shop.sql("select * from information_schema.tables").columns == ["mine"]
