"""Statements that read what they change, while others write: a commit in between is neither lost nor ignored."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakehouse_engine.table as facade
from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import ChangedSinceReadError, CommitConflictError
from lakehouse_engine.statements import columns
from lakehouse_engine.write.alter import set_constraints

TYPES = ("cow", "mor")
RETRIES = "hoodie.write.num.retries.on.conflict.failures"
Between = Callable[..., list[int]]
"""Takes what is done between a look and a commit, and how many `times`."""


@pytest.fixture(params=TYPES)
def stock(request: pytest.FixtureRequest, lakehouse: Lakehouse) -> HoodieTable:
    """Ids 1 and 2 of the day `a`, 3 of `b`."""
    lakehouse.sql(
        f"create table shop.stock (id int, n int, day string) partitioned by (day) tblproperties (primaryKey='id', type='{request.param}')"
    )
    lakehouse.sql("insert into shop.stock values (1, 10, 'a'), (2, 20, 'a'), (3, 30, 'b')")
    return lakehouse.table("shop.stock")


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Between:
    """Have something done between the first readings and writes of statements: after what is read was pinned, before the lock is taken."""

    def plan(action: Callable[[], Any], times: int = 1) -> list[int]:
        write, done = facade.execute_write, []

        def interrupted(*arguments: Any) -> Any:
            if len(done) < times:
                done.append(len(done))
                monkeypatch.setattr(facade, "execute_write", write)
                action()
                monkeypatch.setattr(facade, "execute_write", interrupted)
            return write(*arguments)

        monkeypatch.setattr(facade, "execute_write", interrupted)
        return done

    return plan


def rows(ids: list[int], ns: list[int], days: list[str]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int32()), "n": pa.array(ns, pa.int32()), "day": days})


def content(table: HoodieTable) -> dict[int, int]:
    read = table.to_arrow(["id", "n"])
    assert len(set(read["id"].to_pylist())) == read.num_rows
    return dict(zip(read["id"].to_pylist(), read["n"].to_pylist(), strict=True))


def test_an_update_counts_the_rows_that_were_appended_while_it_was_computed(
    lakehouse: Lakehouse, stock: HoodieTable, between: Between
) -> None:
    done = between(lambda: HoodieTable.open(stock.path).upsert(rows([1, 4], [100, 40], ["a", "a"])))
    lakehouse.sql("update shop.stock set n = n + 1")
    assert done
    assert content(stock) == {1: 101, 2: 21, 3: 31, 4: 41}


def test_two_increments_at_once_count_twice(lakehouse: Lakehouse, stock: HoodieTable, spark: SparkSession) -> None:
    def increment(_: int) -> None:
        Lakehouse(lakehouse.warehouse, spark=spark.newSession()).sql("update shop.stock set n = n + 1 where id = 1")

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(increment, range(3)))
    assert content(stock)[1] == 13


def test_a_delete_by_condition_takes_rows_that_came_while_it_was_computed(
    lakehouse: Lakehouse, stock: HoodieTable, between: Between
) -> None:
    between(lambda: HoodieTable.open(stock.path).upsert(rows([1, 4], [5, 99], ["a", "a"])))
    lakehouse.sql("delete from shop.stock where n >= 10 and n < 25")
    assert content(stock) == {1: 5, 3: 30, 4: 99}


def test_a_merge_meets_rows_that_came_while_it_was_computed(lakehouse: Lakehouse, stock: HoodieTable, between: Between) -> None:
    between(lambda: HoodieTable.open(stock.path).upsert(rows([1, 4], [100, 40], ["a", "a"])))
    lakehouse.sql(
        "merge into shop.stock t using (select explode(array(1, 4)) as id) s on t.id = s.id"
        " when matched then update set n = t.n + 1 when not matched then insert (id, n, day) values (s.id, 0, 'a')"
    )
    assert content(stock) == {1: 101, 2: 20, 3: 30, 4: 41}


def test_an_overwrite_from_the_table_itself_keeps_what_was_appended(lakehouse: Lakehouse, stock: HoodieTable, between: Between) -> None:
    between(lambda: HoodieTable.open(stock.path).insert(rows([4], [40], ["a"])))
    lakehouse.sql("insert overwrite shop.stock select id, n * 2, day from shop.stock")
    assert content(stock) == {1: 20, 2: 40, 3: 60, 4: 80}


@pytest.mark.parametrize("change", ["drop column", "rename column", "create or replace"])
def test_a_change_of_columns_keeps_what_was_appended(lakehouse: Lakehouse, stock: HoodieTable, between: Between, change: str) -> None:
    kind = "mor" if stock.config.table_type.value.startswith("MERGE") else "cow"
    statements = {
        "drop column": "alter table shop.stock drop column n",
        "rename column": "alter table shop.stock rename column n to m",
        "create or replace": f"create or replace table shop.stock partitioned by (day) tblproperties (primaryKey='id', type='{kind}')"
        " as select id, day from shop.stock",
    }
    between(lambda: HoodieTable.open(stock.path).insert(rows([4], [40], ["b"])))
    lakehouse.sql(statements[change])
    assert sorted(stock.to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    assert "n" not in stock.schema.names


def test_a_rename_keeps_a_column_that_came_while_it_waited(
    lakehouse: Lakehouse, stock: HoodieTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sets the new name's constraints first, for which it waits for the table's lock."""
    lakehouse.sql("alter table shop.stock alter column n set not null")
    evolved: list[str | None] = []

    def wait(*arguments: Any, **named: Any) -> None:
        if not evolved:
            more = rows([4], [40], ["b"]).append_column("more", pa.array(["kept"]))
            evolved.append(stock.insert(more, options={"hoodie.datasource.write.reconcile.schema": "true"}).instant)
        set_constraints(*arguments, **named)

    monkeypatch.setattr(columns, "set_constraints", wait)
    lakehouse.sql("alter table shop.stock rename column n to number")
    assert evolved
    stored = stock.to_arrow(["id", "number", "more"]).sort_by("id")
    assert stored.column("more").to_pylist() == [None, None, None, "kept"]
    assert stored.column("number").to_pylist() == [10, 20, 30, 40]


