"""What merging a slice is estimated to take, without Spark."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.spark.frames.logged.weights import Weight, parquet_weight, slice_weight

MOST = Weight(1, 4 << 20, 1_000_000, 64 << 20)
ROWS = pa.table({"id": [1, 2, 3], "t": ["a", "b", "c"]})


@pytest.fixture
def inserted(tmp_path: Path) -> HoodieTable:
    """With a base file of three rows."""
    made = Lakehouse(str(tmp_path)).create_table("s.t", schema=ROWS.schema, record_key=["id"], table_type="mor")
    made.bulk_insert(ROWS)
    return made


@pytest.fixture
def table(inserted: HoodieTable) -> HoodieTable:
    """With a log of one row, too."""
    inserted.upsert(ROWS.slice(0, 1))
    return inserted


def weight(table: HoodieTable, most: Weight = MOST) -> Weight:
    plan = plan_query(table.state, Query("snapshot"), {})
    (piece,) = plan.logged
    return slice_weight(plan, piece, (f"slice {table.path}", f"base file {table.path}"), most)


def test_a_slice_weighs_its_files_and_the_values_of_its_base_file_and_logs(table: HoodieTable) -> None:
    found = weight(table)
    (piece,) = table.state.view.latest_slices()
    columns = len(pq.read_schema(Path(table.path) / piece.base_file.path))  # type: ignore[union-attr]
    assert (found.slices, found.stored, found.values) == (1, piece.size, columns * (3 + 1))
    assert found.within(MOST)


def test_logs_of_a_slice_that_weighs_too_much_already_are_not_read(table: HoodieTable) -> None:
    (piece,) = table.state.view.latest_slices()
    columns = len(pq.read_schema(Path(table.path) / piece.base_file.path))  # type: ignore[union-attr]
    found = weight(table, Weight(1, MOST.stored, columns * 3 - 1, MOST.decoded))
    assert found.values == columns * 3


@pytest.mark.parametrize("deletes", [False, True])
def test_a_slice_whose_days_spark_reads_as_others_than_are_stored_weighs_too_much(inserted: HoodieTable, *, deletes: bool) -> None:
    """Merged rows would have them as they are stored. Deletions in logs add no weight."""
    (path,), (commit,) = Path(inserted.path).glob("*.parquet"), Path(inserted.path, ".hoodie").glob("*.deltacommit")
    size = path.stat().st_size
    texts = {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}
    pq.write_table(pq.read_table(path).replace_schema_metadata(texts), path)
    text = commit.read_text().replace("lakehouse.seal", "unsealed")
    commit.write_text(re.sub(rf"\b{size}\b", str(path.stat().st_size), text))
    if deletes:
        inserted.delete(ROWS.slice(0, 1))
    else:
        inserted.upsert(ROWS.slice(0, 1))
    assert not weight(inserted).within(MOST)


@pytest.mark.parametrize("long", [0, 1, 2])
def test_long_texts_that_are_there_once_weigh_as_often_as_they_are_named(long: int) -> None:
    """Bounds do not tell of those between them."""
    texts = ["a", "m", "z"]
    texts[long] *= 3000
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"t": [texts[0], texts[2], *[texts[long]] * 30_000], "n": list(range(30_002))}), sink)
    source = pa.BufferReader(sink.getvalue())
    footer = pq.read_metadata(source)
    assert footer.row_group(0).column(0).total_uncompressed_size < 50_000
    assert not parquet_weight(footer, source, MOST).within(MOST)


def test_short_texts_are_light() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"t": [f"city {number % 50}" for number in range(100_000)]}), sink)
    source = pa.BufferReader(sink.getvalue())
    assert parquet_weight(pq.read_metadata(source), source, MOST).within(MOST)
