"""Merge-on-read tables as DataFrames: the same rows as through Arrow."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.model.instant import Action
from tests.support.fixtures import expected_readings, fixtures_root, spark_fixtures, unpack_spark_fixture
from tests.support.readers import assert_same_rows

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")

TABLES = [
    name
    for name in spark_fixtures(("v6-0.15.0",), "mor")
    if name.rpartition("/mor_")[2]
    in (
        "bucket_consistent",
        "compaction_pending",
        "deletes",
        "merge_partial_update",
        "no_meta_fields",
        "types",
    )
]


@pytest.mark.parametrize("name", TABLES)
def test_a_dataframe_has_the_rows_that_arrow_has(name: str, spark: SparkSession, tmp_path: Path) -> None:
    table = HoodieTable.open(str(unpack_spark_fixture(name, tmp_path)), spark=spark)
    meta = table.config.populates_meta_fields
    times = [write.requested_time for write in table.timeline.completed().writes()]
    queries: list[dict[str, str]] = [{}, {"as_of": times[1]}, {"query": "read_optimized"}]
    if meta:
        queries.append({"query": "incremental", "begin": times[0]})
    for query in queries:
        actual = table.dataframe(meta_columns=meta, **query).toArrow()  # type: ignore[arg-type]
        assert_same_rows(actual, table.to_arrow(meta_columns=meta, **query))  # type: ignore[arg-type]
    assert table.dataframe().count() == expected_readings(name)[1]["snapshot"]["rows"]


def test_sql_reads_a_merge_on_read_table_of_hudi_and_goes_on_writing_it(spark: SparkSession, tmp_path: Path) -> None:
    name = next(name for name in TABLES if name.endswith("mor_deletes"))
    unpack_spark_fixture(name, tmp_path / "warehouse" / "shop")
    lakehouse = Lakehouse(str(tmp_path / "warehouse"), spark=spark)
    table = lakehouse.table("shop.mor_deletes")
    before = table.to_arrow()
    assert_same_rows(lakehouse.sql("select * from shop.mor_deletes").toArrow(), before)  # type: ignore[union-attr]
    first = table.timeline.completed().writes().instants[0].requested_time
    then = lakehouse.sql(f"select count(*) as n from shop.mor_deletes timestamp as of '{first}'")
    assert then.toArrow().to_pylist() == [{"n": table.to_arrow(as_of=first).num_rows}]  # type: ignore[union-attr]
    lakehouse.sql("update shop.mor_deletes set name = concat(name, '!')")
    after = before.set_column(before.schema.get_field_index("name"), "name", pc.binary_join_element_wise(before["name"], "!", ""))
    assert_same_rows(lakehouse.table("shop.mor_deletes").to_arrow(), after)
    key = after["id"][0].as_py()
    lakehouse.sql(f"delete from shop.mor_deletes where id = '{key}'")
    assert_same_rows(lakehouse.table("shop.mor_deletes").to_arrow(), after.slice(1))
    newest = lakehouse.table("shop.mor_deletes").timeline.completed().last()
    assert newest is not None
    assert newest.action is Action.DELTA_COMMIT
