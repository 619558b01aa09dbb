"""DataFrames are evaluated once, before the table is locked: queries of several writers run side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.format.file_names import TEMP_FOLDER
from lakehouse_engine.model.write_stats import WriteResult


@pytest.fixture(params=["cow", "mor"])
def stock(request: pytest.FixtureRequest, lakehouse: Lakehouse) -> HoodieTable:
    schema = pa.schema([("id", pa.int64()), ("n", pa.string())])
    table = lakehouse.create_table("shop.stock", schema=schema, record_key=["id"], table_type=request.param)
    table.insert(pa.table({"id": [1, 2], "n": ["old", "old"]}, schema=schema))
    return table


def waiting(spark: SparkSession, folder: Path, name: str, others: list[str], key: int) -> DataFrame:
    """A row whose query ends when those of `others` have begun, and leaves a file for each time that it ran."""
    path = str(folder)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            (Path(path) / f"{name}-{time.time_ns()}").touch()
            deadline = time.monotonic() + 60
            while not all(list(Path(path).glob(f"{other}-*")) for other in others):
                assert time.monotonic() < deadline, f"{others} did not begin while {name} ran"
                time.sleep(0.01)
            yield batch

    rows: Callable[..., DataFrame] = spark.range(key, key + 1, 1, 1).selectExpr("id", f"'{name}' as n").mapInArrow
    return rows(run, "id bigint, n string")


@pytest.mark.parametrize("act", [HoodieTable.upsert, HoodieTable.insert, HoodieTable.bulk_insert])
def test_queries_of_two_writers_of_one_file_run_at_the_same_time_and_once(
    stock: HoodieTable, spark: SparkSession, tmp_path: Path, act: Callable[..., WriteResult]
) -> None:
    (tmp_path / "ran").mkdir()

    def write(name: str, other: str, key: int) -> None:
        frame = waiting(spark, tmp_path / "ran", name, [other], key)
        act(HoodieTable.open(stock.path, spark=spark), frame, options={"hoodie.write.lock.wait_time_ms": "60000"})

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, ["one", "two"], ["two", "one"], [3, 4]))
    read = stock.to_arrow(["id", "n"]).sort_by("id")
    assert read.to_pydict() == {"id": [1, 2, 3, 4], "n": ["old", "old", "one", "two"]}
    assert len({path.name.partition("-")[0] for path in (tmp_path / "ran").iterdir()}) == 2 == len(list((tmp_path / "ran").iterdir()))
    assert [entry.name for entry in stock.storage.list(TEMP_FOLDER)] == []


def test_columns_that_came_while_a_query_ran_are_null_in_its_rows(stock: HoodieTable, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "ran").mkdir()
    reconcile = {"hoodie.datasource.write.reconcile.schema": "true"}

    def widen() -> None:
        stock.upsert(pa.table({"id": [1], "n": ["wide"], "m": [7]}), options=reconcile)
        (tmp_path / "ran" / "widened-0").touch()

    with ThreadPoolExecutor(1) as pool:
        frame = waiting(spark, tmp_path / "ran", "slow", ["widened"], 2)
        slow = pool.submit(HoodieTable.open(stock.path, spark=spark).upsert, frame, options=reconcile)
        while not list((tmp_path / "ran").glob("slow-*")):
            assert not slow.done()
            time.sleep(0.01)
        widen()
        slow.result()
    read = stock.to_arrow(["id", "n", "m"]).sort_by("id")
    assert read.to_pydict() == {"id": [1, 2], "n": ["wide", "slow"], "m": [7, None]}
    assert len(list((tmp_path / "ran").glob("slow-*"))) == 1
