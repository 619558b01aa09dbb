"""Writes that are planned in shares by executors: the driver has no key of the batch, and tasks are sent little."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import MissingFileError
from lakehouse_engine.spark.tasks.parcels import Packing
from lakehouse_engine.spark.tasks.runner import SparkRunner
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.write import batches
from lakehouse_engine.write.shares import stored
from lakehouse_engine.write.shares.exchange import Exchange

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("p", pa.string()), ("v", pa.string())])
OPTIONS = {
    "lakehouse.write.broadcast.max.bytes": 0,
    "lakehouse.task.runner": "SPARK",
    "lakehouse.stage.driver.max.bytes": 0,
}


def frame(spark: SparkSession, first: int, end: int, ts: int) -> DataFrame:
    return spark.range(first, end).selectExpr("id", f"cast({ts} as bigint) as ts", "cast(id % 3 as string) as p", f"'of {ts}' as v")


@pytest.fixture(params=["cow", "mor"])
def table(request: pytest.FixtureRequest, lakehouse: Lakehouse) -> HoodieTable:
    return lakehouse.create_table(
        "shop.t",
        schema=SCHEMA,
        record_key=["id"],
        ordering_fields=["ts"],
        partition_by=["p"],
        table_type=request.param,
        properties={"hoodie.record.merge.mode": "EVENT_TIME_ORDERING"},
    )


def test_executors_plan_shares_and_the_driver_touches_no_rows(
    table: HoodieTable, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: Any, **named: Any) -> NoReturn:
        raise AssertionError("the driver looks at rows of the batch")

    for module, name in ((batches, "reduce_batch"), (Exchange, "read_part"), (stored, "iter_base_file"), (Exchange, "split_each")):
        monkeypatch.setattr(module, name, refuse)
    table.insert(frame(spark, 0, 3000, 1), options=OPTIONS)
    assert table.upsert(frame(spark, 1500, 4500, 3), options=OPTIONS).route == "LARGE"
    losing = table.upsert(frame(spark, 0, 6000, 2), options=OPTIONS)
    assert (losing.inserts, losing.updates) == (1500, 1500)
    deleted = table.delete(frame(spark, 0, 60, 9).select("id", "p"), options=OPTIONS)
    assert deleted.deletes == 60
    told = table.dataframe(meta_columns=True).where("id >= 4500")
    replaced = table.replace_rows(frame(spark, 7000, 7500, 4), replaced=told, options=OPTIONS)
    assert (replaced.route, replaced.deletes, replaced.inserts) == ("LARGE", 1500, 500)
    found = {row["id"]: row["ts"] for row in table.to_arrow().to_pylist()}
    assert found == {**dict.fromkeys(range(60, 1500), 2), **dict.fromkeys(range(1500, 4500), 3), **dict.fromkeys(range(7000, 7500), 4)}


def test_what_a_task_is_sent_does_not_follow_the_batch(
    table: HoodieTable, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    largest, add = [0], Packing.add

    def counting(packing: Packing, data: bytes) -> None:
        largest[0] = max(largest[0], len(data))
        add(packing, data)

    monkeypatch.setattr(Packing, "add", counting)
    table.insert(frame(spark, 0, 500, 1), options=OPTIONS)
    found = []
    for rows in (500, 20_000):
        largest[0] = 0
        table.upsert(frame(spark, 0, rows, rows), options=OPTIONS)
        found.append(largest[0])
    assert found[1] <= 1.3 * found[0] < 100_000


def partition_of(number: int) -> tuple[int, int]:
    context = TaskContext.get()
    assert context is not None
    if number == 5:
        raise MissingFileError("the file of task 5 is not there")
    return number, context.partitionId()


def test_more_tasks_than_can_be_told_apart_share_those_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Each of Spark's costs as much as a small file does."""
    runner = SparkRunner(spark, LocalStorage(str(tmp_path)))
    most = 8 * runner.parallelism
    found = runner.run(partition_of, range(100, 100 + 3 * most), name="many")
    assert [number for number, _ in found] == [*range(100, 100 + 3 * most)]
    assert sorted(Counter(partition for _, partition in found).values()) == [3] * most
    with pytest.raises(MissingFileError, match="task 5"):
        runner.run(partition_of, range(3 * most), name="many")
