"""Relations at another time, as SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.reading import travel
from dbt.adapters.lakehouse.relation import LakehouseRelation


class House:
    def moment(self, schema: str, identifier: str, point: str) -> str:
        return f"{schema}.{identifier}@{point}"


WAREHOUSE = cast(Warehouse, House())
READINGS: dict[str, tuple[Callable[[LakehouseRelation], str], str]] = {
    "at": (lambda one: travel.at(WAREHOUSE, one, -1), "s.t version as of 's.t@-1'"),
    "changes": (
        lambda one: travel.changes(WAREHOUSE, one, "earliest", 7),
        "hudi_table_changes('s.t', 'latest_state', 'earliest', 's.t@7')",
    ),
    "changes so far": (lambda one: travel.changes(WAREHOUSE, one, 7), "hudi_table_changes('s.t', 'latest_state', 's.t@7')"),
    "read optimized": (travel.read_optimized, "hudi_read_optimized('s.t')"),
    "with deleted": (travel.with_deleted, "lakehouse_with_deleted('s.t')"),
}


@pytest.mark.parametrize("name", READINGS)
@pytest.mark.parametrize(("limit", "form"), [(None, "{}"), (0, "(select * from {} where false limit 0)")])
def test_a_relation_at_another_time_is_the_sql_of_it_and_empty_where_dbt_asks_for_no_rows(name: str, limit: int | None, form: str) -> None:
    read, sql = READINGS[name]
    relation = LakehouseRelation.create(schema="s", identifier="t", limit=limit)
    assert read(relation) == form.format(sql)
