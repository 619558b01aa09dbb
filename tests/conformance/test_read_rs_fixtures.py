"""The version 6 tables of hudi-rs' test data: read by us as hudi-rs reads them, and as its tests say."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.scan import plan_incremental, plan_snapshot
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.view.table_state import TableState
from tests.support.fixtures import fixtures_root, rs_fixtures, unpack_rs_fixture
from tests.support.readers import assert_same_rows, read_with_hudi_rs, user_columns

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason="the tables of hudi-rs are not here (LAKEHOUSE_FIXTURES)")

COW = [name for name in rs_fixtures("cow") if "__v6_" in name]
MOR = [name for name in rs_fixtures("mor") if "__v6_" in name]

ROWS = {
    "v6_empty": [],
    "v6_nonpartitioned": [(1, "Alice", False), (2, "Bob", False), (3, "Carol", True), (4, "Diana", True)],
    "v6_simplekeygen_nonhivestyle": [(1, "Alice", False), (2, "Bob", False), (3, "Carol", True), (4, "Diana", True)],
}
"""Rows (id, name, isActive) that hudi-rs' own tests expect of snapshots."""


def open_table(name: str, folder: Path) -> tuple[Path, TableState]:
    path = unpack_rs_fixture(name, folder)
    return path, TableState.load(LocalStorage(str(path)))


def judged(path: Path, state: TableState, **options: str | bool) -> pa.Table:
    """The reading of hudi-rs, with meta columns where the table has them."""
    table = read_with_hudi_rs(path, **options)  # type: ignore[arg-type]
    return table if state.config.populates_meta_fields else user_columns(table)


@pytest.mark.parametrize("name", COW)
def test_snapshots_and_time_travel_equal_those_of_hudi_rs(name: str, tmp_path: Path) -> None:
    path, state = open_table(name, tmp_path)
    meta = state.config.populates_meta_fields
    assert_same_rows(read_arrow(plan_snapshot(state), meta_columns=meta), judged(path, state))
    for write in state.timeline.completed().writes():
        time = write.requested_time
        assert_same_rows(read_arrow(plan_snapshot(state, time), meta_columns=meta), judged(path, state, as_of=time))


@pytest.mark.parametrize("name", COW)
def test_incremental_reads_equal_those_of_hudi_rs(name: str, tmp_path: Path) -> None:
    path, state = open_table(name, tmp_path)
    if not state.config.populates_meta_fields:
        pytest.skip("refused without meta columns")
    times = [write.requested_time for write in state.timeline.completed().writes()]
    for begin, end in combinations(["000", *times], 2):
        ours = read_arrow(plan_incremental(state, begin, end), meta_columns=True)
        assert_same_rows(ours, judged(path, state, begin=begin, end=end))


@pytest.mark.parametrize("name", MOR)
def test_read_optimized_reads_equal_those_of_hudi_rs(name: str, tmp_path: Path) -> None:
    path, state = open_table(name, tmp_path)
    ours = read_arrow(plan_snapshot(state, read_optimized=True), meta_columns=state.config.populates_meta_fields)
    assert_same_rows(ours, judged(path, state, read_optimized=True))


@pytest.mark.parametrize("name", [name for name in COW if name.rpartition("__")[2] in ROWS])
def test_snapshots_have_the_rows_that_the_tests_of_hudi_rs_expect(name: str, tmp_path: Path) -> None:
    _, state = open_table(name, tmp_path)
    rows = read_arrow(plan_snapshot(state)).to_pylist()
    assert sorted((row["id"], row["name"], row["isActive"]) for row in rows) == ROWS[name.rpartition("__")[2]]
