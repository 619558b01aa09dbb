"""Clusterings that sort nothing: slices are written one after the other, and row groups of a good size are copied."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.services.cluster.joining import shared_out
from lakehouse_engine.services.compact.log_plan import logged_slices
from lakehouse_engine.verify import verify
from lakehouse_engine.write.tasks import copying
from lakehouse_engine.write.tasks.parquet_output import AssembledParquet
from tests.support.local_table import LocalTable
from tests.unit.services.clean.tables import COW, MOR, content, new_table, rows
from tests.unit.services.versions import version

__all__ = ["version"]

GROUPED = {"hoodie.parquet.small.file.limit": 0, "lakehouse.parquet.row.group.rows": 4}
"""Row groups of 2 to 4 rows are of a good size."""


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of each row group that is copied."""
    found, real = list[int](), AssembledParquet.copy

    def copy(self: AssembledParquet, chunks: copying.CopiedChunks, table: pa.Table) -> None:
        found.append(table.num_rows)
        real(self, chunks, table)

    monkeypatch.setattr(AssembledParquet, "copy", copy)
    monkeypatch.setattr(copying, "COPIED_FROM", 0)
    return found


def filled(table_type: str) -> tuple[LocalTable, dict[int, int]]:
    """Files of 7, 3 and 1 rows in one partition; one of the second is updated."""
    table = new_table(table_type, GROUPED)
    held = {number: 10 * number for number in range(11)}
    for ids in (range(7), range(7, 10), range(10, 11)):
        table.insert(rows({number: held[number] for number in ids}))
    return table, held


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_row_groups_of_a_good_size_are_copied_and_small_ones_put_together(
    table_type: str, copied: list[int], version: TableVersion
) -> None:
    table, held = filled(table_type)
    before = table.read(meta_columns=True).sort_by("id").drop_columns(["_hoodie_file_name"])
    result = table.cluster()
    assert (result.state, result.files_replaced, result.files_created, result.rows_written) == ("completed", 3, 1, 11)
    assert sorted(copied) == [3, 3, 4]
    after = table.read(meta_columns=True).sort_by("id").drop_columns(["_hoodie_file_name"])
    assert after.equals(before)
    [piece] = table.state.view.latest_slices()
    assert piece.base_file is not None
    footer = pq.ParquetFile(table.storage.open_input(piece.base_file.path))
    assert set(footer.read(["_hoodie_file_name"]).column(0).to_pylist()) == {piece.base_file.name}
    assert verify(table.state).ok
    table.upsert(rows(dict.fromkeys(held, 5)))
    assert content(table) == dict.fromkeys(held, 5)


def test_a_slice_with_logs_is_merged_between_those_that_are_copied(copied: list[int], version: TableVersion) -> None:
    table, held = filled(MOR)
    table.upsert(rows({8: 1}))
    result = table.cluster()
    assert (result.state, result.files_created, result.rows_written) == ("completed", 1, 11)
    assert sorted(copied) == [3, 4]
    assert content(table) == {**held, 8: 1}
    assert verify(table.state).ok


def test_files_of_another_codec_are_encoded_anew_whatever_their_size(copied: list[int]) -> None:
    table, held = filled(COW)
    table.options = {**GROUPED, "hoodie.parquet.compression.codec": "snappy"}
    assert table.cluster().state == "completed"
    assert copied == []
    assert content(table) == held


def test_small_files_are_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    table, held = filled(COW)
    monkeypatch.setattr("lakehouse_engine.services.cluster.joining.opened_groups", None)
    assert table.cluster().files_created == 1
    assert content(table) == held


def test_slices_are_shared_out_in_order_by_their_bytes() -> None:
    table, _ = filled(COW)
    pieces = logged_slices(table.state, table.state.view.latest_slices())
    assert [len(share) for share in shared_out(pieces, 1)] == [3]
    assert [len(share) for share in shared_out(pieces, 3)] == [1, 1, 1]
    shares = shared_out(pieces, 5)
    assert len(shares) == 5
    assert [piece for share in shares for piece in share] == list(pieces)
