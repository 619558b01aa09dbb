"""What CREATE TABLE and ALTER TABLE say of columns, and what writes of every kind make of it."""

from __future__ import annotations

import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import ConstraintError, LakehouseError, UnsupportedSqlError, UnsupportedTypeError

CREATE = "create table s.t (id bigint, name string not null, code varchar(3)) using hudi tblproperties (primaryKey = 'id', type = '{}')"


def stored(lakehouse: Lakehouse) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in lakehouse.sql("select id, name, code from s.t").collect())


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_statements_and_frames_that_break_a_constraint_are_refused_and_change_nothing(lakehouse: Lakehouse, kind: str) -> None:
    lakehouse.sql(CREATE.format(kind))
    lakehouse.sql("insert into s.t values (1, 'a', 'abc'), (2, 'b', null)")
    before = stored(lakehouse)
    for text in (
        "insert into s.t values (3, null, 'abc')",
        "insert into s.t (id, code) values (3, 'abc')",
        "insert overwrite s.t values (3, 'c', 'abcd')",
        "update s.t set name = null where id = 2",
        "update s.t set code = 'abcd'",
        "merge into s.t t using (select 1 as id, cast(null as string) as name) s on t.id = s.id when matched then update set name = s.name",
        "merge into s.t t using (select 9 as id) s on t.id = s.id when not matched then insert (id) values (s.id)",
    ):
        with pytest.raises(ConstraintError, match=r"name|code"):
            lakehouse.sql(text)
    frame = lakehouse.sql("select 4L as id, 'x' as name, 'abcd' as code")
    for write in (lakehouse.table("s.t").bulk_insert, lakehouse.table("s.t").upsert):
        with pytest.raises(ConstraintError, match="record key '4'"):
            write(frame)
    assert stored(lakehouse) == before


def test_they_are_shown_and_the_statement_that_is_shown_makes_the_same_table(lakehouse: Lakehouse) -> None:
    lakehouse.sql(CREATE.format("cow"))
    described = [tuple(row)[:2] for row in lakehouse.sql("describe s.t").collect()]
    assert described == [("id", "bigint"), ("name", "string NOT NULL"), ("code", "varchar(3)")]
    shown = lakehouse.sql("show create table s.t").collect()[0][0]
    lakehouse.sql(shown.replace("s.t", "s.u"))
    assert lakehouse.table("s.u").config.constraints == lakehouse.table("s.t").config.constraints


def test_alter_table_checks_what_is_stored_and_follows_the_columns(lakehouse: Lakehouse) -> None:
    lakehouse.sql(CREATE.format("cow"))
    lakehouse.sql("insert into s.t values (1, 'a', null)")
    with pytest.raises(ConstraintError, match=r"'code' is null in stored rows.*'1'"):
        lakehouse.sql("alter table s.t alter column code set not null")
    lakehouse.sql("alter table s.t alter column name drop not null")
    lakehouse.sql("insert into s.t values (2, null, 'abc')")
    with pytest.raises(UnsupportedSqlError, match="can only grow"):
        lakehouse.sql("alter table s.t alter column code type varchar(2)")
    lakehouse.sql("alter table s.t alter column code type varchar(4)")
    lakehouse.sql("alter table s.t rename column code to kind")
    with pytest.raises(ConstraintError, match=r"'kind' has more characters than VARCHAR\(4\)"):
        lakehouse.sql("insert into s.t values (3, 'c', 'abcde')")
    lakehouse.sql("delete from s.t where id = 1")
    lakehouse.sql("alter table s.t alter column kind set not null")
    lakehouse.sql("alter table s.t alter column kind type string")
    with pytest.raises(ConstraintError, match="'kind' is null"):
        lakehouse.sql("insert into s.t values (3, 'c', null)")
    lakehouse.sql("alter table s.t drop column kind")
    lakehouse.sql("alter table s.t add columns (kind varchar(2))")
    lakehouse.sql("insert into s.t values (3, 'c', null)")
    with pytest.raises(ConstraintError, match=r"VARCHAR\(2\)"):
        lakehouse.sql("insert into s.t values (4, 'c', 'abc')")
    lakehouse.sql("create or replace table s.t (id bigint, name string, kind string not null) tblproperties (primaryKey = 'id')")
    lakehouse.sql("insert into s.t values (4, null, 'abc')")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("create table s.t (id bigint, c char(3))", UnsupportedTypeError),
        ("create table s.t (id bigint, c array<varchar(3)>)", UnsupportedTypeError),
        ("create table s.t (id bigint, c struct<a: int not null>)", UnsupportedTypeError),
        ("create table s.t (id bigint, c varchar)", UnsupportedTypeError),
    ],
)
def test_what_cannot_be_kept_is_refused_and_nothing_is_made(lakehouse: Lakehouse, text: str, error: type[LakehouseError]) -> None:
    with pytest.raises(error, match="column c"):
        lakehouse.sql(text)
    assert not lakehouse.exists("s.t")


def test_a_new_column_cannot_be_not_null(lakehouse: Lakehouse) -> None:
    lakehouse.sql(CREATE.format("cow"))
    with pytest.raises(UnsupportedSqlError, match="SET NOT NULL"):
        lakehouse.sql("alter table s.t add columns (x int not null)")
    assert lakehouse.table("s.t").schema.names == ["id", "name", "code"]
