"""Rows in files of a local session: what they give is what was put in, and where a file will not do there is none."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import SparkFiles
from pyspark.sql import SparkSession

from lakehouse_engine.spark import local_files
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.local_files import file_frame
from tests.support.connect_server import classic_only
from tests.support.readers import assert_same_rows

pytestmark = classic_only("a server's executors are not of this machine")
COUNT = 40_000


def table(count: int = COUNT) -> pa.Table:
    """Every flat type that a table has, with nulls, and the ends of what Spark's calendars know."""
    moments = pa.array(["0001-01-01 00:00:00", "1582-10-10 00:00:00", None, "9999-12-31 23:59:59.999999"]).cast(pa.timestamp("us"))
    values = {
        "flag": pa.array([True, None, False, True]),
        "small": pa.array([1, -1, None, 127], pa.int8()),
        "short": pa.array([1, None, -32_768, 2], pa.int16()),
        "int": pa.array([1, None, -(2**31), 2**31 - 1], pa.int32()),
        "long": pa.array([1, None, -(2**63), 2**63 - 1]),
        "float": pa.array([0.5, None, float("nan"), -0.0], pa.float32()),
        "double": pa.array([0.5, None, float("inf"), -0.0]),
        "money": pa.array([Decimal("1.50"), None, Decimal("-0.01"), Decimal("99999999999999999999.99")], pa.decimal128(38, 2)),
        "text": pa.array(["", None, "Zoë", "x" * 30]),
        "bytes": pa.array([b"", None, b"\xff\x00", b"x"]),
        "day": moments.cast(pa.date32(), safe=False),
        "at": moments.cast(pa.timestamp("us", tz="UTC")),
        "there": moments,
    }
    return pa.table(values).take(pa.array([number % 4 for number in range(count)]))


def files() -> list[Path]:
    return list(Path(SparkFiles.getRootDirectory()).glob("lakehouse-rows-*"))


def test_every_type_comes_back(spark: SparkSession) -> None:
    before = len(files())
    frame = abilities_of(spark).column_frame(table())
    assert len(files()) == before + 1
    assert frame.schema == abilities_of(spark).frame(table(4)).schema
    assert_same_rows(frame.toArrow(), abilities_of(spark).frame(table()).toArrow())


def test_days_before_the_reform_of_the_calendar_are_those_that_were_written(spark: SparkSession) -> None:
    name = "spark.sql.parquet.datetimeRebaseModeInRead"
    spark.conf.set(name, "LEGACY")
    try:
        assert_same_rows(abilities_of(spark).column_frame(table()).toArrow(), abilities_of(spark).frame(table()).toArrow())
    finally:
        spark.conf.unset(name)


@pytest.mark.parametrize("names", [["a", "a"], ["a", "A"], ["a.b", "c`d"], ["_metadata", "c0"]])
def test_columns_may_be_called_as_they_like(names: list[str], spark: SparkSession) -> None:
    rows = pa.table([pa.array(range(200_000)), pa.array(range(200_000, 400_000))], names=names)
    frame = file_frame(spark, rows)
    assert frame is not None
    assert frame.columns == names
    assert frame.toDF("first", "second").selectExpr("sum(first)", "sum(second - first)").collect() == [(19_999_900_000, 40_000_000_000)]


def test_a_query_reads_the_columns_that_it_needs(spark: SparkSession) -> None:
    frame = file_frame(spark, table())
    assert frame is not None
    frame.createOrReplaceTempView("narrow")
    plan = "\n".join(row[0] for row in spark.sql("explain select sum(long) from narrow").collect())
    assert "ReadSchema: struct<c4:bigint>" in plan


def test_the_folder_may_be_called_as_it_likes(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a b%41{c}[d]* \u00fc"
    folder.mkdir()
    monkeypatch.setattr(SparkFiles, "getRootDirectory", lambda: str(folder))
    frame = file_frame(spark, table())
    assert frame is not None
    assert frame.count() == COUNT
    assert len(list(folder.iterdir())) == 1


def test_few_rows_and_nested_ones_have_none(spark: SparkSession) -> None:
    nested = pa.table({"tags": [["a" * 100]] * 40_000})
    assert nested.nbytes > local_files._LEAST
    assert file_frame(spark, nested) is None
    assert file_frame(spark, table(100)) is None
    assert abilities_of(spark).column_frame(nested).count() == 40_000


def test_an_application_gets_so_much_and_no_more(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_files, "_written", {})
    monkeypatch.setattr(local_files, "_MOST", 2 * table().nbytes)
    assert [file_frame(spark, table()) is not None for _ in range(4)] == [True, True, False, False]
    assert abilities_of(spark).column_frame(table()).count() == COUNT


def test_a_full_disk_keeps_rows_in_memory(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    tried = []

    def full(rows: pa.Table, path: Path, *given: object, **named: object) -> None:
        tried.append(path)
        path.write_bytes(b"PAR1")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(local_files, "_written", {})
    monkeypatch.setattr(local_files.pq, "write_table", full)
    before = len(files())
    assert abilities_of(spark).column_frame(table()).count() == COUNT
    assert "No space left" in caplog.text
    assert len(files()) == before
    assert abilities_of(spark).column_frame(table()).count() == COUNT
    assert len(tried) == 1


def test_what_spark_is_to_encrypt_is_not_written(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_files, "_encrypts", lambda spark: True)
    monkeypatch.setattr(local_files, "_written", {})
    before = len(files())
    assert abilities_of(spark).column_frame(table()).count() == COUNT
    assert len(files()) == before
