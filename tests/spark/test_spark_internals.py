"""What the engine asks of Spark beyond PySpark's public functions, one by one: what it answers, and since which Spark it is there."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine.spark import internals
from tests.support.connect_server import classic_only

pytestmark = classic_only("a server's JVM is not of this process")


def stopped(spark: SparkSession) -> None:
    assert not internals.is_stopped(spark)


def encoding(spark: SparkSession) -> None:
    assert internals.file_name_encoding(spark).upper() in ("UTF-8", "ANSI_X3.4-1968", "US-ASCII", "ISO-8859-1")


def new_columns(spark: SparkSession) -> None:
    frame = spark.range(3)
    other = internals.with_new_columns(frame)
    assert frame.join(other, frame["id"] == other["id"] + 1).count() == 2
    assert other.columns == ["id"]


def listed(spark: SparkSession, folder: Path) -> None:
    spark.range(0, 4, 1, 3).write.parquet(str(folder))
    frame = spark.read.parquet(str(folder))
    assert internals.listed_files(frame) == len(frame.inputFiles()) == 3
    with pytest.raises(internals.MISSING):
        internals.listed_files(spark.range(3).groupBy().count())


def deterministic(spark: SparkSession) -> None:
    assert internals.is_deterministic(spark.sql("select 1"))
    assert internals.is_deterministic(spark.sql("select rand()")) is False


def python_functions(spark: SparkSession) -> None:
    spark.udf.register("plus_one", lambda value: value + 1, "bigint")
    spark.sql("select plus_one(id) as n from range(3)").createOrReplaceTempView("with_function")
    assert internals.has_python_functions(spark.sql("select * from with_function"))
    assert not internals.has_python_functions(spark.sql("select id + 1 from range(3)"))


def optimized(spark: SparkSession) -> None:
    assert internals.optimized_plan(spark.range(3)).maxRows().get() == 3


def ran(spark: SparkSession) -> None:
    frame = spark.range(3).hint("rebalance")
    rows, plan = internals.run(frame)
    assert plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec"
    again: DataFrame = internals.of_rdd(frame, rows)
    assert sorted(row.id for row in again.collect()) == [0, 1, 2]


def fixed_width(spark: SparkSession) -> None:
    output = internals.optimized_plan(spark.sql("select id, string(id) as text from range(3)")).output()
    assert [internals.has_fixed_width(spark, output.apply(number).dataType()) for number in range(2)] == [True, False]


def in_memory(spark: SparkSession) -> None:
    assert internals.size_in_memory(spark, "x" * 10_000) >= 10_000


SINCE: dict[str, tuple[str, Callable[..., None]]] = {
    "is_stopped": ("4.0", stopped),
    "file_name_encoding": ("4.0", encoding),
    "with_new_columns": ("4.0", new_columns),
    "listed_files": ("4.0", listed),
    "is_deterministic": ("4.0", deterministic),
    "has_python_functions": ("4.0", python_functions),
    "optimized_plan": ("4.0", optimized),
    "run": ("4.0", ran),
    "of_rdd": ("4.0", ran),
    "has_fixed_width": ("4.0", fixed_width),
    "size_in_memory": ("4.0", in_memory),
}
"""The Spark since which each is relied on (4.0 is the oldest that is supported), and what it answers."""


@pytest.mark.parametrize("name", SINCE)
def test_it_is_there_and_answers(name: str, spark: SparkSession, tmp_path: Path) -> None:
    since, check = SINCE[name]
    assert tuple(map(int, since.split("."))) <= tuple(map(int, pyspark.__version__.split(".")[:2]))
    check(*[spark, tmp_path / "files"][: len(inspect.signature(check).parameters)])


def test_each_function_has_a_check() -> None:
    found = {name for name, one in inspect.getmembers(internals, inspect.isfunction) if one.__module__ == internals.__name__}
    assert {name for name in found if not name.startswith("_")} == set(SINCE)
