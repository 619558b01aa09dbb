"""Floating point columns in base files have bounds where no value is NaN: Hudi takes a column without any for all null."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.write.tasks import copying, parquet_output

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("nested", pa.struct([pa.field("inner", pa.float64())])),
        pa.field("x", pa.float64()),
        pa.field("y", pa.float32()),
    ]
)


def rows(values: list[float | None], first: int = 0) -> pa.Table:
    count = len(values)
    nested = [{"inner": value} for value in values]
    columns = [[f"k{first + number}" for number in range(count)], [1] * count, nested, values, values]
    return pa.Table.from_arrays([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def bounds(folder: Path, column: str) -> list[tuple[float | None, float | None, int] | None]:
    """Least and greatest value and nulls, by row group, of the newest file."""
    newest = max(folder.rglob("*_*.parquet"), key=lambda path: path.name.rpartition("_")[2])
    metadata = pq.read_metadata(newest)
    place = [metadata.schema.column(number).path for number in range(metadata.num_columns)].index(column)
    found = [metadata.row_group(number).column(place).statistics for number in range(metadata.num_row_groups)]
    return [None if one is None else (one.min, one.max, one.null_count) for one in found]


def table(folder: Path, values: list[float | None], **properties: str):  # type: ignore[no-untyped-def]
    made = Lakehouse(str(folder)).create_table("s.t", schema=SCHEMA, record_key=["id"], ordering_fields=["ts"], properties=properties)
    made.bulk_insert(rows(values))
    return made


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.5, -2.0, None], (-2.0, 1.5, 1)),
        ([1.5, math.nan, -2.0], (None, None, 0)),
        ([math.nan, math.nan], (None, None, 0)),
        ([math.inf, 1.0], (1.0, math.inf, 0)),
    ],
    ids=["plain", "nan", "only nan", "infinity"],
)
def test_bounds_hold_all_values(values: list[float | None], expected: tuple[float | None, float | None, int], tmp_path: Path) -> None:
    made = table(tmp_path, values)
    for column in ("x", "y"):
        assert bounds(tmp_path, column) == [expected]
    assert bounds(tmp_path, "nested.inner") == [None]
    read = made.to_arrow(filters=pc.field("x") > 1.0)
    assert read.num_rows == sum(value is not None and value > 1.0 for value in values)  # Arrow's NaN is above nothing
    assert made.verify().ok


def test_copied_row_groups_keep_their_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "COPIED_FROM", 1)
    made = table(tmp_path, [1.0, math.nan, 3.0, 4.0], **{"lakehouse.parquet.row.group.rows": "2"})
    made.upsert(rows([5.0], first=3))
    assert bounds(tmp_path, "x") == [(None, None, 0), (3.0, 5.0, 0)]
    assert made.to_arrow().num_rows == 4
    assert made.verify().ok


def test_row_groups_of_earlier_releases_without_bounds_are_encoded_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "COPIED_FROM", 1)
    with monkeypatch.context() as earlier:
        earlier.setattr(parquet_output, "_bounded_leaves", lambda schema: ["id", "ts"])
        made = table(tmp_path, [1.0, 2.0, 3.0, 4.0], **{"lakehouse.parquet.row.group.rows": "2"})
        assert bounds(tmp_path, "x") == [None, None]
    made.upsert(rows([5.0], first=3))
    assert bounds(tmp_path, "x") == [(1.0, 2.0, 0), (3.0, 5.0, 0)]
