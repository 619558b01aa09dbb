"""Statements over Spark ask the metadata table before footers: files that it rules out are not opened, and the rows are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from lakehouse_engine import Lakehouse
from lakehouse_engine.files.footers import FooterCache
from tests.spark.test_partition_discovery import files_opened
from tests.spark.unnarrowed import assert_same_unnarrowed

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("x", pa.float64()), ("s", pa.string())])
FILES = 10
INDEXES = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.index.type": "RECORD_INDEX",
}


def rows(number: int) -> pa.Table:
    values = [number * 10 + one for one in range(5)]
    floats = [float("nan") if one == values[2] and number % 3 == 0 else float(one) for one in values]
    texts = ["long" * 2000 if one == values[1] and number % 4 == 0 else f"s{one:03d}" for one in values]
    return pa.table({"id": [f"k{one:03d}" for one in values], "n": values, "x": floats, "s": texts}, schema=SCHEMA)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lakehouse:
    """`s.cow` and `s.mor` of ten files each, some of whose rows are in logs of the second."""
    made = Lakehouse(str(tmp_path / "w"), spark=spark)
    for kind in ("cow", "mor"):
        table = made.create_table(f"s.{kind}", schema=SCHEMA, record_key=["id"], table_type=kind, properties=INDEXES)
        for number in range(FILES):
            table.bulk_insert(rows(number))
        table.upsert(pa.table({"id": ["k010", "k052"], "n": [900, 901], "x": [9.0, None], "s": ["new", None]}, schema=SCHEMA))
        table.delete(pa.table({"id": ["k031"]}))
        assert {"column_stats", "record_index"} <= set(table.config.metadata_partitions)
    return made


@pytest.fixture
def footers(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Base files whose footers are read, or looked for among those that were."""
    found: set[str] = set()
    real = FooterCache.read

    def counted(self: FooterCache, storage: Any, file: Any, **more: Any) -> Any:
        found.add(file.path)
        return real(self, storage, file, **more)

    monkeypatch.setattr(FooterCache, "read", counted)
    return found


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_statement_about_a_key_opens_its_file(lake: Lakehouse, footers: set[str], kind: str) -> None:
    for key, value in (("k024", 24), ("k010", 900), ("k052", 901)):
        footers.clear()
        found = lake.sql(f"select n from s.{kind} where id = '{key}'")
        assert files_opened(found) <= 2
        assert [row[0] for row in found.collect()] == [value]
        assert len(footers) <= 1
    footers.clear()
    assert lake.sql(f"select n from s.{kind} where id in ('k031', 'k999')").collect() == []
    assert len(footers) <= 1


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_statement_about_a_range_opens_the_files_that_may_have_it(lake: Lakehouse, footers: set[str], kind: str) -> None:
    assert sorted(row[0] for row in lake.sql(f"select id from s.{kind} where n between 41 and 63").collect()) == [
        *(f"k{one:03d}" for one in range(41, 45)), *(f"k{one:03d}" for one in (50, 51, 53, 54)), *(f"k{one:03d}" for one in range(60, 64)),
    ]  # fmt: skip
    assert len(footers) < FILES


CONDITIONS = [
    "id = 'k010'", "n > 70", "n = 900", "x > 85.0D", "x > 500.0D", "x = 30.0D", "s = 's031'", "s >= 's08'", "s is null", "x is null",
    "id in ('k001', 'k091') or n = 52", "id = 'k052' and x is null", "s < 'm'", "id = 'k031'", "id in ('k010', 'k052')",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_rows_are_those_of_a_statement_that_asks_nothing(lake: Lakehouse, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"select * from s.{kind} where {condition} order by id" for condition in CONDITIONS]
    assert_same_unnarrowed(lake, texts, AnalysisException, monkeypatch)
