"""Merge-on-read tables as DataFrames: the same rows as through Arrow."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import HoodieTable
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
