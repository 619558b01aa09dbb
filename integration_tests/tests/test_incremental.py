"""What the feed is hard for: late changes, repeated ones, deletions, moves between partitions, new columns, a full refresh."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from integration_tests.conftest import History
from integration_tests.tests.support.expected import Expected
from tests.support.readers import assert_same_rows, read_with_hudi_rs


def changes(history: History, batch: int, op: str | None = None, status: str | None = None) -> pa.Table:
    """What a batch says about orders."""
    rows = pq.read_table(history.feed.landing / "orders" / f"batch-{batch}.parquet")
    rows = rows.filter(pc.equal(rows["op"], op)) if op else rows
    return rows.filter(pc.equal(rows["o_orderstatus"], status)) if status else rows


def keys(table: pa.Table, name: str = "o_orderkey") -> set[int]:
    return set(table[name].to_pylist())


def test_a_change_that_arrives_late_changes_nothing(history: History) -> None:
    filled = {row["o_orderkey"]: row["changed_at"] for row in changes(history, 2, "U", "F").to_pylist()}
    again = [row for row in changes(history, 3, "U", "P").to_pylist() if row["o_orderkey"] in filled]
    late = [row for row in again if row["changed_at"] < filled[row["o_orderkey"]]]
    assert len(late) > 100
    stored = {row["order_key"]: row for row in history.project.table("orders").to_arrow().to_pylist()}
    for row in late:
        order = stored[row["o_orderkey"]]
        assert (order["status"], order["changed_at"]) == ("F", filled[row["o_orderkey"]])


def test_of_changes_that_arrive_twice_in_a_batch_the_newest_is_stored_once(history: History) -> None:
    older = keys(changes(history, 2, "U", "P"))
    filled = changes(history, 2, "U", "F")
    assert older
    assert older <= keys(filled)
    assert len(filled) > len(keys(filled))
    stored = history.project.table("orders").to_arrow(as_of=history.instants[2]["orders"])
    stored = stored.filter(pc.is_in(stored["order_key"], pa.array(sorted(older))))
    assert len(stored) == len(older)
    assert set(stored["status"].to_pylist()) == {"F"}


def test_a_deleted_order_is_gone_with_its_lines_until_it_comes_back(history: History) -> None:
    deleted = keys(changes(history, 2, "D"))
    assert deleted
    for name in ("orders", "lineitems"):
        table = history.project.table(name)
        assert not deleted & keys(table.to_arrow(as_of=history.instants[2][name]), "order_key")
        returned = deleted & keys(changes(history, 3, "I"))
        assert deleted & keys(table.to_arrow(as_of=history.instants[3][name]), "order_key") == returned
        assert returned


def test_an_order_that_is_changed_and_then_deleted_in_one_batch_is_gone(history: History) -> None:
    both = keys(changes(history, 3, "D")) & keys(changes(history, 3, "U"))
    assert both
    assert not both & keys(history.project.table("orders").to_arrow(), "order_key")


def test_an_order_whose_status_changes_moves_to_the_partition_of_that_status(history: History) -> None:
    filled = changes(history, 2, "U", "F")
    moved = pa.array(sorted(keys(filled)))
    places = {}
    for batch in (1, 2):
        rows = history.project.table("order_status").to_arrow(meta_columns=True, as_of=history.instants[batch]["order_status"])
        rows = rows.filter(pc.is_in(rows["order_key"], moved))
        assert len(rows) == len(moved)
        places[batch] = set(rows["_hoodie_partition_path"].to_pylist())
    assert places == {1: {"status=O"}, 2: {"status=F"}}


def test_a_new_column_of_the_feed_is_appended_and_older_rows_have_nulls(history: History) -> None:
    table = history.project.table("order_events")
    before = table.to_arrow(as_of=history.instants[2]["order_events"])
    after = table.to_arrow()
    assert after.schema.names == [*before.schema.names, "channel"]
    assert len(before) + len(changes(history, 3)) == len(after)
    assert after["channel"].null_count == len(before) + changes(history, 3)["channel"].null_count


def test_a_full_refresh_gives_the_same_rows_and_keeps_the_history(
    history: History, expected: Callable[[int], Expected], tmp_path: Path
) -> None:
    project = history.project.copy_to(tmp_path / "project")
    run = project.dbt("run", "--full-refresh", "--select", "orders", "order_status", "daily_revenue")
    assert not run.failures()
    for name in ("orders", "order_status", "daily_revenue"):
        table = project.table(name)
        wanted = expected(3).table(name)
        assert_same_rows(table.to_arrow(), wanted)
        assert_same_rows(read_with_hudi_rs(project.table_path(name)), table.to_arrow(meta_columns=True))
        assert run.response(name)["operation"] == "insert_overwrite_table"
        assert run.response(name)["previous_instant"] == history.instants[3][name]
        before = table.to_arrow(as_of=history.instants[3][name])
        assert_same_rows(before, wanted)
