"""`hoodie.bulkinsert.sort.mode` for DataFrames: which files Spark's tasks write, and in which order rows are in them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import RecordKeyError

MODE = "hoodie.bulkinsert.sort.mode"
COLUMNS = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"
BY_TASKS = {"lakehouse.stage.driver.max.bytes": 0}
COUNT = 2000
PARTITIONS = 5
TASKS = 3

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("x", pa.float64())])


@pytest.fixture
def table(lakehouse: Lakehouse) -> HoodieTable:
    return lakehouse.create_table("shop.sorted", schema=SCHEMA, record_key=["id"], partition_by=["p"])


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    """Rows in no order, in tasks that have some of every partition each."""
    numbers = spark.range(0, COUNT, 1, TASKS).selectExpr("pmod(id * 7919, 2000) as id")
    return numbers.selectExpr("id", f"concat('part ', pmod(id, {PARTITIONS})) as p", "if(id % 20 = 0, null, pmod(id * 31, 997) / 10D) as x")


def files(table: HoodieTable) -> list[pa.Table]:
    """The rows of each base file, in the order of the tasks that wrote them, and of their files."""
    paths = [path for path in Path(table.path).rglob("*.parquet") if ".hoodie" not in path.parts]
    found = [pq.ParquetFile(path).read() for path in paths]

    def number(file: pa.Table) -> tuple[int, int]:
        task = int(file.column("_hoodie_commit_seqno")[0].as_py().split("_")[1])
        return task % 1_000_000, task // 1_000_000

    return sorted(found, key=number)


def tasks_of_partitions(written: list[pa.Table]) -> Counter[str]:
    """How many files each partition has."""
    return Counter(file.column("p")[0].as_py() for file in written)


def joined(written: list[pa.Table], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for file in written for row in file.to_pylist()]


@pytest.mark.parametrize("again", [False, True], ids=["first write", "staged"])
def test_each_mode_deals_and_orders_rows_as_hudi_says(table: HoodieTable, frame: DataFrame, again: bool) -> None:
    """A first write streams rows into files; a later one stages them before the lock, arranged already."""
    if again:
        table.bulk_insert(pa.table({"id": [9999], "p": ["other"], "x": [0.0]}, schema=SCHEMA))
    keys = ("_hoodie_partition_path", "_hoodie_record_key")
    for mode in ("NONE", "PARTITION_SORT", "GLOBAL_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT", None):
        table.insert_overwrite_table(frame, options={**BY_TASKS, **({} if mode is None else {MODE: mode})})
        written = [file for file in files(table) if file.column("_hoodie_commit_time")[0].as_py() == table.history()[0].instant]
        rows = joined(written, *keys)
        assert sorted(row[0] for row in joined(written, "id")) == list(range(COUNT))
        counts = tasks_of_partitions(written)
        assert len(counts) == PARTITIONS
        if mode in ("NONE", "PARTITION_SORT"):
            assert set(counts.values()) == {TASKS}, mode
        elif mode != "GLOBAL_SORT":
            assert set(counts.values()) == {1}, mode
        else:
            assert sum(counts.values()) <= PARTITIONS + 1
        assert (rows == sorted(rows)) is (mode == "GLOBAL_SORT"), mode
        sorted_files = [joined([file], *keys) == sorted(joined([file], *keys)) for file in written]
        assert all(sorted_files) if mode in ("PARTITION_SORT", "GLOBAL_SORT") else not any(sorted_files), mode


@pytest.mark.parametrize("mode", [None, "PARTITION_SORT", "PARTITION_PATH_REPARTITION_AND_SORT"])
def test_named_columns_are_sorted_by_nulls_first(table: HoodieTable, frame: DataFrame, mode: str | None) -> None:
    table.bulk_insert(frame, options={**BY_TASKS, COLUMNS: "X, id", **({} if mode is None else {MODE: mode})})
    written = files(table)
    for file in written if mode is not None else [pa.concat_tables(written)]:
        rows = joined([file], "p", "x", "id")
        assert rows == sorted(rows, key=lambda row: (row[0], row[1] is not None, row[1] or 0.0, row[2]))
    counts = tasks_of_partitions(written)
    assert set(counts.values()) == ({1} if mode == "PARTITION_PATH_REPARTITION_AND_SORT" else {TASKS}) or mode is None
    assert table.to_arrow().num_rows == COUNT


def test_partition_paths_that_are_made_of_times_are_sorted_by_as_they_are(lakehouse: Lakehouse, spark: SparkSession) -> None:
    """Not by the times, or rows of a day would be in the order of their times and not of the column."""
    generator = {
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
    }
    schema = pa.schema([("id", pa.int64()), ("at", pa.int64()), ("x", pa.int64())])
    table = lakehouse.create_table("shop.days", schema=schema, record_key=["id"], partition_by=["at"], properties=generator)
    frame = spark.range(0, 600, 1, 2).selectExpr("id", "id * 400000 as at", "pmod(id * 7919, 600) as x")
    table.bulk_insert(frame, options={**BY_TASKS, COLUMNS: "x"})
    rows = joined(files(table), "_hoodie_partition_path", "x")
    assert rows == sorted(rows)
    assert len({path for path, _ in rows}) == 3


def test_rows_without_a_key_are_refused_in_the_words_of_the_write(table: HoodieTable, frame: DataFrame) -> None:
    with pytest.raises(RecordKeyError):
        table.bulk_insert(frame.selectExpr("nullif(id, 7) as id", "p", "x"), options={**BY_TASKS, MODE: "GLOBAL_SORT"})
    assert table.history() == []


def test_few_rows_that_come_to_the_driver_are_sorted_there(table: HoodieTable, spark: SparkSession) -> None:
    frame = spark.createDataFrame([(number * 7 % 50, "a", float(number)) for number in range(50)], "id bigint, p string, x double")
    for _ in range(2):
        table.insert_overwrite_table(frame, options={COLUMNS: "x"})
        [file] = [file for file in files(table) if file.column("_hoodie_commit_time")[0].as_py() == table.history()[0].instant]
        assert file.column("x").to_pylist() == [float(number) for number in range(50)]
    assert pc.count_distinct(table.to_arrow().column("id")).as_py() == 50
