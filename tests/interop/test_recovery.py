"""Savepoints and restores between us and Apache Hudi: it reads what we restored, each restores to a savepoint that the other took."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine.model.instant import Action, State
from tests.interop.client import HudiJudge, Query
from tests.interop.shared import writer_of
from tests.model_based.restore_scenarios import Cell, cells, rows
from tests.support.readers import assert_same_rows, read_with_hudi_rs

KINDS = pytest.mark.parametrize("merge_on_read", [False, True], ids=["cow", "mor"])


def test_hudi_reads_restored_tables_of_every_scenario(hudi: HudiJudge, tmp_path: Path) -> None:
    """One cell of each scenario, of either table type in turn, all read in one go."""
    restored = []
    for number, scenario in enumerate(dict.fromkeys(cell[0] for cell in cells())):
        forms = [cell[1:] for cell in cells() if cell[0] is scenario]
        merge_on_read, partitioned = forms[number % len(forms)]
        cell = Cell.create(tmp_path / f"{scenario.__name__}{number}", merge_on_read=merge_on_read, partitioned=partitioned)
        scenario(cell)
        cell.table.restore("kept", cascade=bool(cell.notes.get("cascade")))
        restored.append((scenario, cell))
    assert len(restored) == 29
    assert {cell.merge_on_read for _, cell in restored} == {cell.partitioned for _, cell in restored} == {False, True}
    readings = hudi.read_many([(cell.path, Query(options={"hoodie.metadata.enable": "false"})) for _, cell in restored])
    for (scenario, cell), reading in zip(restored, readings, strict=True):
        assert_same_rows(reading, cell.saved.rows, what=scenario.__name__)


@KINDS
def test_hudi_restores_to_a_savepoint_that_we_took(hudi: HudiJudge, merge_on_read: bool, tmp_path: Path) -> None:
    cell = Cell.create(tmp_path / "t", merge_on_read=merge_on_read, partitioned=True)
    theirs = writer_of(hudi, cell)
    cell.begin()
    cell.savepoint()
    cell.upsert(3)
    theirs.upsert(rows([1, 30], 4))
    cell.delete([2])
    theirs.restore(cell.saved.instant)
    assert_same_rows(theirs.read(), cell.saved.rows)
    assert_same_rows(cell.read(), cell.saved.rows)
    assert_same_rows(read_with_hudi_rs(cell.path), cell.saved.rows)
    cell.upsert(5)
    assert_same_rows(theirs.read(), cell.read())
    assert cell.table.restore("kept").rolled_back
    assert_same_rows(theirs.read(), cell.saved.rows)


@KINDS
def test_we_restore_to_a_savepoint_that_hudi_took_and_hudi_goes_on(hudi: HudiJudge, merge_on_read: bool, tmp_path: Path) -> None:
    cell = Cell.create(tmp_path / "t", merge_on_read=merge_on_read, partitioned=True)
    theirs = writer_of(hudi, cell)
    cell.begin()
    theirs.upsert(rows([1, 40], 3))
    theirs.savepoint(cell.last_write())
    cell.kept = cell.look(cell.last_write())
    theirs.upsert(rows([1, 41], 4))
    cell.upsert(5)
    theirs.delete(rows([3], 6))
    if merge_on_read:
        cell.table.compact()
    cell.table.restore(cell.saved.instant)
    assert_same_rows(cell.read(), cell.saved.rows)
    assert_same_rows(theirs.read(), cell.saved.rows)
    assert_same_rows(read_with_hudi_rs(cell.path), cell.saved.rows)
    theirs.upsert(rows([1, 42], 7))
    assert_same_rows(cell.read(), theirs.read())
    theirs.delete_savepoint(cell.saved.instant)
    cell.upsert(8)
    assert_same_rows(theirs.read(), cell.read())
    assert cell.table.state.timeline.savepointed == frozenset()


@KINDS
def test_hudi_finishes_the_restore_that_died_with_us(hudi: HudiJudge, merge_on_read: bool, tmp_path: Path) -> None:
    cell = Cell.create(tmp_path / "t", merge_on_read=merge_on_read, partitioned=True)
    theirs = writer_of(hudi, cell)
    cell.begin()
    cell.savepoint()
    cell.upsert(3)
    cell.upsert(4)
    cell.dies(r"\.restore$", lambda table: table.restore("kept"))
    theirs.restore(cell.saved.instant)
    assert [instant.state for instant in cell.table.state.timeline if instant.action is Action.RESTORE] == [State.COMPLETED]
    assert_same_rows(theirs.read(), cell.saved.rows)
    assert_same_rows(cell.read(), cell.saved.rows)
    theirs.upsert(rows([1, 42], 5))
    assert_same_rows(cell.read(), theirs.read())


def test_archived_commits_around_two_savepoints_stay_part_of_the_table_for_hudi(hudi: HudiJudge, tmp_path: Path) -> None:
    cell = Cell.create(tmp_path / "t", merge_on_read=False, partitioned=False)
    cell.begin()
    cell.table.savepoint(None, "first")
    for seed in range(5, 9):
        cell.table.bulk_insert(rows([100 + seed], seed))
    cell.savepoint()
    for seed in range(9, 15):
        cell.upsert(seed, [1, 100 + seed])
    assert cell.table.archive(2, 3).archived
    cell.table.restore("kept")
    theirs = writer_of(hudi, cell)
    assert_same_rows(theirs.read(), cell.saved.rows)
    theirs.upsert(rows([1, 42], 20))
    assert_same_rows(cell.read(), theirs.read())
