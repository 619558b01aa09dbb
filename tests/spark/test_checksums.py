"""The native Spark scan over damaged base files: never wrong rows, and whole ones where checksums are not to be looked at."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.errors import CorruptFileError
from lakehouse_engine.files.footers import FOOTERS

# Errors of a running query are Py4J's or Spark Connect's, as the session is; the file's name tells them.
ROWS = pa.table({"id": list(range(2000)), "v": [number * 7 for number in range(2000)], "s": [f"text {number}" for number in range(2000)]})


@pytest.fixture
def table(lakehouse: Lakehouse) -> HoodieTable:
    made = lakehouse.create_table(
        "shop.t", schema=ROWS.schema, record_key=["id"], properties={"hoodie.parquet.compression.codec": "uncompressed"}
    )
    made.bulk_insert(ROWS)
    return made


def base_file(table: HoodieTable) -> Path:
    [path] = Path(table.path).glob("*.parquet")
    return path


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def in_the_values(path: Path, column: str) -> int:
    """A place in the contents of the only page of a column."""
    group = pq.read_metadata(path).row_group(0)
    chunk = next(group.column(number) for number in range(group.num_columns) if group.column(number).path_in_schema == column)
    return int(chunk.data_page_offset + chunk.total_compressed_size - 8)


def test_a_damaged_page_fails_the_query_with_the_files_name(table: HoodieTable, spark: SparkSession) -> None:
    path = base_file(table)
    flip(path, in_the_values(path, "v"))
    frame = table.dataframe(spark)
    with pytest.raises(Exception, match=path.name):
        frame.collect()
    assert frame.select("s").count() == 2000


def test_the_setting_is_that_of_the_read_and_not_of_the_session(table: HoodieTable, spark: SparkSession) -> None:
    path = base_file(table)
    flip(path, in_the_values(path, "v"))
    unchecked = HoodieTable.open(table.path, options={"lakehouse.read.verify.checksums": False})
    assert [row.v for row in unchecked.dataframe(spark).collect()] != ROWS["v"].to_pylist()
    assert unchecked.to_arrow(["v"])["v"].to_pylist() != ROWS["v"].to_pylist()
    with pytest.raises(Exception, match=path.name):
        table.dataframe(spark).collect()
    with pytest.raises(CorruptFileError, match=path.name):
        table.to_arrow(["v"])


@pytest.mark.parametrize("logs", [False, True])
def test_a_footer_that_fails_its_checksum_is_read_where_none_is_to_be_looked_at(
    lakehouse: Lakehouse, spark: SparkSession, logs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts and numbers with a point are those for which footers are asked what is stored."""
    rows = ROWS.append_column("f", ROWS["v"].cast(pa.float64()))
    made = lakehouse.create_table("shop.u", schema=rows.schema, record_key=["id"], table_type="mor")
    made.bulk_insert(rows)
    if logs:
        made.upsert(rows.slice(0, 10))
    path = base_file(made)
    flip(path, path.read_bytes().rfind(b"lakehouse.seal") + len("lakehouse.seal__crc32:"))
    monkeypatch.setattr(FOOTERS, "kept", BoundedCache(0))
    table = HoodieTable.open(made.path, spark=spark, options={"lakehouse.read.verify.checksums": False})
    assert table.dataframe().toArrow().sort_by("id").cast(rows.schema).equals(rows)
    narrowed = pc.field("id") < 5
    assert table.dataframe(filters=narrowed).count() == table.to_arrow(filters=narrowed).num_rows == 5
    for read in (made.to_arrow, lambda: made.dataframe(spark)):
        with pytest.raises(CorruptFileError, match="footer"):
            read()


def test_damaged_page_headers_and_footers_are_refused_before_spark_reads(table: HoodieTable, spark: SparkSession) -> None:
    path = base_file(table)
    content = path.read_bytes()
    assert table.dataframe(spark).count() == 2000
    group = pq.read_metadata(path).row_group(0)
    for place in (group.column(5).data_page_offset + 3, len(content) - 100):
        flip(path, place)
        with pytest.raises(CorruptFileError, match=path.name):
            table.dataframe(spark)
        path.write_bytes(content)
    assert table.dataframe(spark).count() == 2000


def test_sql_refuses_the_damaged_file(table: HoodieTable, lakehouse: Lakehouse) -> None:
    path = base_file(table)
    flip(path, in_the_values(path, "v"))
    with pytest.raises(Exception, match=path.name):
        lakehouse.sql("select sum(v) from shop.t").collect()


def test_a_file_that_was_put_in_the_place_of_another_is_refused_by_a_handle_that_knew_the_other(table: HoodieTable, tmp_path: Path) -> None:
    assert table.dataframe().count() == ROWS.num_rows
    path = base_file(table)
    pq.write_table(pq.read_table(path).slice(0, 7), path)
    with pytest.raises(CorruptFileError, match=r"the commit [0-9]+ wrote"):
        table.dataframe()
