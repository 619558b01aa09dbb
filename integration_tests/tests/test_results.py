"""`run_results.json` says of every write what the table's timeline says."""

from __future__ import annotations

import pyarrow as pa
import pytest

from integration_tests.conftest import History

WRITES = {
    "orders": "upsert",
    "lineitems": "upsert",
    "order_status": "upsert",
    "order_events": "insert",
    "daily_revenue": "insert_overwrite",
    "customer_years": "upsert",
    "revenue_by_nation_month": "insert_overwrite_table",
    "customers": "insert_overwrite_table",
    "nation_regions": "insert_overwrite_table",
    "orders_snapshot": "upsert",
    "customers_snapshot": "upsert",
}


@pytest.mark.parametrize(("name", "operation"), WRITES.items())
def test_the_response_names_the_commit_and_what_it_wrote(history: History, name: str, operation: str) -> None:
    response = history.builds[2].response(name)
    table = history.project.table(name)
    assert response["operation"] == operation
    assert response["table_type"] == "cow"
    assert response["instant"] == history.instants[2][name]
    assert response["previous_instant"] == history.instants[1][name]
    instant = table.timeline.find(response["instant"])
    assert instant is not None
    stats = [stat for stat in table.state.commit_metadata(instant).write_stats() if stat.path]
    assert response["files_created"] + response["files_updated"] == len(stats)
    assert response["log_files"] == 0
    sizes = sum((history.project.table_path(name) / stat.path).stat().st_size for stat in stats)
    assert response["bytes_written"] == sizes > 0
    assert response["rows_affected"] == response["inserts"] + response["updates"] + response["deletes"]


@pytest.mark.parametrize("batch", [2, 3])
def test_inserts_updates_and_deletes_are_those_between_two_snapshots(history: History, batch: int) -> None:
    response = history.builds[batch].response("orders")
    before, after = (_states(history, number) for number in (batch - 1, batch))
    assert response["inserts"] == len(after.keys() - before.keys())
    assert response["deletes"] == len(before.keys() - after.keys())
    assert response["updates"] >= sum(before[key] != after[key] for key in before.keys() & after.keys()) > 0


def test_each_first_write_created_its_table(history: History) -> None:
    for name in WRITES:
        response = history.builds[1].response(name)
        assert response["operation"] == "bulk_insert"
        assert "previous_instant" not in response
        assert response["inserts"] == response["rows_affected"] == len(history.project.table(name).to_arrow(as_of=response["instant"]))


def test_a_commit_says_which_node_and_which_run_wrote_it(history: History) -> None:
    table = history.project.table("orders")
    instant = table.timeline.find(history.instants[2]["orders"])
    assert instant is not None
    extra = table.state.commit_metadata(instant).extra_metadata
    assert extra["dbt.node"] == "model.tpch.orders"
    assert extra["dbt.invocation_id"]


def _states(history: History, batch: int) -> dict[int, object]:
    rows: pa.Table = history.project.table("orders").to_arrow(as_of=history.instants[batch]["orders"], columns=["order_key", "changed_at"])
    return dict(zip(rows["order_key"].to_pylist(), rows["changed_at"].to_pylist(), strict=True))
