"""The restore matrix: 29 scenarios on tables that copy on write (23 of them) and merge on read, partitioned or not: 104 cells.

Each cell: the rows with their meta columns equal those at the savepoint, as of every commit that is left; so do the data files, byte for
byte; hudi-rs reads the same; no instant and no file of a later write is left; and the table goes on: write, clean, savepoint, restore.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine.errors import InstantCleanedError, MissingFileError
from lakehouse_engine.format.file_names import is_log_file_name
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.read import indexed
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.restores import took_rows
from lakehouse_engine.view.protected import protected_files
from tests.model_based.restore_scenarios import Cell, cells, cells_of_9, cells_with_metadata, rows
from tests.support.depth import IS_FULL
from tests.support.local_table import LocalTable
from tests.support.metadata_checks import check_metadata
from tests.support.readers import assert_same_rows, first_difference, read_with_hudi_rs
from tests.support.versions import tables_of

CELLS = {
    f"{scenario.__name__}-{'mor' if mor else 'cow'}-{'parts' if parts else 'flat'}": (scenario, mor, parts)
    for scenario, mor, parts in cells()
}


CELLS_OF_9 = {
    f"{scenario.__name__}-{'mor' if mor else 'cow'}-{'parts' if parts else 'flat'}": (scenario, mor, parts)
    for scenario, mor, parts in cells_of_9()
}


CELLS_WITH_METADATA = {
    f"{scenario.__name__}-{'mor' if mor else 'cow'}-{'parts' if parts else 'flat'}-{version}": (scenario, mor, parts, version)
    for scenario, mor, parts, version in cells_with_metadata()
}


def test_the_matrix_has_all_its_cells() -> None:
    assert (len(CELLS), len(CELLS_OF_9), len(CELLS_WITH_METADATA)) == (104, 52, 104 if IS_FULL else 29)


@pytest.mark.parametrize("name", CELLS_OF_9)
def test_a_restored_table_of_a_later_version_is_what_it_was(name: str, tmp_path: Path) -> None:
    with tables_of(9):
        test_a_restored_table_is_what_it_was_at_the_savepoint(name, tmp_path)


@pytest.mark.parametrize("name", CELLS_WITH_METADATA)
def test_a_restored_metadata_table_is_right_or_gone(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexed, "WORTH_ASKING", 0)
    scenario, merge_on_read, partitioned, version = CELLS_WITH_METADATA[name]
    with tables_of(version):
        restore(scenario, Cell.create(tmp_path / "t", merge_on_read=merge_on_read, partitioned=partitioned, indexed=True))


@pytest.mark.parametrize("name", CELLS)
def test_a_restored_table_is_what_it_was_at_the_savepoint(name: str, tmp_path: Path) -> None:
    scenario, merge_on_read, partitioned = CELLS[name]
    restore(scenario, Cell.create(tmp_path / "t", merge_on_read=merge_on_read, partitioned=partitioned))


def restore(scenario: Callable[[Cell], None], cell: Cell) -> None:
    scenario(cell)
    if cell.notes.get("crash"):
        check_every_crash(cell)
    opened = plan_query(cell.table.state, Query()) if cell.notes.get("reader") else None
    before = cell.read() if opened is not None else None
    result = cell.table.restore("kept", cascade=bool(cell.notes.get("cascade")))
    assert result.restored_to == cell.saved.instant
    check(cell)
    if opened is not None:
        # Its files are gone: it is told so, and gets no part of them.
        with pytest.raises(MissingFileError):
            read_arrow(opened, meta_columns=True)
        assert before is not None
        assert first_difference(before, cell.saved.rows) is not None
    goes_on(cell)


def check(cell: Cell) -> None:
    saved = cell.saved
    assert_same_rows(cell.read(), saved.rows)
    for time, expected in saved.by_commit.items():
        check_as_of(cell, time, expected)
    check_files(cell)
    check_timeline(cell)
    check_indexed(cell)
    if cell.hudi_rs:
        assert_same_rows(read_with_hudi_rs(cell.path), saved.rows)


def check_indexed(cell: Cell) -> None:
    """Nothing is wrong with the metadata table, if it is still there, and filters that ask it find the rows of the table."""
    if not check_metadata(cell.storage):
        return
    rows = cell.read()
    for wanted in (pc.field("id").isin([1, 2, 20, 500]), pc.field("ts") >= 2, (pc.field("v") == "v2/2") & (pc.field("part") == "x")):
        assert_same_rows(cell.table.read(meta_columns=True, filters=wanted), rows.filter(wanted))


def check_as_of(cell: Cell, time: str, expected: pa.Table) -> None:
    try:
        found = cell.read(as_of=time)
    except InstantCleanedError:
        # A clean after the savepoint may have taken what only older commits needed, never what the savepoint pins.
        assert not cell.exact
        assert time != cell.saved.instant
        return
    assert_same_rows(found, expected)


def check_files(cell: Cell) -> None:
    now, then = cell.data_files(), cell.saved.files
    pinned = set(protected_files(cell.table.state, up_to=cell.saved.instant))
    assert pinned <= set(now)
    changed = [path for path, digest in now.items() if path in then and then[path] != digest]
    assert changed == []
    extra = {path for path in set(now) - set(then) if path not in pinned}
    assert {path for path in extra if not is_log_file_name(path.rpartition("/")[2])} == set()
    if cell.exact:
        assert extra == set()
        assert set(then) <= set(now)


def check_timeline(cell: Cell) -> None:
    state = cell.table.state
    active, later = ActiveTimeline(state.storage, state.format), state.timeline.newer_than(cell.saved.instant)
    # Rollbacks of published writes go on telling readers who had read these.
    spent = later.filter(lambda one: not (one.action is Action.ROLLBACK and took_rows(active, one)))
    assert {instant.action for instant in spent} <= {Action.RESTORE, Action.CLEAN, Action.COMMIT, Action.DELTA_COMMIT}
    assert all(instant.is_completed for instant in later)
    # An empty write marks where the timeline begins, if commits around the savepoint are archived.
    for write in later.writes():
        assert list(state.commit_metadata(write).write_stats()) == []
    assert cell.storage.walk(".hoodie/.temp") == []


def goes_on(cell: Cell) -> None:
    """Write, clean, archive, savepoint, and back again."""
    cell.table.upsert(rows([1, 500], 50))
    assert cell.read(as_of=cell.last_write()).num_rows == cell.read().num_rows
    cell.table.savepoint(None, "after")
    again = cell.look(cell.last_write())
    cell.table.upsert(rows([1, 501], 51))
    if cell.merge_on_read:
        cell.table.compact()
    cell.table.clean(1)
    if cell.table.state.config.version is TableVersion.SIX:
        cell.archive()
    cell.table.upsert(rows([1, 502], 52))
    check_indexed(cell)
    cell.table.restore("after")
    assert_same_rows(cell.read(), again.rows)
    check_indexed(cell)
    if cell.hudi_rs:
        assert_same_rows(read_with_hudi_rs(cell.path), again.rows)
    cell.table.restore("kept", cascade=True)
    assert_same_rows(cell.read(), cell.saved.rows)
    check_indexed(cell)


def check_every_crash(cell: Cell) -> None:
    """The restore dies before each of its calls, with a metadata table before some; readers see the table before it or after it, and
    whoever comes next finishes it.
    """
    before = cell.read()
    original = cell.path
    counting = _copy(cell, original, "counting")
    storage = FaultyStorage(counting.storage)
    LocalTable(storage, lock_timeout_ms=5000).restore("kept")
    calls = len(storage.mutations)
    assert calls > 8
    for call in range(1, calls + 1, 5 if cell.indexed and not IS_FULL else 1):
        crashed = _copy(cell, original, f"crash{call}")
        with pytest.raises(SimulatedCrash):
            LocalTable(FaultyStorage(crashed.storage, call, Fault.CRASH_BEFORE), lock_timeout_ms=5000).restore("kept")
        seen = crashed.read()
        assert first_difference(seen, before) is None or first_difference(seen, cell.saved.rows) is None, storage.mutations[call - 1]
        result = crashed.table.restore("kept")
        assert result.restored_to == cell.saved.instant
        check(crashed)
        shutil.rmtree(crashed.path)


def _copy(cell: Cell, original: Path, name: str) -> Cell:
    target = original.with_name(name)
    shutil.copytree(original, target)
    return Cell(target, cell.merge_on_read, cell.partitioned, cell.kept, cell.exact, cell.hudi_rs, indexed=cell.indexed)
