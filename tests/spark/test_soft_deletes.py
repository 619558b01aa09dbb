"""Tables with soft deletes over Spark: SQL and DataFrames leave deleted rows out, and statements keep them."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import DuplicateKeyError

MADE = "create table s.{name} (id int, v string, ts int, _hoodie_is_deleted boolean) tblproperties ({properties})"
PROPERTIES = "primaryKey = 'id', preCombineField = 'ts', 'lakehouse.deletes' = 'soft', type = '{kind}'"


def listed(lakehouse: Lakehouse, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in lakehouse.sql(text).collect()), key=str)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_statements_and_frames_show_live_rows_and_keep_the_others(lakehouse: Lakehouse, kind: str) -> None:
    lakehouse.sql(MADE.format(name="t", properties=PROPERTIES.format(kind=kind)))
    lakehouse.sql("insert into s.t values (1, 'a', 10, false), (2, 'b', 10, null), (3, 'c', 10, true)")
    table = lakehouse.table("s.t")
    table.upsert(lakehouse.sql("select 1 as id, 'gone' as v, 20 as ts, true as _hoodie_is_deleted"))
    table.upsert(lakehouse.sql("select 1 as id, 'late' as v, 15 as ts, false as _hoodie_is_deleted"))
    live = [(2, "b", 10, None)]
    assert listed(lakehouse, "select * from s.t") == live
    assert listed(lakehouse, "select a.* from s.t a join s.t b on a.id = b.id where a.ts > 5") == live
    assert listed(lakehouse, "select count(*) from s.t") == [(1,)]
    assert listed(lakehouse, "select id from s.t version as of '-1'") == [(1,), (2,)]
    assert listed(lakehouse, "select id from lakehouse_with_deleted('s.t', '-1')") == [(1,), (2,), (3,)]
    assert listed(lakehouse, "select id from hudi_table_changes('s.t', 'latest_state', 'earliest')") == [(2,)]
    assert [tuple(row) for row in table.dataframe(columns=["ID", "v"]).collect()] == [(2, "b")]
    assert table.dataframe(deleted=True, columns=["id"]).count() == 3
    everything = "select id, ts, _lakehouse_deleted_at is not null from lakehouse_with_deleted('s.t')"
    assert listed(lakehouse, everything) == [(1, 20, True), (2, 10, False), (3, 10, True)]
    assert listed(lakehouse, "select column_name from information_schema.columns where table_name = 't' and ordinal_position > 3") == [
        ("_hoodie_is_deleted",)
    ]
    with pytest.raises(AnalysisException, match="_lakehouse_deleted_at"):
        lakehouse.sql("select _lakehouse_deleted_at from s.t").collect()
    # Statements change what they see.
    lakehouse.sql("update s.t set v = 'B' where ts > 0")
    source = "(select 3 as id, 5 as ts) n on t.id = n.id"
    lakehouse.sql(f"merge into s.t using {source} when not matched then insert (id, ts) values (n.id, n.ts)")
    assert listed(lakehouse, everything) == [(1, 20, True), (2, 10, False), (3, 10, True)]
    lakehouse.sql("alter table s.t add columns (more int)")
    lakehouse.sql("alter table s.t rename column more to other")
    lakehouse.sql("alter table s.t drop columns (other)")
    assert listed(lakehouse, everything) == [(1, 20, True), (2, 10, False), (3, 10, True)]
    lakehouse.sql("insert into s.t values (4, 'd', 1, false)")
    lakehouse.sql("delete from s.t where id < 4")
    assert listed(lakehouse, everything) == [(1, 20, True), (3, 10, True), (4, 1, False)]
    assert "'lakehouse.deletes' = 'soft'" in lakehouse.sql("show create table s.t").collect()[0][0]
    lakehouse.sql("create table s.u as select 1 as id, false as _hoodie_is_deleted union all select 9, true")
    assert listed(lakehouse, "select id from s.u") == [(1,)]


def test_a_row_does_not_move_to_where_a_deleted_one_of_its_key_is_kept(lakehouse: Lakehouse) -> None:
    properties = PROPERTIES.format(kind="cow") + ", 'hoodie.index.type' = 'SIMPLE'"
    columns = "id int, p string, ts int, _hoodie_is_deleted boolean"
    lakehouse.sql(f"create table s.t ({columns}) partitioned by (p) tblproperties ({properties})")
    lakehouse.sql("insert into s.t values (1, 'x', 20, true), (1, 'y', 10, false)")
    with pytest.raises(DuplicateKeyError, match="would be moved to the partition 'p=x', which holds another row of that key"):
        lakehouse.sql("update s.t set p = 'x' where id = 1")
    assert listed(lakehouse, "select id, p from s.t") == [(1, "y")]
