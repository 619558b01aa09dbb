"""Which slices a filtered read opens, and why it passes over the others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.read.skipping import PARTITION, STATISTICS, skipped_slices

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("n", pa.int64())])


def rows(*given: tuple[int, str, int]) -> pa.Table:
    return pa.table(dict(zip(SCHEMA.names, map(list, zip(*given, strict=True)), strict=True)), schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    """Base files of three days; the logs of the second have a greater number than its base file."""
    made = Lakehouse(str(tmp_path)).create_table("s.t", schema=SCHEMA, record_key=["id"], partition_by=["day"], table_type="mor")
    made.bulk_insert(rows((1, "a", 1), (2, "b", 1), (3, "c", 1)))
    made.upsert(rows((2, "b", 9)))
    return made


@pytest.mark.parametrize(
    ("wanted", "reasons"),
    [
        (pc.field("n") == 9, {"day=a": STATISTICS, "day=b": None, "day=c": STATISTICS}),
        (pc.field("n") == 1, {"day=a": None, "day=b": None, "day=c": None}),
        (pc.field("day") == "a", {"day=a": None, "day=b": PARTITION, "day=c": PARTITION}),
        ((pc.field("day") == "a") & (pc.field("n") > 1), {"day=a": STATISTICS, "day=b": PARTITION, "day=c": PARTITION}),
    ],
)
def test_a_slice_with_logs_is_passed_over_by_its_partition_only(
    table: HoodieTable, wanted: pc.Expression, reasons: dict[str, str | None]
) -> None:
    assert {piece.partition_path: reason for piece, reason in skipped_slices(table.state, wanted)} == reasons
    read = {path for path, reason in reasons.items() if reason is None}
    found = table.to_arrow(["_hoodie_partition_path"], meta_columns=True, filters=wanted).column("_hoodie_partition_path").to_pylist()
    assert set(found) <= read
