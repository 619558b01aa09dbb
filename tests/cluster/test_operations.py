"""Everything that changes a table gives on a cluster, speculation included, what it gives in one process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.format.file_names import TEMP_FOLDER
from lakehouse_engine.spark.tasks import handshake
from lakehouse_engine.spark.tasks.parcels import INLINE
from lakehouse_engine.verify.table import verify

SPARK_CONF = {
    # Every task that is not done at once is run a second time.
    "spark.speculation": "true",
    "spark.speculation.interval": "20ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.0",
    "spark.speculation.minTaskRuntime": "1ms",
}


def rows(first: int, count: int, value: str, at: int = 1) -> pa.Table:
    numbers = list(range(first, first + count))
    return pa.table(
        {
            "id": numbers,
            "part": [f"p{number % 3}" for number in numbers],
            "at": [at] * count,
            "text": [f"{value} {number}" for number in numbers],
            "note": pa.array([None if number % 5 else value for number in numbers], pa.string()),
        }
    )


def keys(*numbers: int) -> pa.Table:
    return pa.table({"id": list(numbers), "part": [f"p{number % 3}" for number in numbers]})


Step = tuple[str, Callable[[HoodieTable, Callable[[pa.Table], Any]], Any]]
STEPS: list[Step] = [
    ("bulk_insert", lambda table, data: table.bulk_insert(data(rows(0, 900, "bulk")))),
    ("insert", lambda table, data: table.insert(data(rows(900, 300, "inserted")))),
    ("upsert", lambda table, data: table.upsert(data(rows(600, 900, "upserted", 3)))),
    ("older rows", lambda table, data: table.upsert(data(rows(1400, 200, "older", 2)))),
    ("some columns", lambda table, data: table.upsert(data(rows(0, 60, "noted", 4)), merge_update_columns=["note", "at"])),
    ("upsert and delete", lambda table, data: table.upsert(data(rows(1600, 9, "new")), delete_keys=data(keys(1, 2, 3, 700)))),
    ("delete", lambda table, data: table.delete(data(keys(4, 5, 6, 1000, 99_999)))),
    ("replace_rows", lambda table, data: table.replace_rows(data(rows(5000, 2, "instead")), replaced=data(numbers_of(table, [7, 8])))),
    ("compact", lambda table, data: table.compact() if table.config.table_type.value == "MERGE_ON_READ" else None),
    ("insert_overwrite", lambda table, data: table.insert_overwrite(data(rows(3, 1, "alone")))),
    ("delete_partitions", lambda table, data: table.delete_partitions(["part=p1"])),
    ("upsert again", lambda table, data: table.upsert(data(rows(0, 30, "again", 9)))),
    ("insert_overwrite_table", lambda table, data: table.insert_overwrite_table(data(rows(10, 40, "whole")))),
    ("clean", lambda table, data: table.clean()),
]


def numbers_of(table: HoodieTable, ids: list[int]) -> pa.Table:
    stored = table.to_arrow(["id", "_hoodie_commit_seqno"], meta_columns=True).to_pylist()
    return pa.table({"_hoodie_commit_seqno": [row["_hoodie_commit_seqno"] for row in stored if row["id"] in ids]})


def contents(table: HoodieTable) -> list[dict[str, Any]]:
    return sorted(table.to_arrow().to_pylist(), key=lambda row: (row["id"], row["text"]))


@pytest.mark.parametrize("index", ["BLOOM", "BUCKET"])
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_every_operation_gives_what_one_process_gives(
    spark: SparkSession, lakehouse: Lakehouse, tmp_path: Path, table_type: str, index: str
) -> None:
    local = Lakehouse(str(tmp_path / "local"))
    local.create_schema("shop")
    properties = {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2"} if index == "BUCKET" else {}
    arguments: dict[str, Any] = {"record_key": ["id"], "ordering_fields": ["at"], "partition_by": ["part"], "table_type": table_type}
    ours, theirs = (
        one.create_table("shop.t", schema=rows(0, 1, "").schema, properties=properties, **arguments) for one in (lakehouse, local)
    )
    for number, (name, step) in enumerate(STEPS):
        step(theirs, lambda table: table)
        # Rows from Arrow and from a DataFrame by turns.
        step(ours, spark.createDataFrame if number % 2 == (index == "BUCKET") else lambda table: table)
        assert contents(ours) == contents(theirs), name
    read = ours.dataframe().toArrow().select(ours.schema.names).to_pylist()
    assert sorted(read, key=lambda row: (row["id"], row["text"])) == contents(theirs)
    assert [entry.name for entry in ours.storage.list(TEMP_FOLDER)] == []
    assert verify(ours.state).ok


def test_a_batch_larger_than_a_message_comes_through_a_file(lakehouse: Lakehouse) -> None:
    batch = rows(0, 60_000, "x" * 40)
    assert batch.nbytes > 3 * INLINE
    table = lakehouse.create_table("shop.large", schema=batch.schema, record_key=["id"], table_type="mor")
    table.bulk_insert(batch)
    table.upsert(rows(0, 60_000, "y" * 40, 2))
    assert contents(table) == rows(0, 60_000, "y" * 40, 2).to_pylist()
    assert [entry.name for entry in table.storage.list(TEMP_FOLDER)] == []


@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
def test_executors_decode_logs_after_they_were_asked(spark: SparkSession, lakehouse: Lakehouse, tmp_path: Path, index: str) -> None:
    local = Lakehouse(str(tmp_path / "local"))
    local.create_schema("shop")
    properties = {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2"} if index == "BUCKET" else {"hoodie.index.type": index}
    made = local.create_table(
        "shop.t", schema=rows(0, 1, "").schema, record_key=["id"], partition_by=["part"], table_type="mor", properties=properties
    )
    made.insert(rows(0, 900, "first"))
    made.upsert(rows(600, 600, "second"))
    made.delete(keys(1, 2, 3, 700))
    read = HoodieTable.open(made.path, spark=spark, options={"lakehouse.read.logs.driver.max.bytes": 0})
    frame = read.dataframe()
    found = sorted(frame.toArrow().to_pylist(), key=lambda row: (row["id"], row["text"]))
    assert found == contents(made)
    assert (spark.sparkContext.applicationId, made.storage.root) in handshake._met
    one = read.dataframe(columns=["id"], filters=pc.field("part") == "p1")
    assert sorted(row.id for row in one.collect()) == [row["id"] for row in contents(made) if row["part"] == "p1"]


def test_statements_of_sql_change_and_read_tables(lakehouse: Lakehouse) -> None:
    sql = lakehouse.sql
    sql("create table shop.stock (id bigint, n bigint, day string) using hudi partitioned by (day) tblproperties (primaryKey = 'id')")
    sql("insert into shop.stock select id, id * 2, concat('d', id % 2) from range(100)")
    sql("update shop.stock set n = n + 1 where id < 10")
    sql("delete from shop.stock where id >= 90")
    sql(
        "merge into shop.stock t using (select id, 7L as n, concat('d', id % 2) as day from range(85, 95)) s on t.id = s.id"
        " when matched then update set n = s.n when not matched then insert *"
    )
    got = sql("select id, n, day from shop.stock order by id")
    wanted = {number: number * 2 + (number < 10) for number in range(90)} | dict.fromkeys(range(85, 95), 7)
    assert got.toArrow().to_pylist() == [{"id": number, "n": n, "day": f"d{number % 2}"} for number, n in sorted(wanted.items())]
    sql("create table shop.sums using hudi as select day, sum(n) as total from shop.stock group by day")
    assert sum(row["total"] for row in sql("select total from shop.sums").toArrow().to_pylist()) == sum(wanted.values())
