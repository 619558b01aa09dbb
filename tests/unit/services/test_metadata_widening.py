"""Writes that give columns a wider type, or add some, in tables with a whole metadata table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine import Lakehouse
from tests.support.metadata_checks import buildable, check_metadata

NARROW = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("part", pa.string()), ("x", pa.int32())])
WIDE = pa.schema([*(field for field in NARROW if field.name != "x"), pa.field("x", pa.int64()), pa.field("y", pa.float64())])
BIG = 1 << 40
RECONCILED = {"hoodie.datasource.write.reconcile.schema": "true"}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_column_that_is_widened_keeps_its_statistics(kind: str, version: int, tmp_path: Path) -> None:
    table = Lakehouse(str(tmp_path)).create_table(
        "s.t",
        schema=NARROW,
        record_key=["id"],
        ordering_fields=["ts"],
        partition_by=["part"],
        table_type=kind,
        properties={"hoodie.write.table.version": str(version)},
    )
    table.upsert(pa.table({"id": ["a", "b"], "ts": [1, 1], "part": ["p", "q"], "x": [1, 2]}, schema=NARROW))
    table.rebuild_metadata(buildable(table.state))
    wider = {"id": ["a", "c"], "ts": [2, 2], "part": ["p", "p"], "x": [BIG, 3], "y": [0.5, None]}
    table.upsert(pa.table(wider, schema=WIDE), options=RECONCILED)
    assert check_metadata(table.state.storage)
    assert sorted(table.to_arrow(filters=pc.field("x") >= BIG)["id"].to_pylist()) == ["a"]
    assert sorted(table.to_arrow(filters=pc.field("x") < BIG)["id"].to_pylist()) == ["b", "c"]
    assert sorted(table.to_arrow(filters=pc.field("y") > 0)["id"].to_pylist()) == ["a"]
    if kind == "mor":
        table.compact()
        assert check_metadata(table.state.storage)
