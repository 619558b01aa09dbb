"""CREATE TABLE ... CLONE on real tables, through Spark SQL."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_engine import Lakehouse, WriteResult
from lakehouse_engine.errors import TableExistsError, TableNotFoundError


def ids(lakehouse: Lakehouse, name: str) -> list[int]:
    return [row.id for row in lakehouse.sql(f"select id from {name} order by id").collect()]


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_clone_has_the_rows_of_its_moment_and_goes_its_own_way(lakehouse: Lakehouse, kind: str) -> None:
    lakehouse.sql(
        f"create table shop.orders (id bigint, name string) partitioned by (name) tblproperties (primaryKey = 'id', type = '{kind}')"
    )
    lakehouse.sql("insert into shop.orders values (1, 'a'), (2, 'b')")
    lakehouse.sql("merge into shop.orders t using (select 3 as id, 'b' as name) s on t.id = s.id when not matched then insert *")
    made = lakehouse.sql("create table shop.copy shallow clone shop.orders")
    assert isinstance(made, WriteResult)
    assert made.inserts == 3
    lakehouse.sql("create table shop.older deep clone shop.orders version as of -1")
    lakehouse.sql("delete from shop.orders where id = 1")
    lakehouse.sql("insert into shop.copy values (7, 'c')")
    assert (ids(lakehouse, "shop.orders"), ids(lakehouse, "shop.copy"), ids(lakehouse, "shop.older")) == ([2, 3], [1, 2, 3, 7], [1, 2])
    with pytest.raises(TableExistsError):
        lakehouse.sql("create table shop.copy clone shop.orders")
    assert lakehouse.sql("create table if not exists shop.copy clone shop.orders") is None
    # A statement after it reads what is there now, though the name was read before.
    lakehouse.sql("create or replace table shop.copy clone shop.older")
    assert ids(lakehouse, "shop.copy") == [1, 2]
    lakehouse.drop_table("shop.orders")
    assert lakehouse.table("shop.copy").to_arrow().num_rows == 2


def test_a_view_is_not_cloned_and_a_name_without_a_schema_is_of_the_current_one(lakehouse: Lakehouse) -> None:
    lakehouse.create_table("shop.orders", schema=pa.schema([("id", pa.int64())]), record_key=["id"])
    lakehouse.sql("create view shop.seen as select * from shop.orders")
    with pytest.raises(TableNotFoundError, match="is a view"):
        lakehouse.sql("create table shop.new clone shop.seen")
    lakehouse.sql("use shop")
    lakehouse.sql("create table new clone orders")
    assert lakehouse.exists("shop.new")


def test_tables_that_are_held_back_are_seen_by_every_session_of_the_same_view_of_the_warehouse(lakehouse: Lakehouse) -> None:
    lakehouse.sql("create table shop.orders (id bigint) tblproperties (primaryKey = 'id')")
    lakehouse.sql("insert into shop.orders values (1)")
    lakehouse.copy_table("shop.orders", ".held")
    held = lakehouse.with_tables_in(".held", {"shop.orders"})
    held.sql("insert into shop.orders values (2)")
    other = held.with_session(lakehouse.sql("select 1").sparkSession)
    assert (ids(other, "shop.orders"), ids(held, "shop.orders"), ids(lakehouse, "shop.orders")) == ([1, 2], [1, 2], [1])
