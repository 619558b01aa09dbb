"""Tables that Hudi wrote, brought to other versions and back: every reading is as it was, and `verify` finds nothing.

`LAKEHOUSE_DEPTH=full` takes every table; else those that show something of their own.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable
from lakehouse_engine.errors import LakehouseError, UnsupportedTableError
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.model.merge_mode import merging_of
from lakehouse_engine.view.table_state import TableState
from tests.support.depth import IS_FULL
from tests.support.fixtures import rs_fixtures, spark_fixtures, unpack_rs_fixture, unpack_spark_fixture
from tests.support.readers import first_difference

WAYS = {"v6-0.15.0": (8, 9, 8, 6), "v6-1.2.0": (9, 6), "v8-1.2.0": (6, 9, 8), "v9-1.2.0": (6, 9)}
SHOWN = {
    "v6-0.15.0": (
        "cow_archive_beyond_savepoint",
        "cow_clustering_pending",
        "cow_savepoint_restore",
        "cow_keygen_custom",
        "cow_timezone_local",
        "mor_archive",
        "mor_compaction_pending",
        "mor_rollback_eager",
        "mor_savepoint_restore",
        "mor_log_compaction",
    ),
    "v6-1.2.0": ("mor_overwrite",),
    "v8-1.2.0": ("mor_savepoint_restore", "mor_merge_into_partial"),
    "v9-1.2.0": ("cow_archive", "mor_clean_commits", "mor_compaction_pending", "mor_merge_commit_time", "mor_clustering"),
}
LATE_DELETIONS = [f"v6-0.15.0/mor_merge_{name}" for name in ("compacted", "default_payload", "overwrite_latest")]
"""Their logs delete rows of higher ordering values."""
CASES = [name for version in WAYS for name in spark_fixtures((version,)) if IS_FULL or name.split("/")[1] in SHOWN[version]]
RS_CASES = rs_fixtures() if IS_FULL else [name for name in rs_fixtures() if "trips" in name]


def readings(path: Path, times: list[str]) -> dict[str, pa.Table | str]:
    """The newest rows, rows as of each write, and what changed since each; without the names of files, which compactions change."""
    table = HoodieTable.open(str(path))
    asked: dict[str, dict[str, Any]] = {"now": {}, "since all": {"query": "incremental"}}
    asked |= {f"as of {time}": {"as_of": time} for time in times}
    asked |= {f"since {begin}": {"query": "incremental", "begin": begin, "end": end} for begin, end in pairwise(times)}
    return {name: answer(table, query) for name, query in asked.items()}


def answer(table: HoodieTable, query: dict[str, Any]) -> pa.Table | str:
    """Rows, or the name of the error."""
    try:
        return table.to_arrow(meta_columns=True, **query).drop(["_hoodie_file_name"])
    except LakehouseError as error:
        return type(error).__name__


def check_same(before: dict[str, pa.Table | str], after: dict[str, pa.Table | str], *, newest_only: bool) -> None:
    for name, expected in before.items():
        if newest_only and name.startswith("as of"):
            continue
        actual = after[name]
        if isinstance(expected, str) or isinstance(actual, str):
            assert (type(actual), actual) == (str, expected), f"{name}: {actual}, not {expected}"
        else:
            difference = first_difference(actual, expected)
            assert difference is None, f"{name}: {difference}"


def weighs_deletions(state: TableState) -> bool:
    return MergeRules.of(state.config, table_schema(state)).weighs_deletions


def check_way(path: Path, way: tuple[int, ...], *, has_late_deletions: bool = False) -> None:
    try:
        table = HoodieTable.open(str(path))
        table.to_arrow()
    except UnsupportedTableError as error:
        pytest.skip(f"the table cannot be read: {error.message}")
    times = [one.requested_time for one in table.timeline.completed().writes()]
    before = readings(path, times)
    for to in way:
        table = HoodieTable.open(str(path))
        present = int(table.config.version)
        # Rules of partial updates are another thing in version 9, and Hudi 0.15 deletes whatever the ordering value of a logged deletion:
        # file slices with logs are merged by other rules then, which a moment before the change shows where logs have such.
        partial, weighs = present == 9 and merging_of(table.config).partial is not None, weighs_deletions(table.state)
        table.upgrade(to) if to > present else table.downgrade(to)
        state = TableState.load(table.storage)
        assert int(state.config.version) == to
        after = readings(path, times)
        partial = partial or (to == 9 and merging_of(state.config).partial is not None)
        check_same(before, after, newest_only=partial or (has_late_deletions and weighs_deletions(state) != weighs))
        report = HoodieTable.open(str(path)).verify(quick=True)
        assert report.ok, report.findings
        before = after


@pytest.mark.parametrize("name", CASES)
def test_a_table_of_hudi_reads_the_same_in_every_version(name: str, tmp_path: Path) -> None:
    check_way(unpack_spark_fixture(name, tmp_path), WAYS[name.split("/")[0]], has_late_deletions=name in LATE_DELETIONS)


@pytest.mark.parametrize("name", RS_CASES)
def test_a_table_of_the_rust_tests_reads_the_same_in_every_version(name: str, tmp_path: Path) -> None:
    check_way(unpack_rs_fixture(name, tmp_path), (9, 6))


@pytest.mark.parametrize("name", ["v6-0.15.0/mor_savepoint_restore", "v9-1.2.0/mor_clean_commits"])
def test_a_restore_to_a_savepoint_from_before_brings_its_rows(name: str, tmp_path: Path) -> None:
    if name not in spark_fixtures((name.split("/")[0],)):
        pytest.skip("no fixtures of Hudi here")
    path = unpack_spark_fixture(name, tmp_path)
    table = HoodieTable.open(str(path))
    savepoint = min(table.timeline.savepointed)
    expected = table.to_arrow(as_of=savepoint)
    present = int(table.config.version)
    table.upgrade(9) if present == 6 else table.downgrade(6)
    table = HoodieTable.open(str(path))
    table.restore(savepoint, cascade=True)
    assert first_difference(HoodieTable.open(str(path)).to_arrow(), expected) is None
    assert HoodieTable.open(str(path)).verify(quick=True).ok
