"""The project with merge-on-read tables has the same rows after every batch, and every reader agrees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from integration_tests.conftest import History
from integration_tests.tests.support import tpch
from integration_tests.tests.support.dbt import INCREMENTAL
from integration_tests.tests.support.expected import Expected
from lakehouse_engine.verify import verify
from tests.interop.client import HudiJudge, copy_table
from tests.support.readers import assert_same_rows, read_with_hudi_rs

CHANGED = ("orders", "lineitems", "order_status", "orders_snapshot", "customers_snapshot")
"""Tables whose stored rows a batch changes by key."""
LOGGED = ("orders", "lineitems")
"""Those of them that have slices that take no new rows in a batch; small base files that do are written anew, as by Hudi."""


@pytest.mark.parametrize("name", INCREMENTAL)
@pytest.mark.parametrize("batch", tpch.BATCHES)
def test_a_merge_on_read_table_has_the_rows_that_plain_spark_computes(
    history: History, expected: Callable[[int], Expected], batch: int, name: str
) -> None:
    actual = history.mor.table(name).to_arrow(as_of=history.mor_instants[batch][name])
    if name == "orders_snapshot":
        actual = actual.drop_columns(["dbt_scd_id", "dbt_updated_at"])
    if name == "customers_snapshot":
        actual = expected(batch).versions(actual)
    assert_same_rows(actual, expected(batch).table(name))


@pytest.mark.parametrize("name", INCREMENTAL)
@pytest.mark.parametrize("batch", tpch.BATCHES)
def test_hudi_rs_reads_the_merge_on_read_table_as_we_do(history: History, batch: int, name: str) -> None:
    instant = history.mor_instants[batch][name]
    theirs = read_with_hudi_rs(history.mor.table_path(name), as_of=instant)
    if name == "order_events" and batch < 3:
        # hudi-rs shows older snapshots in the newest schema.
        theirs = theirs.drop_columns(["channel"])
    assert_same_rows(theirs, history.mor.table(name).to_arrow(meta_columns=True, as_of=instant))


@pytest.mark.parametrize("name", LOGGED)
def test_updates_are_logged(history: History, name: str) -> None:
    table = history.mor.table(name)
    assert history.mor_builds[2].response(name)["log_files"] > 0
    assert any(piece.log_files for piece in table.state.view.latest_slices())
    base: pa.Table = table.to_arrow(query="read_optimized")
    assert base.num_rows > 0
    assert not base.equals(table.to_arrow())


@pytest.mark.parametrize("name", CHANGED)
def test_the_table_is_whole(history: History, name: str) -> None:
    assert history.mor_builds[2].response(name)["table_type"] == "mor"
    assert verify(history.mor.table(name).state).findings == ()


@pytest.mark.interop
@pytest.mark.parametrize("name", CHANGED)
def test_hudi_reads_the_merge_on_read_table_as_we_do(history: History, hudi: HudiJudge, name: str, tmp_path: Path) -> None:
    copy = copy_table(history.mor.table_path(name), tmp_path / name)
    assert_same_rows(hudi.read(copy), history.mor.table(name).to_arrow(meta_columns=True))
