"""A warehouse that allows no files, on a real session."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.binding.files import ON_FILES_KEY


def test_files_are_refused_where_they_are_not_allowed_also_behind_a_stored_view(lakehouse: Lakehouse, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    lakehouse.sql("create table s.t (id bigint)")
    lakehouse.sql("insert into s.t values (1)")
    lakehouse.sql(f"create view s.v as select * from csv.`{secret}`")
    assert lakehouse.sql("select * from s.v").count() == 2
    spark = lakehouse.sql("select 1").sparkSession.newSession()
    closed = Lakehouse(lakehouse.warehouse, spark=spark, allow_files=False)
    for text in (
        f"select * from csv.`{secret}`",
        "select * from s.v",
        f"insert into s.t select cast(_c0 as bigint) from csv.`{secret}`",
        f"update s.t set id = 2 where exists (select 1 from text.`{secret}`)",
        f"create table s.u as select * from csv.`{secret}`",
        f"create view s.w as select * from csv.`{secret}`",
        f"merge into s.t using csv.`{secret}` on id = _c0 when matched then delete",
        f"insert overwrite directory '{tmp_path}/out' using csv select * from s.t",
    ):
        with pytest.raises(UnsupportedSqlError):
            closed.sql(text)
    assert spark.conf.get(ON_FILES_KEY) == "false"
    assert closed.sql("select id from s.t;").collect() == [(1,)]
    assert closed.with_session(spark).sql("with c as (select 1 as id) select * from c join s.t using (id)").count() == 1
    assert sorted(lakehouse.tables("s") + lakehouse.views("s")) == ["s.t", "s.v"]
    assert not (tmp_path / "out").exists()
