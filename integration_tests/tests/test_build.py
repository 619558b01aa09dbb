"""Every table after every batch: its rows are those that plain Spark SQL computes, and hudi-rs reads them as the engine does."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from integration_tests.conftest import RERUN, History
from integration_tests.tests.support import tpch
from integration_tests.tests.support.dbt import INCREMENTAL
from integration_tests.tests.support.expected import TABLES, Expected
from lakehouse_engine.verify import verify
from tests.support.readers import assert_same_rows, read_with_hudi_rs


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("batch", tpch.BATCHES)
def test_a_table_has_the_rows_that_plain_spark_computes(
    history: History, expected: Callable[[int], Expected], batch: int, name: str
) -> None:
    actual = history.project.table(name).to_arrow(as_of=history.instants[batch][name])
    wanted = expected(batch).table(name)
    if name == "orders_snapshot":
        actual = actual.drop_columns(["dbt_scd_id", "dbt_updated_at"])
    if name == "customers_snapshot":
        actual = expected(batch).versions(actual)
    assert_same_rows(actual, wanted)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("batch", tpch.BATCHES)
def test_hudi_rs_reads_the_same_rows(history: History, batch: int, name: str) -> None:
    instant = history.instants[batch][name]
    ours = history.project.table(name).to_arrow(meta_columns=True, as_of=instant)
    theirs = read_with_hudi_rs(history.project.table_path(name), as_of=instant)
    if name == "order_events" and batch < 3:
        # hudi-rs shows older snapshots in the newest schema.
        assert theirs["channel"].null_count == len(theirs)
        theirs = theirs.drop_columns(["channel"])
    assert_same_rows(theirs, ours)


@pytest.mark.parametrize("name", TABLES)
def test_the_newest_snapshot_is_the_last_batch_for_every_reader(history: History, name: str) -> None:
    table = history.project.table(name)
    rows = table.to_arrow(meta_columns=True)
    assert_same_rows(read_with_hudi_rs(history.project.table_path(name)), rows)
    assert_same_rows(_content(rows), _content(table.to_arrow(meta_columns=True, as_of=history.instants[3][name])))


@pytest.mark.parametrize("name", INCREMENTAL)
@pytest.mark.parametrize("batch", RERUN)
def test_a_build_without_news_commits_nothing_to_incremental_tables(history: History, batch: int, name: str) -> None:
    assert history.again[batch][name] == history.instants[batch][name]
    response = history.rebuilds[batch].response(name)
    assert "instant" not in response
    assert response["rows_affected"] == 0


@pytest.mark.parametrize("batch", tpch.BATCHES)
def test_all_tests_of_the_project_pass_after_each_batch(history: History, batch: int) -> None:
    tests = {name: node["status"] for name, node in history.builds[batch].nodes.items() if node["unique_id"].startswith("test.")}
    assert len(tests) > 20
    assert set(tests.values()) == {"pass"}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_whole(history: History, name: str) -> None:
    table = history.project.table(name)
    assert not table.timeline.pending().instants
    assert not verify(table.state).findings


def _content(table: pa.Table) -> pa.Table:
    return table.drop_columns([name for name in table.column_names if name.startswith("_hoodie_")])
