"""What the engine keeps in `.hoodie/.aux` is nothing to Apache Hudi, and what Hudi archives beyond our checkpoint is not lost on us."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine.errors import MissingFileError
from lakehouse_engine.repair import repair
from lakehouse_engine.timeline.checkpoints import LiveCheckpoints
from lakehouse_engine.verify import verify
from tests.interop.client import HudiJudge
from tests.interop.continuation import HudiWriter
from tests.interop.shared import writer_of
from tests.model_based.restore_scenarios import PARTS, Cell, rows
from tests.support.aux_files import keep_everything_aside
from tests.support.readers import assert_same_rows, read_with_hudi_rs

KINDS = pytest.mark.parametrize("merge_on_read", [False, True], ids=["cow", "mor"])


def check(cell: Cell, theirs: HudiWriter) -> None:
    ours = cell.read()
    assert_same_rows(theirs.read(), ours)
    assert_same_rows(read_with_hudi_rs(cell.path), ours)
    assert verify(cell.table.state).findings == ()


def archive_with_hudi(cell: Cell, theirs: HudiWriter) -> None:
    """The last version of the second partition, and others after it, until that is archived by Hudi."""
    theirs.upsert(rows([1, 3, 31], 20))
    for seed in (21, 22, 23):
        if cell.merge_on_read:
            theirs.compact("scheduleAndExecute")
        theirs.upsert(rows([2, 4, 20], seed))
    theirs.clean(1)
    theirs.archive(2, 3)


@KINDS
def test_hudi_goes_on_with_a_table_that_keeps_checkpoints_and_we_after_it(hudi: HudiJudge, merge_on_read: bool, tmp_path: Path) -> None:
    cell = Cell.create(tmp_path / "t", merge_on_read=merge_on_read, partitioned=True)
    keep_everything_aside(cell)
    theirs = writer_of(hudi, cell)
    check(cell, theirs)
    archive_with_hudi(cell, theirs)
    check(cell, theirs)
    cell.upsert(30)
    check(cell, theirs)
    cell.table.restore("kept")
    check(cell, theirs)
    assert_same_rows(cell.read(), cell.saved.rows)


@KINDS
def test_a_file_whose_commit_hudi_archived_beyond_our_checkpoint_is_missed(hudi: HudiJudge, merge_on_read: bool, tmp_path: Path) -> None:
    cell = Cell.create(tmp_path / "t", merge_on_read=merge_on_read, partitioned=True)
    keep_everything_aside(cell)
    # Hudi archives nothing beyond a savepoint.
    cell.table.delete_savepoint("kept")
    checkpoint = LiveCheckpoints(cell.storage).times()[0]
    archive_with_hudi(cell, writer_of(hudi, cell))
    state = cell.table.state
    base = next(piece.base_file for piece in state.view.latest_slices() if piece.partition_path.endswith(PARTS[1]))
    assert base is not None
    assert base.instant_time > checkpoint
    assert not state.timeline.contains(base.instant_time)
    whole = (cell.path / base.path).read_bytes()

    (cell.path / base.path).unlink()
    with pytest.raises(MissingFileError, match=base.path):
        cell.read()
    with pytest.raises(MissingFileError, match=base.path):
        cell.upsert(31, [1, 3])
    assert base.path in {finding.path for finding in verify(cell.table.state).findings}
    report = repair(cell.storage, lock_timeout_ms=5000)
    assert [str(one.kind) for one in report.repaired] == ["no_checkpoint"]
    assert [one.what for one in report.left if one.kind == "lost_data"] == [base.path]
    assert LiveCheckpoints(cell.storage).times()[0] > checkpoint
    with pytest.raises(MissingFileError, match=base.path):
        cell.read()

    (cell.path / base.path).write_bytes(whole)
    assert verify(cell.table.state).findings == ()
    assert repair(cell.storage, lock_timeout_ms=5000).repaired == ()
