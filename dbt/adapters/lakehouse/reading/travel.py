"""Relations at another time, as SQL: `lakehouse.at` and `lakehouse.changes`."""

from __future__ import annotations

from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.relation import LakehouseRelation


def at(warehouse: Warehouse, relation: LakehouseRelation, point: object) -> str:
    """The relation at a point in time."""
    return _narrowed(relation, f"{relation.render()} version as of '{_instant(warehouse, relation, point)}'")


def changes(warehouse: Warehouse, relation: LakehouseRelation, begin: object, end: object = None) -> str:
    """The relation's changes between two points, with meta columns."""
    start = "earliest" if begin == "earliest" else _instant(warehouse, relation, begin)
    until = "" if end is None else f", '{_instant(warehouse, relation, end)}'"
    return _narrowed(relation, f"hudi_table_changes('{relation.render()}', 'latest_state', '{start}'{until})")


def read_optimized(relation: LakehouseRelation) -> str:
    """The relation's base files, without its logs."""
    return _narrowed(relation, f"hudi_read_optimized('{relation.render()}')")


def with_deleted(relation: LakehouseRelation) -> str:
    """The relation including softly deleted rows."""
    return _narrowed(relation, f"lakehouse_with_deleted('{relation.render()}')")


def _narrowed(relation: LakehouseRelation, rows: str) -> str:
    """What `--empty`, `--sample` or a microbatch leaves of a `ref`; applied to rows of another time as well."""
    if relation.event_time_filter is not None:
        rows = relation.render_event_time_filtered(rows)
    return rows if relation.limit is None else f"(select * from {rows} where false limit {relation.limit})"


def _instant(warehouse: Warehouse, relation: LakehouseRelation, point: object) -> str:
    """Instants and -N as text: YAML and Jinja turn them into numbers."""
    return warehouse.moment(*relation.stored, str(point))
