"""INSERT ... REPLACE WHERE, CREATE TABLE ... LIKE, DESCRIBE HISTORY and SHOW TABLE EXTENDED."""

from __future__ import annotations

import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import ConstraintError, TableExistsError, UnsupportedSqlError


def rows(lakehouse: Lakehouse, text: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in lakehouse.sql(text).collect()]


@pytest.fixture(params=["cow", "mor"])
def lake(request: pytest.FixtureRequest, lakehouse: Lakehouse) -> Lakehouse:
    properties = f"primaryKey = 'id', preCombineField = 'ts', type = '{request.param}'"
    lakehouse.sql(
        "create table shop.t (id bigint, ts bigint, v string, day string) using hudi partitioned by (day)"
        f" tblproperties ({properties}, 'hoodie.record.merge.mode' = 'COMMIT_TIME_ORDERING')"
    )
    lakehouse.sql("insert into shop.t values (1, 1, 'a', 'd1'), (2, 1, 'b', 'd1'), (3, 1, null, 'd2'), (4, 1, 'd', 'd2')")
    lakehouse.sql("update shop.t set v = 'B' where id = 2")
    return lakehouse


def test_rows_for_which_the_condition_is_true_are_replaced_in_one_commit(lake: Lakehouse) -> None:
    before = lake.table("shop.t").services.history()
    result = lake.sql("insert into shop.t replace where day = 'd1' and t.id < 10 select id + 4, 2L, 'new', 'd1' from shop.t where v = 'B'")
    assert (result.deletes, result.inserts) == (2, 1)
    assert len(lake.table("shop.t").services.history()) == len(before) + 1
    assert rows(lake, "select id, v from shop.t order by id") == [(3, None), (4, "d"), (6, "new")]


def test_conditions_of_any_form_and_columns_by_name(lake: Lakehouse) -> None:
    lake.sql("insert into shop.t by name replace where v is distinct from 'd' from (select 'd3' as day, 9L as ts, 7L as id) select *")
    assert rows(lake, "select id, v, day from shop.t order by id") == [(4, "d", "d2"), (7, None, "d3")]
    lake.sql("insert into shop.t replace where case when id = 4 then true end values (4, 5, 'x', 'd9')")
    with pytest.raises(UnsupportedSqlError, match="without a sub-query"):
        lake.sql("insert into shop.t replace where id in (select max(id) from shop.t) values (1, 1, 'x', 'd1')")
    assert rows(lake, "select id, v, day from shop.t order by id") == [(4, "x", "d9"), (7, None, "d3")]


@pytest.mark.parametrize("value", ["'d2'", "cast(null as string)"])
def test_rows_that_the_condition_is_not_true_of_are_refused_before_anything_is_written(lake: Lakehouse, value: str) -> None:
    before = rows(lake, "select * from shop.t order by id")
    instant = lake.table("shop.t").state.timeline.instants
    with pytest.raises(ConstraintError, match=r"REPLACE WHERE day = 'd1': a row to be written is none"):
        lake.sql(f"insert into shop.t replace where day = 'd1' select 9L, 1L, 'x', {value}")
    assert rows(lake, "select * from shop.t order by id") == before
    assert lake.table("shop.t").state.timeline.instants == instant


def test_a_table_like_another_has_its_columns_key_partitions_and_options_and_no_rows(lake: Lakehouse) -> None:
    lake.sql("create table shop.u like shop.t")
    old, new = lake.table("shop.t").config, lake.table("shop.u").config
    assert rows(lake, "select * from shop.u") == []
    for name in ("table_type", "record_key_fields", "ordering_fields", "partition_fields", "hive_style_partitioning"):
        assert getattr(new, name) == getattr(old, name)
    assert new.properties["hoodie.compaction.payload.class"] == old.properties["hoodie.compaction.payload.class"]
    assert lake.table("shop.u").schema == lake.table("shop.t").schema
    lake.sql("insert into shop.u select * from shop.t")
    assert rows(lake, "select * from shop.u order by id") == rows(lake, "select * from shop.t order by id")
    assert lake.sql("create table if not exists shop.u like shop.t") is None
    with pytest.raises(TableExistsError):
        lake.sql("create table shop.u like shop.t")
    lake.sql("create view shop.seen as select * from shop.t")
    with pytest.raises(UnsupportedSqlError, match="is a view"):
        lake.sql("create table shop.w like shop.seen")
    lake.sql("create table shop.w like shop.t using hudi tblproperties (type = 'mor')")
    assert lake.table("shop.w").config.table_type.value == "MERGE_ON_READ"
    lake.sql("create table shop.x like shop.t tblproperties (TYPE = 'cow')")
    assert lake.table("shop.x").config.table_type.value == "COPY_ON_WRITE"


def test_a_table_like_another_has_the_options_that_it_was_made_with_or_got_since(lakehouse: Lakehouse) -> None:
    bucket = "'hoodie.index.type' = 'BUCKET', 'hoodie.bucket.index.num.buckets' = '3'"
    marker = "'hoodie.payload.delete.field' = 'gone', 'hoodie.payload.delete.marker' = 'yes', 'hoodie.cleaner.commits.retained' = '5'"
    lakehouse.sql("create schema s")
    made = f"table s.t (id int, n int, gone string) tblproperties (primaryKey = 'id', preCombineField = 'n', {bucket}, {marker})"
    lakehouse.sql(f"create {made}")
    lakehouse.sql(f"create or replace {made}")  # the same options, under whichever of their names, are no change
    lakehouse.sql("alter table s.t set tblproperties ('hoodie.clean.commits.retained' = '3')")
    lakehouse.sql("create table s.u like s.t tblproperties ('hoodie.cleaner.commits.retained' = '4')")
    old, new = (lakehouse.table(f"s.{name}").config for name in "tu")
    kept = {**old.prefixed("lakehouse.default."), "hoodie.clean.commits.retained": "4"}
    assert new.prefixed("lakehouse.default.") == kept
    assert {key: new.properties.get(key) for key in old.properties if "payload" in key} == {
        key: value for key, value in old.properties.items() if "payload" in key
    }


def test_the_history_of_a_table_newest_first(lake: Lakehouse) -> None:
    found = lake.sql("describe history shop.t")
    assert found.columns[:5] == ["instant", "action", "state", "operation", "inserts"]
    told = [(row.operation, row.inserts, row.updates) for row in found.collect()]
    assert told == [("UPSERT", 0, 1), ("INSERT", 4, 0)]
    assert lake.sql("describe history shop.t limit 1").count() == 1
    assert dict(lake.sql("desc history shop.t limit 0").dtypes)["inserts"] == "bigint"


def test_tables_and_views_by_a_pattern_with_what_is_known_of_them(lake: Lakehouse) -> None:
    lake.sql("create view shop.tea as select id from shop.t")
    found = {row[1]: row[3] for row in lake.sql("show table extended in shop like 't*'").collect()}
    assert list(found) == ["t", "tea"]
    assert "Provider: hudi" in found["t"]
    assert " |-- id: bigint (nullable = true)" in found["t"]
    assert "Type: VIEW" in found["tea"]
