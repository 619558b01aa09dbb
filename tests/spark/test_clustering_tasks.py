"""A clustering on Spark's executors: one task a group, whose rows the driver does not read; OPTIMIZE in a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.files import slice_reader
from lakehouse_engine.services.cluster import group_rows
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.readers import assert_same_rows

PARTITIONS = 4
OPTIONS = {
    "lakehouse.task.runner": "SPARK",
    "lakehouse.clustering.memory.bytes": 1,
    "lakehouse.parquet.row.group.rows": 20,
    "hoodie.parquet.small.file.limit": 0,
}


def rows(first: int, count: int = 200) -> pa.Table:
    numbers = list(range(first, first + count))
    parts = [f"p{number % PARTITIONS}" for number in numbers]
    return pa.table({"id": numbers, "part": parts, "n": [number * 7919 % 1000 for number in numbers], "s": [f"text {n}" for n in numbers]})


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_each_group_is_sorted_by_a_task(table_type: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_table(LocalStorage(str(tmp_path / "t")), TableSpec("t", rows(0).schema, ["id"], [], ["part"], table_type))
    made = HoodieTable.open(str(tmp_path / "t"), options={"hoodie.parquet.small.file.limit": 0})
    for first in (0, 200):
        made.insert(rows(first))
    made.upsert(rows(100, 50))
    before = made.to_arrow(meta_columns=True)

    def here(*arguments: Any, **named: Any) -> Any:
        raise AssertionError("rows were read on the driver")

    monkeypatch.setattr(group_rows, "iter_base_file", here)
    monkeypatch.setattr(slice_reader, "scan_logs", here)
    table = HoodieTable.open(made.path, spark=spark, options=OPTIONS)
    result = table.cluster(order_by=["n", "id"], layout="z_order")
    monkeypatch.undo()
    assert (len(result.groups), result.files_replaced, result.files_created) == (PARTITIONS, 2 * PARTITIONS, PARTITIONS)
    file_names = ["_hoodie_file_name"]
    assert_same_rows(table.to_arrow(meta_columns=True).drop_columns(file_names), before.drop_columns(file_names))
    assert table.cluster(order_by=["n", "id"], layout="z_order").state == "none"
    assert not list(Path(made.path, ".hoodie", ".temp").rglob("*.arrow")), "rows that went through files are left"


def test_optimize_in_a_session(spark: SparkSession, tmp_path: Path) -> None:
    house = Lakehouse(str(tmp_path / "w"), spark=spark)
    house.sql("create schema shop")
    house.sql("create table shop.t (id bigint, v bigint, day date) tblproperties (primaryKey = 'id') partitioned by (day)")
    for day in ("2026-01-01", "2026-01-02"):
        house.sql(f"insert into shop.t select id, 100 - id, date'{day}' from range({10 * int(day[-1])}, {10 * int(day[-1]) + 5})")
    (done,) = house.sql("optimize shop.t where day = date'2026-01-02' zorder by (v)").collect()
    assert (done.input_group_size, done.state, done.rows_written) == (1, "COMPLETED", 5)
    (shown,) = house.sql("call show_clustering(table => 'shop.t', show_involved_partition => true)").collect()
    assert (shown.timestamp, shown.involved_partitions) == (done.timestamp, "day=2026-01-02")
    assert [row.v for row in house.sql("select v from shop.t where day = date'2026-01-02'").collect()] == [76, 77, 78, 79, 80]
