"""What a user looks at: documentation and single queries."""

from __future__ import annotations

import json
from typing import Any

import pytest

from integration_tests.conftest import History


@pytest.fixture(scope="module")
def catalog(history: History) -> dict[str, Any]:
    assert not history.project.dbt("docs", "generate").failures()
    return history.project.artifact("catalog.json")


def test_docs_list_every_table_and_view_with_its_columns(history: History, catalog: dict[str, Any]) -> None:
    assert not catalog["errors"]
    nodes = {name.split(".")[-1]: node for name, node in catalog["nodes"].items()}
    assert {name for name, node in nodes.items() if node["metadata"]["type"] == "view"} == {
        "stg_orders",
        "stg_order_events",
        "stg_lineitems",
        "stg_customers",
    }
    orders = nodes["orders"]
    types = {name: column["type"] for name, column in orders["columns"].items()}
    assert types["order_key"] == "bigint"
    assert types["total_price"] == "decimal(15,2)"
    assert types["order_date"] == "date"
    assert types["changed_at"] == "timestamp"
    assert list(types) == history.project.table("orders").schema.names


def test_docs_show_the_statistics_of_a_table(history: History, catalog: dict[str, Any]) -> None:
    stats = {name: stat["value"] for name, stat in catalog["nodes"]["model.tpch.orders"]["stats"].items()}
    assert int(stats["rows"]) == len(history.project.table("orders").to_arrow())
    assert stats["record_key"] == "order_key"
    assert stats["partition_by"] == "order_year"
    assert stats["last_commit"] == history.instants[3]["orders"]


def test_descriptions_are_kept_with_the_tables_of_the_marts(catalog: dict[str, Any]) -> None:
    node = catalog["nodes"]["model.tpch.revenue_by_nation_month"]
    assert node["metadata"]["comment"].startswith("Revenue after discount")
    assert node["columns"]["nation"]["comment"] == "The customer's nation."


def test_show_prints_rows_of_a_model(history: History) -> None:
    shown = history.project.dbt("show", "--select", "revenue_by_nation_month", "--limit", "3", "--output", "json")
    assert shown.success
    assert len(shown.value.results[0].agate_table.rows) == 3


def test_show_answers_an_inline_query_over_tables_and_views(history: History) -> None:
    query = "select count(*) as orders from {{ ref('orders') }} join {{ ref('stg_customers') }} using (customer_key)"
    shown = history.project.dbt("show", "--inline", query)
    (row,) = shown.value.results[0].agate_table.rows
    customers = set(history.project.table("customers").to_arrow(columns=["customer_key"])["customer_key"].to_pylist())
    ordered = history.project.table("orders").to_arrow(columns=["customer_key"])["customer_key"].to_pylist()
    assert int(row[0]) == sum(key in customers for key in ordered)


def test_show_travels_in_time(history: History) -> None:
    instant = history.instants[1]["orders"]
    shown = history.project.dbt("show", "--inline", f"select count(*) as orders from {{{{ ref('orders') }}}} version as of '{instant}'")
    (row,) = shown.value.results[0].agate_table.rows
    assert int(row[0]) == history.builds[1].response("orders")["inserts"]


def test_the_seed_is_the_reference_data_of_the_generator(history: History) -> None:
    manifest = history.project.artifact("manifest.json")
    assert manifest["nodes"]["seed.tpch.nation_regions"]["config"]["materialized"] == "seed"
    assert json.dumps(history.project.table("nation_regions").schema.names) == '["nation_key", "nation", "region"]'
