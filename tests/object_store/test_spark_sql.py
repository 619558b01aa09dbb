"""SQL over tables in an object store, by a Spark that has no file system for it: what the driver reads, and what executors read."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import ReadOnlyError, TableError
from lakehouse_engine.spark.frames.stashed import StashedRows, stash
from lakehouse_engine.storage.locations import storage_for
from tests.object_store.dbt_store import Store, s3_store

__all__ = ["s3_store"]
pytestmark = pytest.mark.spark

CONF = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}
EXECUTORS = {"lakehouse.read.files.driver.max.bytes": 0, "lakehouse.stage.driver.max.bytes": 0}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[2]")
    for key, value in {**CONF, "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("spark"))}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
    SparkSession._instantiatedSession = None


@pytest.fixture(params=[{}, EXECUTORS], ids=["driver", "executors"])
def lakehouse(request: pytest.FixtureRequest, spark: SparkSession, s3_store: Store) -> Lakehouse:
    place = s3_store.place(f"sql-{uuid.uuid4().hex}")
    return Lakehouse(place, spark=spark.newSession(), options=request.param, storage_options=s3_store.options)


def rows(lakehouse: Lakehouse, query: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lakehouse.sql(query).collect())


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_statements_that_change_rows(kind: str, lakehouse: Lakehouse) -> None:
    lakehouse.sql("create schema s")
    lakehouse.sql(
        "create table s.t (id int, name string, tags array<string>, part string) using hudi partitioned by (part)"
        f" tblproperties (primaryKey = 'id', type = '{kind}')"
    )
    lakehouse.sql("insert into s.t select id, concat('n', id), array('a', null), if(id % 2 = 0, 'x', 'y ') from range(20)")
    lakehouse.sql("update s.t set name = 'u' where id < 3")
    lakehouse.sql("delete from s.t where id >= 10")
    lakehouse.sql(
        "merge into s.t using (select id, 'm' as name, array('z') as tags, 'x' as part from range(8, 12)) as n on t.id = n.id"
        " when matched then update set name = n.name when not matched then insert *"
    )
    expected = [*((number, "u") for number in range(3)), *((number, f"n{number}") for number in range(3, 8))]
    expected += [(number, "m") for number in range(8, 12)]
    assert rows(lakehouse, "select id, name from s.t") == expected
    assert rows(lakehouse, "select count(*) from s.t where part = 'y '") == [(5,)]
    assert rows(lakehouse, "select a.id from s.t a join s.t b on a.id = b.id + 1 where b.name = 'u'") == [(1,), (2,), (3,)]
    first = lakehouse.table("s.t").timeline.completed().first()
    assert rows(lakehouse, f"select count(*), max(name) from s.t version as of '{first.requested_time}'") == [(20, "n9")]
    assert rows(lakehouse, "select distinct name from hudi_table_changes('s.t', 'latest_state', 'earliest') where id > 9") == [("m",)]
    assert len(lakehouse.table("s.t").to_arrow()) == 12


def test_views_procedures_and_what_has_no_rename(lakehouse: Lakehouse) -> None:
    lakehouse.sql("create schema s")
    lakehouse.sql("create table s.t using hudi tblproperties (primaryKey = 'id') as select id, 'a' as v from range(3)")
    lakehouse.sql("create view s.seen as select id from s.t where v = 'a'")
    assert rows(lakehouse, "select count(id) from s.seen") == [(3,)]
    lakehouse.table("s.t").savepoint(name="kept")
    lakehouse.sql("update s.t set v = 'b'")
    assert rows(lakehouse, "select count(*) from s.seen") == [(0,)]
    lakehouse.table("s.t").restore("kept")
    assert rows(lakehouse, "select count(*) from s.seen") == [(3,)]
    lakehouse.sql("create table s.twin clone s.t")
    lakehouse.sql("delete from s.twin where id = 0")
    assert rows(lakehouse, "select t.id, c.v is null from s.t left join s.twin c on t.id = c.id") == [(0, True), (1, False), (2, False)]
    with pytest.raises(TableError, match="drop the table first"):
        lakehouse.sql("create or replace table s.twin clone s.t")
    lakehouse.sql("drop table s.twin")
    lakehouse.sql("drop table s.t")
    assert lakehouse.tables() == []


def test_a_session_has_no_settings_of_the_store(lakehouse: Lakehouse, spark: SparkSession, s3_store: Store) -> None:
    told = str(spark.sparkContext.getConf().getAll())
    assert not [secret for secret in s3_store.secrets if secret.decode() in told]


def test_the_plan_of_a_query_does_not_show_keys(lakehouse: Lakehouse, s3_store: Store) -> None:
    lakehouse.sql("create table s.t using hudi tblproperties (primaryKey = 'id') as select id from range(3)")
    said = lakehouse.sql("select * from s.t")._jdf.queryExecution().toString() + repr(lakehouse.table("s.t").storage)
    assert not [secret for secret in s3_store.secrets if secret.decode() in said]


def test_rows_are_kept_for_another_session(spark: SparkSession, s3_store: Store) -> None:
    storage = storage_for(s3_store.place("kept"), s3_store.options)
    frame = spark.range(0, 200_000, 1, 3).selectExpr("id", "repeat('x', 50) as v", "timestamp_micros(id) as t")
    again = stash(frame, storage, "rows")
    assert isinstance(again.__self__, StashedRows)  # type: ignore[attr-defined]
    found = again(spark.newSession())
    assert found.schema == frame.schema
    assert found.selectExpr("count(*)", "sum(id)", "max(t) = timestamp_micros(199999)").collect() == [(200_000, 19_999_900_000, True)]
    assert stash(frame.limit(3), storage, "few")(spark.newSession()).count() == 3
    assert not storage.list("few")
    assert stash(frame.where("id < 0").repartition(2), storage, "none")(spark.newSession()).count() == 0


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_bucket_attached_to_a_directory_is_read_and_cloned_and_not_changed(
    kind: str, lakehouse: Lakehouse, s3_store: Store, spark: SparkSession, tmp_path: Path
) -> None:
    keys = f"tblproperties (primaryKey = 'id', type = '{kind}')"
    lakehouse.sql(f"create table s.t (id int, name string) {keys}")
    lakehouse.sql("insert into s.t values (1, 'a'), (2, 'b')")
    lakehouse.sql("update s.t set name = 'c' where id = 2")
    lakehouse.sql("create view s.v as select name from s.t where id = 2")
    there = storage_for(lakehouse.warehouse, s3_store.options)
    before = there.walk()
    place = {"warehouse": lakehouse.warehouse, "storage_options": s3_store.options}
    ours = Lakehouse(str(tmp_path / "ours"), spark=spark.newSession(), options=lakehouse._options, catalogs={"prod": place})
    assert rows(ours, "select * from prod.s.t") == [(1, "a"), (2, "c")]
    assert rows(ours, "select * from prod.s.v") == [("c",)]
    ours.sql("create table s.t clone prod.s.t")
    assert rows(ours, "select p.name, o.name from prod.s.t p join s.t o using (id)") == [("a", "a"), ("c", "c")]
    for text in ("delete from prod.s.t", "drop table prod.s.t"):
        with pytest.raises(ReadOnlyError):
            ours.sql(text)
    assert there.walk() == before
