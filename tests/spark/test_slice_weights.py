"""Slices of a few rows that other programs wrote, and what it is told to take to merge them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.spark.frames.logged.merged_files import MOST
from lakehouse_engine.spark.frames.logged.weights import parquet_weight
from tests.support.connect_server import classic_only

pytestmark = [classic_only("a server's executors are not of this machine"), pytest.mark.usefixtures("merged")]

DAY = pa.scalar(1, pa.int32()).cast(pa.date32())


def rewritten(table: HoodieTable, change: Callable[[pa.Table], pa.Table]) -> None:
    """The one base file as another program writes it, and as its commit says."""
    root = Path(table.storage.root)
    (path,) = root.glob("*.parquet")
    size = path.stat().st_size
    pq.write_table(change(pq.read_table(path)), path)
    (commit,) = (one for one in (root / ".hoodie").glob("*.deltacommit") if path.name in one.read_text())
    text = commit.read_text().replace("lakehouse.seal", "unsealed")
    commit.write_text(re.sub(rf"\b{size}\b", str(path.stat().st_size), text))


@pytest.fixture
def small(tmp_path: Path, spark: SparkSession) -> HoodieTable:
    """With a base file."""
    lake = Lakehouse(str(tmp_path), spark=spark)
    lake.create_schema("s")
    schema = pa.schema([("id", pa.int64()), ("d", pa.date32()), ("t", pa.string())])
    made = lake.create_table("s.t", schema=schema, record_key=["id"], table_type="mor")
    made.bulk_insert(pa.table([[1, 2, 3], [DAY, DAY, DAY], ["a", "m", "z"]], schema=schema))
    return made


def test_days_of_another_calendar_are_those_of_spark(small: HoodieTable) -> None:
    """As without logs, and as of larger slices."""

    def old(stored: pa.Table) -> pa.Table:
        days = pa.array([-200_000] * 3, pa.int32()).cast(pa.date32())
        texts = {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}
        return stored.set_column(stored.column_names.index("d"), "d", days).replace_schema_metadata(texts)

    rewritten(small, old)
    before = small.dataframe().where("id = 1").selectExpr("unix_date(d)").collect()[0][0]
    assert before != -200_000
    small.upsert(pa.table({"id": [2], "d": [DAY], "t": ["n"]}, schema=small.schema))
    assert small.dataframe().where("id = 1").selectExpr("unix_date(d)").collect()[0][0] == before


def test_texts_that_are_no_letters(small: HoodieTable) -> None:
    """Spark makes such of bytes. Statistics have them, too."""

    def bare(stored: pa.Table) -> pa.Table:
        given = pa.array([b"\xff\xfe", b"\xffa", b"b"], pa.binary())
        texts = pa.Array.from_buffers(pa.string(), 3, given.buffers())
        return stored.set_column(stored.column_names.index("t"), "t", texts).replace_schema_metadata(None)

    rewritten(small, bare)
    small.upsert(pa.table({"id": [3], "d": [DAY], "t": ["n"]}, schema=small.schema))
    found = small.dataframe().selectExpr("cast(t as binary) as t").toArrow()["t"].to_pylist()
    assert sorted(found) == [b"n", b"\xff" + b"a", b"\xff\xfe"]


def test_decimals_stored_as_texts_are_weighed(spark: SparkSession, tmp_path: Path) -> None:
    """As Hudi stores those that are bytes to Avro."""
    parquet: Any = spark._jvm.org.apache.parquet  # type: ignore[union-attr]
    kind = parquet.schema.MessageTypeParser.parseMessageType("message m { optional binary d (DECIMAL(20,2)); }")
    path = spark._jvm.org.apache.hadoop.fs.Path(str(tmp_path / "d.parquet"))  # type: ignore[union-attr]
    writer = parquet.hadoop.example.ExampleParquetWriter.builder(path).withType(kind).withDictionaryEncoding(True).build()
    for number in range(3):
        group = parquet.example.data.simple.SimpleGroupFactory(kind).newGroup()
        group.add("d", parquet.io.api.Binary.fromConstantByteArray(bytearray([number])))
        writer.write(group)
    writer.close()
    with pa.OSFile(str(tmp_path / "d.parquet")) as source:
        footer = pq.read_metadata(source)
        assert footer.row_group(0).column(0).physical_type == "BYTE_ARRAY"
        assert parquet_weight(footer, source, MOST).values == 3
