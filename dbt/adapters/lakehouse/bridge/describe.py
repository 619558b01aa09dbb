"""Facts about tables for documentation, freshness and operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dbt.adapters.lakehouse.bridge.outcomes import table_type_of
from dbt.adapters.lakehouse.names import is_own_savepoint
from lakehouse_engine import api

if TYPE_CHECKING:
    from dbt.adapters.lakehouse.bridge.stored import StoredTable
    from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
    from lakehouse_engine.api.tables import HoodieTable


def is_merge_on_read(table: HoodieTable) -> bool:
    """True for a merge-on-read table, False for a copy-on-write one."""
    return table_type_of(table.config.table_type) == "mor"


def kept_savepoints(warehouse: Warehouse, schema: str, identifier: str) -> list[str]:
    """Names (else instants) of a table's savepoints made by users; those of protected runs are left out."""
    savepoints = warehouse.table(schema, identifier).savepoints()
    return [str(one.name or one.instant) for one in savepoints if not is_own_savepoint(one.name)]


def oldest_first(responses: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Responses of writes, by their `instant`."""
    return api.work.in_time_order(responses, lambda one: str(one["instant"]))


def statistics(stored: StoredTable) -> dict[str, Any]:
    """Statistics for documentation, by the ids of `catalog.STATISTICS`."""
    shape = stored.shape
    return {
        **asdict(api.health.statistics(stored.state)),
        "table_type": shape.table_type,
        "record_key": ", ".join(shape.record_key),
        "partition_by": ", ".join(shape.partition_by),
    }
