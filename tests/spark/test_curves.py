"""DataFrames that Spark lays out along a curve: in parts that few equalities open, with every row in one of them."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine.errors import OptionError
from lakehouse_engine.sorting.layout import SortLayout
from lakehouse_engine.sorting.ranges import SAMPLE_ROWS, Ranges
from lakehouse_engine.sorting.rows import curve_keys
from lakehouse_engine.spark.curves import laid_out

COUNT = 20_000
PARTS = 16


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    """Two columns that know nothing of each other, one of text and skewed, with nulls."""
    return spark.range(0, COUNT, 1, 3).selectExpr(
        "id",
        "if(id % 100 = 0, null, pmod(id * 7919L, 20011) / 7D) as x",
        "concat('k', lpad(cast(floor(pow(pmod(id * 104729L + 17, 20011), 2) / 1000) as string), 9, '0')) as y",
        "array(id) as tags",
    )


def parts_of(frame: DataFrame, count: int = PARTS) -> list[pa.Table]:
    """The rows of each of so many partitions, in their order."""
    rows = frame.selectExpr("*", "spark_partition_id() as part", "monotonically_increasing_id() as place").toArrow().sort_by("place")
    assert set(rows.column("part").to_pylist()) <= set(range(count))
    return [rows.filter(pc.equal(rows.column("part"), number)) for number in range(count)]


def share_opened(parts: list[pa.Table], column: str) -> float:
    values = pa.concat_tables(parts).column(column).drop_null().to_pylist()
    asked = np.array(values, object)[:: len(values) // 200]
    bounds = [pc.min_max(part.column(column)).as_py() for part in parts]
    return float(np.mean([[bound["min"] <= value <= bound["max"] for bound in bounds] for value in asked]))


@pytest.mark.parametrize("layout", [SortLayout.Z_ORDER, SortLayout.HILBERT])
def test_parts_along_a_curve_cut_each_column(frame: DataFrame, layout: SortLayout) -> None:
    """Those along the Z-order curve by a sample, of a quarter of the rows."""
    counted = 4 * SAMPLE_ROWS if layout is SortLayout.Z_ORDER else None
    parts = parts_of(laid_out(frame, ["x", "Y"], layout, PARTS, counted))
    rows = pa.concat_tables(parts)
    assert sorted(rows.column("id").to_pylist()) == list(range(COUNT))
    assert rows.column("tags").combine_chunks().flatten().to_pylist() == rows.column("id").to_pylist()
    assert max(part.num_rows for part in parts) < 1.5 * COUNT / PARTS
    most = 2.1 if layout is SortLayout.Z_ORDER else 1.7
    for column in ("x", "y"):
        assert share_opened(parts, column) < most / math.sqrt(PARTS), column
    assert rows.column_names == ["id", "x", "y", "tags", "part", "place"]


def test_rows_are_in_the_order_of_their_keys(frame: DataFrame) -> None:
    """All rows are the sample, so that the same ranges are made here."""
    sample = frame.select("x", "y").toArrow()
    rows = pa.concat_tables(parts_of(laid_out(frame, ["x", "y"], SortLayout.HILBERT, PARTS, rows=COUNT)))
    keys = np.asarray(curve_keys(rows, ["x", "y"], SortLayout.HILBERT, Ranges.of(sample, ["x", "y"])))
    assert (keys[1:] >= keys[:-1]).all()


def test_linear_is_a_range_of_the_first_column(frame: DataFrame) -> None:
    parts = parts_of(laid_out(frame, ["x", "y"], SortLayout.LINEAR, PARTS))
    rows = pa.concat_tables(parts).select(["x", "y"]).to_pylist()
    assert rows == sorted(rows, key=lambda row: (row["x"] is not None, row["x"] or 0.0, row["y"]))
    assert share_opened(parts, "x") < 1.3 / PARTS
    assert share_opened(parts, "y") > 0.9


def test_many_columns_have_binary_keys(spark: SparkSession) -> None:
    columns = (f"pmod(id * {prime}, 211) as c{prime}" for prime in (3, 5, 7, 11, 13, 17, 19))
    frame = spark.range(0, 3000, 1, 2).selectExpr(*columns)
    parts = parts_of(laid_out(frame, frame.columns, SortLayout.HILBERT, 4, rows=3000), 4)
    sizes = [part.num_rows for part in parts]
    assert sum(sizes) == 3000
    assert min(sizes) > 500


def test_nested_columns_are_refused_before_anything_runs(frame: DataFrame) -> None:
    with pytest.raises(OptionError, match="'tags' of type list"):
        laid_out(frame, ["x", "tags"], SortLayout.HILBERT, PARTS)
