"""`verify` while others change the table: a finding counts only if the changed table has it too."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.verify import FindingKind, verify
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])
OPTIONS = {
    "hoodie.parquet.small.file.limit": 0,
    "hoodie.clean.commits.retained": 1,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
}


def rows(key: int, value: int) -> pa.Table:
    return pa.table({"id": [key], "v": [value]}, schema=SCHEMA)


@pytest.fixture(params=["cow", "mor"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    create_table(LocalStorage(str(tmp_path / "t")), TableSpec("t", SCHEMA, ["id"], table_type=request.param))
    made = HoodieTable.open(str(tmp_path / "t"), options=OPTIONS)
    made.insert(rows(1, 0))
    return made


def go_on(table: HoodieTable) -> None:
    """Writes, of which the last ones clean and archive what the first ones made."""
    for value in range(1, 8):
        table.upsert(rows(1, value))
        if value % 3 == 0 and table.config.table_type == "MERGE_ON_READ":
            table.compact()


def test_a_healthy_table_has_no_findings_though_a_writer_cleans_and_archives_meanwhile(table: HoodieTable) -> None:
    before = table.state
    go_on(table)
    assert verify(before).findings == ()
    assert verify(before, quick=True).findings == ()


def test_a_file_that_is_damaged_is_found_beside_a_writer_and_nothing_else_is(table: HoodieTable) -> None:
    go_on(table)
    before = table.state
    damaged = next(piece.base_file.path for piece in before.view.latest_slices() if piece.base_file)
    for key in (2, 3, 4):
        table.bulk_insert(rows(key, 0))
    path = Path(table.path, damaged)
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)
    assert [(one.kind, one.path) for one in verify(before).findings] == [(FindingKind.UNREADABLE_FILE, damaged)]


def test_a_lost_file_is_found_beside_a_writer_with_its_way_out(table: HoodieTable) -> None:
    before = table.state
    [lost] = [piece.base_file.path for piece in before.view.latest_slices() if piece.base_file]
    Path(table.path, lost).unlink()
    table.bulk_insert(rows(2, 0))
    report = verify(before)
    assert {one.path for one in report.findings} == {lost}
    assert report.way_out is not None
