"""hudi-rs does not mind what the engine keeps in `.hoodie/.aux`, nor the seals of metadata."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine.verify import verify
from tests.model_based.restore_scenarios import Cell
from tests.support.aux_files import keep_everything_aside
from tests.support.readers import assert_same_rows, read_with_hudi_rs


@pytest.mark.parametrize("merge_on_read", [False, True], ids=["cow", "mor"])
def test_hudi_rs_reads_a_table_with_checkpoints_of_archived_commits(merge_on_read: bool, tmp_path: Path) -> None:
    cell = Cell.create(tmp_path / "t", merge_on_read=merge_on_read, partitioned=True)
    keep_everything_aside(cell)
    assert_same_rows(read_with_hudi_rs(cell.path), cell.read())
    last, before = (cell.table.instants()[place] for place in (-1, -2))
    assert_same_rows(read_with_hudi_rs(cell.path, as_of=before), cell.read(as_of=before))
    changed = cell.table.read(meta_columns=True, query="incremental", begin=before)
    assert changed.num_rows
    assert_same_rows(read_with_hudi_rs(cell.path, begin=before, end=last), changed)
    cell.upsert(9)
    assert_same_rows(read_with_hudi_rs(cell.path), cell.read())
    assert verify(cell.table.state).findings == ()
