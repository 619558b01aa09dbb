"""Rows that Spark hands to Python: five hundred at a time and unmeasured, in the engine's own jobs and nobody else's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.input import each_partition
from tests.support.connect_server import classic_only

BYTES, ROWS = "spark.sql.execution.arrow.maxBytesPerBatch", "spark.sql.execution.arrow.maxRecordsPerBatch"
PROPERTIES = classic_only("jobs of a server have no properties of their own")


def handed(number: int, batches: Iterator[pa.RecordBatch]) -> tuple[str | None, list[int]]:
    """What a task was told of batches, and the rows of each."""
    context = TaskContext.get()
    assert context is not None
    return context.getLocalProperty(BYTES), [batch.num_rows for batch in batches]


def batches_of(frame: DataFrame) -> list[int]:
    """The batches that a caller's own function gets."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch([pa.array([batch.num_rows])], ["n"])

    found: list[int] = frame.mapInArrow(count, "n bigint").toArrow()["n"].to_pylist()
    return found


@PROPERTIES
def test_the_engine_gets_few_rows_at_once_unmeasured_and_others_as_before(spark: SparkSession) -> None:
    frame = spark.range(0, 4800, 1, 1)
    assert each_partition(frame, handed) == [(str(2**31 - 1), [2000, 2000, 800])]
    shuffled = each_partition(frame.repartition(2, "id"), handed)
    assert {told for told, _ in shuffled} == {str(2**31 - 1)}
    assert (sum(sum(rows) for _, rows in shuffled), max(max(rows, default=0) for _, rows in shuffled)) == (4800, 2000)
    assert batches_of(frame) == [4800]
    assert [spark.sparkContext.getLocalProperty(key) for key in (BYTES, ROWS)] == [None, None]


@PROPERTIES
def test_another_thread_is_not_concerned_meanwhile(spark: SparkSession, tmp_path: Path) -> None:
    """Its query runs while a task of the engine's waits for that."""
    begun, done = tmp_path / "begun", tmp_path / "done"

    def wait(number: int, batches: Iterator[pa.RecordBatch]) -> None:
        begun.touch()
        deadline = time.monotonic() + 60
        while not done.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(each_partition, spark.range(0, 10, 1, 1), wait)
        while not begun.exists():
            assert not held.done()
            time.sleep(0.01)
        try:
            assert batches_of(spark.range(0, 1200, 1, 1)) == [1200]
        finally:
            done.touch()
        held.result()


@PROPERTIES
def test_functions_of_a_query_get_their_batches_as_ever(spark: SparkSession, tmp_path: Path) -> None:
    seen = str(tmp_path)

    def noted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            (Path(seen) / f"{batch.num_rows}-{time.time_ns()}").touch()
            yield batch

    spark.range(0, 1200, 1, 1).mapInArrow(noted, "id bigint").createOrReplaceTempView("noted")
    told, rows = each_partition(spark.table("noted"), handed)[0]
    assert (told, sum(rows)) == (None, 1200)
    assert [path.name.partition("-")[0] for path in tmp_path.iterdir()] == ["1200"]


class TooWide:
    """A query whose rows are too wide for batches that nobody measures."""

    def __init__(self, spark: SparkSession) -> None:
        self.properties, self._context = [], spark.sparkContext

    properties: list[str | None]

    def toArrow(self) -> pa.Table:
        self.properties.append(self._context.getLocalProperty(BYTES))
        if len(self.properties) == 1:
            raise RuntimeError("Caused by: org.apache.arrow.vector.util.OversizedAllocationException: Memory required for vector is (3)")
        return pa.table({"n": [1]})


@PROPERTIES
def test_rows_that_are_too_wide_are_handed_over_measured(spark: SparkSession) -> None:
    query = TooWide(spark)
    assert abilities_of(spark).handed_over(query, given=spark.range(1)).num_rows == 1  # type: ignore[arg-type]
    assert query.properties == [str(2**31 - 1), None]


@PROPERTIES
def test_what_the_session_says_counts(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set(ROWS, "700")
    session.conf.set(BYTES, "2000")
    told, rows = each_partition(session.range(0, 1500, 1, 1), handed)[0]
    assert told == "2000"
    assert sum(rows) == 1500
    assert max(rows) <= 700
    assert len(rows) > 3  # by size, too


@pytest.mark.parametrize("act", ["bulk_insert", "upsert"])
def test_rows_of_any_width_arrive_as_they_are(lakehouse: Lakehouse, spark: SparkSession, act: str) -> None:
    """Some texts of a megabyte between short ones and none, over several batches of a task."""
    wide = "case when id % 250 = 0 then repeat(cast(id as string), 250000) when id % 3 = 0 then null else cast(id as string) end"
    columns = ["id", f"{wide} as text", "array(id, null, id + 1) as some", "encode(cast(id as string), 'utf-8') as raw"]
    frame = spark.range(0, 3300, 1, 2).selectExpr(*columns)
    table = lakehouse.create_table("s.wide", schema=frame.schema, record_key=["id"])
    table.insert(frame.limit(1))
    getattr(HoodieTable.open(table.path, spark=spark), act)(frame, options={"lakehouse.stage.driver.max.bytes": 0})
    read = table.to_arrow(["id", "text", "some", "raw"]).sort_by("id")
    if act == "bulk_insert":  # which looks nothing up
        read = read.slice(1)
    assert read.combine_chunks() == frame.orderBy("id").toArrow().cast(read.schema).combine_chunks()
    assert pc.max(pc.utf8_length(read["text"])).as_py() == 250000 * 4
