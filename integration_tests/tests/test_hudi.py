"""Apache Hudi itself reads the warehouse as the engine does. Runs last: its JVM is started when nothing else is to be done."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration_tests.conftest import History
from integration_tests.tests.support.expected import TABLES
from tests.interop.client import HudiJudge, copy_table
from tests.support.readers import assert_same_rows

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("name", TABLES)
def test_hudi_reads_the_newest_snapshot_as_we_do(history: History, hudi: HudiJudge, name: str, tmp_path: Path) -> None:
    copy = copy_table(history.project.table_path(name), tmp_path / name)
    assert_same_rows(hudi.read(copy), history.project.table(name).to_arrow(meta_columns=True))


@pytest.mark.parametrize("name", ["orders", "order_status", "customer_years", "daily_revenue"])
def test_hudi_reads_an_older_snapshot_as_we_do(history: History, hudi: HudiJudge, name: str, tmp_path: Path) -> None:
    instant = history.instants[1][name]
    copy = copy_table(history.project.table_path(name), tmp_path / name)
    assert_same_rows(hudi.read(copy, as_of=instant), history.project.table(name).to_arrow(meta_columns=True, as_of=instant))


@pytest.mark.parametrize("name", ["orders", "order_events"])
def test_hudi_reads_the_changes_between_two_commits_as_we_do(history: History, hudi: HudiJudge, name: str, tmp_path: Path) -> None:
    begin, end = history.instants[1][name], history.instants[3][name]
    copy = copy_table(history.project.table_path(name), tmp_path / name)
    ours = history.project.table(name).to_arrow(meta_columns=True, query="incremental", begin=begin, end=end)
    assert len(ours) > 1000
    assert_same_rows(hudi.read(copy, begin=begin, end=end), ours)