def test_an_insert_of_what_is_not_there_yet_is_looked_up_again(lakehouse: Lakehouse, stock: HoodieTable, between: Between) -> None:
    between(lambda: HoodieTable.open(stock.path).insert(rows([4], [40], ["a"])))
    lakehouse.sql(
        "insert into shop.stock select * from values (4, 0, 'a'), (5, 50, 'b') as new(id, n, day)"
        " where not exists (select 1 from shop.stock t where t.id = new.id)"
    )
    assert content(stock) == {1: 10, 2: 20, 3: 30, 4: 40, 5: 50}


@pytest.mark.parametrize(
    ("statement", "again"),
    [
        ("update shop.stock set n = n + 1 where day = 'a'", False),
        ("update shop.stock as s set n = n + 1 where s.day in ('a') and n > 0", False),
        ("update shop.stock set n = n + 1 where day = 'a' or n < 0", True),
        ("update shop.stock set n = n + 1 where day = 'a' and n < (select max(n) from shop.stock)", True),
        ("delete from shop.stock where 'a' = day and n > 1000", False),
        ("delete from shop.stock where not day = 'a' and n > 1000", True),
        ("merge into shop.stock t using (select 1 as id) s on t.id = s.id and t.day = 'a' when matched then update set n = t.n + 1", False),
        ("merge into shop.stock t using (select 1 as id, 'a' as d) s on t.id = s.id and d = 'a' when matched then update set n = 1", True),
    ],
)
def test_a_statement_on_other_partitions_than_the_commit_in_between_runs_once(
    lakehouse: Lakehouse, stock: HoodieTable, between: Between, monkeypatch: pytest.MonkeyPatch, statement: str, again: bool
) -> None:
    lakehouse = Lakehouse(lakehouse.warehouse, spark=lakehouse._spark, options={RETRIES: "0"})
    between(lambda: HoodieTable.open(stock.path).upsert(rows([3, 4], [31, 41], ["b", "b"])))
    if again:
        with pytest.raises(ChangedSinceReadError):
            lakehouse.sql(statement)
    else:
        lakehouse.sql(statement)
    assert {3: 31, 4: 41}.items() <= content(stock).items()


def test_an_update_that_others_overtake_each_time_says_by_whom_and_changes_nothing(
    lakehouse: Lakehouse, stock: HoodieTable, between: Between
) -> None:
    few = Lakehouse(lakehouse.warehouse, spark=lakehouse._spark, options={RETRIES: "2"})
    read = stock.timeline.completed().writes().last()
    done = between(lambda: HoodieTable.open(stock.path).upsert(rows([1], [100], ["a"])), times=9)
    with pytest.raises(CommitConflictError, match="UPSERT by process") as raised:
        few.sql("update shop.stock set n = n + 1")
    assert len(done) == 3
    assert "day=a" in str(raised.value)
    assert raised.value.context["instant"] == stock.timeline.completed().writes().last().requested_time
    assert read.requested_time < raised.value.context["instant"]
    assert content(stock) == {1: 100, 2: 20, 3: 30}


def test_services_between_reading_and_writing_are_no_conflict(lakehouse: Lakehouse, spark: SparkSession, between: Between) -> None:
    lakehouse.sql("create table shop.logged (id int, n int) tblproperties (primaryKey='id', type='mor')")
    lakehouse.sql("insert into shop.logged values (1, 10), (2, 20)")
    lakehouse.sql("update shop.logged set n = n + 1")
    table = lakehouse.table("shop.logged")
    strict = Lakehouse(lakehouse.warehouse, spark=spark, options={RETRIES: "0"})

    def tidy() -> None:
        assert HoodieTable.open(table.path).compact().instant is not None

    assert between(tidy) == []
    strict.sql("update shop.logged set n = n + 1")
    assert content(table) == {1: 12, 2: 22}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("statement", "meanwhile", "expected"),
    [
        ("update shop.kept set n = n + 1 where day = 'b'", (1, 100, "b"), {1: 101, 2: 21}),
        ("delete from shop.kept where day = 'b'", (1, 100, "c"), {1: 100}),
        (
            "merge into shop.kept t using (select 1 as id) s on t.id = s.id and t.day = 'b' when matched then update set n = t.n + 1",
            (1, 100, "b"),
            {1: 101, 2: 20},
        ),
    ],
    ids=["update", "delete", "merge"],
)
def test_rows_that_stay_in_their_old_partition_are_not_confined_to_the_one_that_they_say(
    statement: str, meanwhile: tuple[int, int, str], expected: dict[int, int], kind: str, lakehouse: Lakehouse, between: Between
) -> None:
    """Row 1 says the day `b`, and lies with those of `a`."""
    schema = rows([1], [1], ["a"]).schema
    stay = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"}
    kept = lakehouse.create_table("shop.kept", schema=schema, record_key=["id"], partition_by=["day"], table_type=kind, properties=stay)
    kept.bulk_insert(rows([1, 2], [10, 20], ["a", "b"]))
    kept.upsert(rows([1], [10], ["b"]))
    number, n, day = meanwhile
    done = between(lambda: HoodieTable.open(kept.path).upsert(rows([number], [n], [day])))
    lakehouse.sql(statement)
    assert done
    assert content(kept) == expected
