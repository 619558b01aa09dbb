"""Apache Hudi reads the deleted rows of a table with soft deletes as ordinary rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from tests.interop.client import HudiJudge

DELETED, DELETED_AT = "_hoodie_is_deleted", "_lakehouse_deleted_at"
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("ts", pa.int64()), (DELETED, pa.bool_())])


def rows(*given: tuple[int, str, int, bool]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in given], schema=SCHEMA)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_hudi_reads_them_as_ordinary_rows(hudi: HudiJudge, tmp_path: Path, kind: str) -> None:
    table = Lakehouse(str(tmp_path)).create_table(
        "s.t",
        schema=SCHEMA,
        record_key=["id"],
        ordering_fields=["ts"],
        table_type=kind,
        properties={"lakehouse.deletes": "soft"},
    )
    table.upsert(rows((1, "a", 10, False), (2, "b", 10, False)))
    table.upsert(rows((1, "gone", 20, True)))
    table.upsert(rows((3, "gone", 20, True)))
    table.upsert(rows((1, "late", 15, False), (3, "late", 15, False)))
    if kind == "mor":
        assert any(piece.log_files for piece in HoodieTable.open(str(tmp_path / "s" / "t")).state.view.latest_slices())
    found = hudi.read(tmp_path / "s" / "t").to_pylist()
    stored = sorted((row["id"], row["v"], row["ts"], row[DELETED], row[DELETED_AT] is not None) for row in found)
    assert stored == [(1, "gone", 20, None, True), (2, "b", 10, False, False), (3, "gone", 20, None, True)]
    assert table.to_arrow(["id"]).to_pylist() == [{"id": 2}]
