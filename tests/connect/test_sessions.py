"""What is different over Spark Connect: plans made anew, messages with a limit, a server that looks at other files, or is not there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyspark.pandas
import pytest
from dbt_common.exceptions import DbtConfigError, DbtRuntimeError
from pyspark.sql import SparkSession

from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.environments.connect import ConnectEnvironment
from dbt.adapters.lakehouse.work.model_rows import as_frame
from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import ExecutorStorageError, RecordKeyError
from lakehouse_engine.spark import abilities
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.tasks.handshake import ensure_server
from lakehouse_engine.storage.local import LocalStorage
from tests.support.connect_server import ConnectServer
from tests.support.processes import HOST, free_port
from tests.support.readers import assert_same_rows

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])


def rows(first: int, last: int, n: int) -> pa.Table:
    return pa.table({"id": list(range(first, last)), "n": [n] * (last - first)}, schema=SCHEMA)


def test_the_server_says_how_much_it_does_at_once(spark: SparkSession) -> None:
    assert abilities_of(spark).parallelism == 2


def test_a_merge_of_random_values_writes_or_deletes_each_row_once(lakehouse: Lakehouse) -> None:
    """Were the join made anew for the keys to be deleted, `rand()` in it would have another seed than for the rows to be written."""
    table = lakehouse.create_table("shop.t", schema=SCHEMA, record_key=["id"])
    table.bulk_insert(rows(0, 200, 0))
    lakehouse.sql(
        "merge into shop.t using (select id, rand() as r from range(200)) s on t.id = s.id"
        " when matched and s.r < 0.5 then delete when matched then update set n = 1"
    )
    left = table.to_arrow(["id", "n"])
    assert 0 < left.num_rows < 200
    assert left["n"].unique().to_pylist() == [1], "a row was neither deleted nor written"


def test_what_executors_read_is_sent_as_rows_above_what_a_message_should_have(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abilities._Connect, "most_in_closure", 0)
    lakehouse = Lakehouse(str(tmp_path), spark=spark, options={"lakehouse.read.logs.driver.max.bytes": 0})
    lakehouse.create_schema("shop")
    table = lakehouse.create_table("shop.t", schema=SCHEMA, record_key=["id"], table_type="mor")
    table.bulk_insert(rows(0, 50, 0))
    table.upsert(rows(10, 20, 1))
    frame = lakehouse.table("shop.t").dataframe()
    assert_same_rows(frame.toArrow(), table.to_arrow())


def test_a_server_that_does_not_find_the_table_is_named(lakehouse: Lakehouse, spark: SparkSession, tmp_path: Path) -> None:
    lakehouse.create_table("shop.t", schema=SCHEMA, record_key=["id"])
    ensure_server(spark, LocalStorage(f"{lakehouse.warehouse}/shop/t"))
    with pytest.raises(ExecutorStorageError, match="Spark Connect server does not find the table"):
        ensure_server(spark, LocalStorage(str(tmp_path / "elsewhere")))


def test_the_engine_is_sent_to_a_session(server: ConnectServer, tmp_path: Path) -> None:
    session = server.session()
    lakehouse = Lakehouse(str(tmp_path), spark=session, options={"lakehouse.ship.engine": "true"})
    lakehouse.create_schema("shop")
    table = lakehouse.create_table("shop.t", schema=SCHEMA, record_key=["id"])
    assert table.upsert(session.range(3).selectExpr("id", "1L as n")).inserts == 3

    def where(batches):  # type: ignore[no-untyped-def]
        import lakehouse_engine

        for _ in batches:
            yield pa.record_batch([pa.array([lakehouse_engine.__file__])], ["file"])

    assert ".zip" in session.range(1).mapInArrow(where, "file string").toArrow()["file"][0].as_py()


def test_errors_of_rows_come_as_they_were_raised(lakehouse: Lakehouse, spark: SparkSession) -> None:
    table: HoodieTable = lakehouse.create_table("shop.t", schema=SCHEMA, record_key=["id"])
    with pytest.raises(RecordKeyError):
        table.upsert(spark.sql("select cast(null as bigint) as id, 1L as n"))
    assert len(table.timeline) == 0


def environment(url: str, **given: object) -> ConnectEnvironment:
    return ConnectEnvironment(LakehouseCredentials.from_dict({"schema": "s", "method": "connect", "url": url, **given}))


def test_a_released_session_is_used_again_without_what_was_left_in_it(server: ConnectServer) -> None:
    place = environment(server.url, spark_config={"spark.sql.shuffle.partitions": 3})
    first = place.session()
    first.range(1).createOrReplaceTempView("left_over")
    first.sql("set spark.sql.shuffle.partitions=7")
    first.sql("create temporary function left_behind as 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFAbs'")
    place.release(first, as_new=True)
    again, other = place.session(), place.session()
    assert again is first
    assert other is not first
    assert again.conf.get("spark.sql.shuffle.partitions") == "3"
    assert again.sql("show views").count() == 0
    assert again.sql("show user functions").count() == 0
    again.sql("declare variable left_over = 1")
    place.release(again, as_new=False)
    assert place.session() is not again


@pytest.mark.filterwarnings("ignore:If `index_col` is not specified")
def test_models_and_pandas_on_spark_find_the_session_of_their_thread(server: ConnectServer) -> None:
    """Also where PySpark made none in the thread, and where the one that it made there is stopped."""
    place = environment(server.url)
    ended, idle = place.session(), place.session()
    place.release(ended, as_new=False)
    place.release(idle, as_new=True)

    def found() -> tuple[bool, bool]:
        session = place.session()
        frame = pyspark.pandas.DataFrame({"id": [1, 2]})
        return session is SparkSession.getActiveSession(), frame.to_spark().sparkSession is session

    assert found() == (True, True)
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(found).result() == (True, True)


def test_answers_of_models_without_rows_have_the_columns_of_those_with_rows(spark: SparkSession) -> None:
    some = pa.table({"i": [1], "t": [datetime(2026, 1, 1, tzinfo=UTC)], "l": [[{"a": 1, "b": "x"}]], "d": [Decimal("1.5")]})
    none = some.slice(0, 0)
    frames = [as_frame(one, spark, "model.x") for one in (some, none, none.to_pandas(types_mapper=pd.ArrowDtype))]
    assert frames[0].count() == 1
    assert [(frame.schema, frame.count()) for frame in frames[1:]] == [(frames[0].schema, 0)] * 2


def test_settings_of_a_server_are_refused_by_name(server: ConnectServer) -> None:
    for key in ("spark.driver.memory", "spark.sql.warehouse.dir"):
        with pytest.raises(DbtConfigError, match=f"{key}.*where the server is started"):
            environment(server.url, spark_config={key: "1"}).session()


def test_where_no_server_is_it_is_said_at_once_without_the_token(server: ConnectServer) -> None:
    with pytest.raises(DbtRuntimeError, match="There is no Spark Connect server at sc://") as caught:
        environment(f"sc://{HOST}:{free_port()}/;token=hidden", connect_retries=1, connect_timeout=0.2).session()
    assert "hidden" not in str(caught.value)


def test_debug_says_which_server_and_which_spark(server: ConnectServer) -> None:
    assert environment(server.url).describe() == {"spark": f"{pyspark.__version__}, Spark Connect server at {server.url}"}
