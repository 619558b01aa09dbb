"""`read_files(...)` in statements: rows, stored views, what is refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import UnreadableFilesError, UnsupportedSqlError


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text('id;v\n1;a\n2;"b\nc"\n')
    return tmp_path / "in"


def call(files: Path, more: str = "header => true, sep => ';', multiLine => true, schema => 'id bigint, v string'") -> str:
    return f"read_files('{files}/*.csv', format => 'csv', {more})"


def rows(lakehouse: Lakehouse, text: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in lakehouse.sql(text).collect())


def test_files_are_rows_of_queries_writes_and_stored_views(lakehouse: Lakehouse, files: Path) -> None:
    lakehouse.sql("create table s.t (id bigint, v string) tblproperties (primaryKey = 'id')")
    lakehouse.sql(f"insert into s.t select o.id, o.v from {call(files)} as o")
    assert rows(lakehouse, "select * from s.t") == [(1, "a"), (2, "b\nc")]
    lakehouse.sql(f"create view s.w as select id from {call(files)} where v = 'a'")
    assert rows(lakehouse, "select w.id, t.v from s.w join s.t using (id)") == [(1, "a")]
    lakehouse.sql(f"merge into s.t using (select * from {call(files)}) o on t.id = o.id when matched and o.id = 1 then update set v = 'x'")
    assert rows(lakehouse, "select v from s.t where id = 1") == [("x",)]


def test_a_materialized_view_over_files_is_computed_anew(lakehouse: Lakehouse, files: Path) -> None:
    lakehouse.sql(f"create materialized view s.m as select id from {call(files)}")
    (files / "b.csv").write_text("id;v\n3;d\n")
    lakehouse.sql("refresh materialized view s.m")
    assert rows(lakehouse, "select * from s.m") == [(1,), (2,), (3,)]


def test_files_that_cannot_be_read_are_named_and_nothing_is_written(lakehouse: Lakehouse, files: Path) -> None:
    lakehouse.sql("create table s.t (id bigint) tblproperties (primaryKey = 'id')")
    before = lakehouse.table("s.t").timeline.completed().writes().last()
    for source, message in (
        (call(files / "no"), "there are no csv files"),
        (call(files, "schema => 'id nothing'"), "their 'schema', 'id nothing', is no list of columns and types: .*NOTHING"),
        (f"read_files('{files.parent}/zero.csv', format => 'csv', header => true)", "to tell the columns from: give their 'schema'"),
        (f"read_files('{files.parent}/empty', format => 'parquet')", "give their 'schema'"),
    ):
        (files.parent / "empty").mkdir(exist_ok=True)
        (files.parent / "zero.csv").touch()
        with pytest.raises(UnreadableFilesError, match=message):
            lakehouse.sql(f"insert into s.t select id from {source}")
    assert lakehouse.table("s.t").timeline.completed().writes().last() == before


def test_a_warehouse_without_files_refuses_them_also_below_views(lakehouse: Lakehouse, files: Path) -> None:
    lakehouse.sql(f"create view s.w as select * from {call(files)}")
    closed = Lakehouse(lakehouse.warehouse, spark=lakehouse.sql("select 1").sparkSession.newSession(), allow_files=False)
    for text in (f"select * from {call(files)}", "select * from s.w", f"create view s.x as select * from {call(files)}"):
        with pytest.raises(UnsupportedSqlError, match="allow_files: false"):
            closed.sql(text)
