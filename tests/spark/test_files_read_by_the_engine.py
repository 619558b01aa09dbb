"""Files that the engine opens for Spark: the rows that Arrow reads, by the driver where there are few, by executors else, none by Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import OptionError
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.frames import fetched, scan
from tests.spark.test_positions import make, rows
from tests.support.readers import assert_same_rows

ENGINE = {"lakehouse.read.files": "engine"}
DRIVER, EXECUTORS = {**ENGINE, "lakehouse.read.files.driver.max.bytes": 10**9}, {**ENGINE, "lakehouse.read.files.driver.max.bytes": 0}


@pytest.fixture
def read_here(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What this process read for Spark."""
    found, original = list[Any](), fetched.iter_task

    def counted(task: Any) -> Any:
        found.append(task)
        return original(task)

    monkeypatch.setattr(fetched, "iter_task", counted)
    return found


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    """Two partitions, one of them with a log."""
    made = make(tmp_path / "t", partitioned=True)
    made.bulk_insert(rows(list(range(100)), 1))
    made.upsert(rows([0, 2, 4], 2))
    return made


@pytest.mark.parametrize("options", [DRIVER, EXECUTORS], ids=["driver", "executors"])
def test_rows_are_those_that_arrow_reads(options: dict[str, Any], table: HoodieTable, spark: SparkSession, read_here: list[Any]) -> None:
    times = [write.requested_time for write in table.timeline.completed().writes()]
    ours = HoodieTable.open(table.path, spark=spark, options=options)
    for query in ({}, {"as_of": times[0]}, {"query": "incremental", "begin": times[0]}, {"query": "read_optimized"}):
        frame = ours.dataframe(meta_columns=True, **query)
        expected = table.to_arrow(meta_columns=True, **query)
        assert frame.columns == expected.schema.names
        assert_same_rows(frame.toArrow(), expected, what=str(query))
        assert frame.select("id").count() == expected.num_rows
    assert bool(read_here) == (options is DRIVER)


def test_spark_opens_nothing(table: HoodieTable, spark: SparkSession) -> None:
    assert HoodieTable.open(table.path, spark=spark).dataframe(query="read_optimized").inputFiles()
    for options in (DRIVER, EXECUTORS):
        assert not HoodieTable.open(table.path, spark=spark, options=options).dataframe(query="read_optimized").inputFiles()


def test_statements_after_each_other_read_a_file_once(tmp_path: Path, spark: SparkSession, read_here: list[Any]) -> None:
    lakehouse = Lakehouse(str(tmp_path), spark=spark, options=ENGINE)
    lakehouse.sql("create table s.t (k int, v string) using hudi tblproperties (primaryKey = 'k')")
    lakehouse.sql("insert into s.t values (1, 'a'), (2, 'b')")
    assert lakehouse.sql("select max(k), count(v) from s.t").collect() == [(2, 2)]
    before = len(read_here)
    assert before
    assert lakehouse.sql("select a.k from s.t a join s.t b on a.k = b.k where b.v = 'b'").collect() == [(2,)]
    assert len(read_here) == before
    lakehouse.sql("update s.t set v = 'c' where k = 2")
    assert lakehouse.sql("select v from s.t where k = 2").collect() == [("c",)]


def test_rows_that_grow_out_of_their_files_are_left_to_executors(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, original = list[int](), scan.decoded

    def counted(session: Any, storage: Any, tasks: Any, *arguments: Any) -> Any:
        asked.append(len(tasks))
        return original(session, storage, tasks, *arguments)

    monkeypatch.setattr(scan, "decoded", counted)
    made = Lakehouse(str(tmp_path)).create_table("s.t", schema=pa.schema([("k", pa.int64()), ("v", pa.string())]), record_key=["k"])
    made.bulk_insert(pa.table({"k": range(3000), "v": ["x" * 3000] * 3000}))
    size = sum(entry.size for entry in made.storage.walk() if entry.name.endswith(".parquet"))
    few = {**ENGINE, "lakehouse.read.files.driver.max.bytes": size + 1}
    frame = HoodieTable.open(made.path, spark=spark, options=few).dataframe()
    assert frame.selectExpr("sum(length(v))").collect() == [(9_000_000,)]
    assert asked == [1]


@pytest.mark.parametrize("size", [3, 5000], ids=["in the plan", "as Arrow data"])
def test_parts_without_rows_between_others(size: int, spark: SparkSession) -> None:
    """Spark itself leaves out what comes behind them."""
    some = pa.table({"k": pa.array(range(size)), "v": ["some text"] * size})
    rows = pa.concat_tables([some.slice(0, 0), some, some.slice(0, 0), some, some.slice(0, 0), some])
    for frame in (abilities_of(spark).frame(rows), abilities_of(spark).column_frame(rows)):
        assert frame.count() == 3 * size


def test_slices_whose_logs_give_nothing(tmp_path: Path, spark: SparkSession) -> None:
    made = make(tmp_path / "t", partitioned=True)
    made.bulk_insert(rows(list(range(20)), 1))
    made.upsert(rows([0, 1], 2))
    first = made.timeline.completed().first()
    assert first is not None
    ours = HoodieTable.open(made.path, spark=spark, options=DRIVER)
    assert ours.dataframe(as_of=first.requested_time).count() == 20


@pytest.mark.parametrize("given", ["sparks", "", "true"])
def test_another_word_is_refused(given: str, table: HoodieTable, spark: SparkSession) -> None:
    with pytest.raises(OptionError, match=r"lakehouse\.read\.files"):
        HoodieTable.open(table.path, spark=spark, options={"lakehouse.read.files": given}).dataframe()
