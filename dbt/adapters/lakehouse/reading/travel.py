"""Relations at another time, as SQL: what `lakehouse.at` and `lakehouse.changes` render."""

from __future__ import annotations

from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.relation import LakehouseRelation


def at(warehouse: Warehouse, relation: LakehouseRelation, point: object) -> str:
    """The relation as it was at a point."""
    return _narrowed(relation, f"{relation.render()} version as of '{_instant(warehouse, relation, point)}'")


def changes(warehouse: Warehouse, relation: LakehouseRelation, begin: object, end: object = None) -> str:
    """The relation's changes between two points, with meta columns."""
    start = "earliest" if begin == "earliest" else _instant(warehouse, relation, begin)
    until = "" if end is None else f", '{_instant(warehouse, relation, end)}'"
    return _narrowed(relation, f"hudi_table_changes('{relation.render()}', 'latest_state', '{start}'{until})")


def read_optimized(relation: LakehouseRelation) -> str:
    """The relation's base files, without what its logs say."""
    return _narrowed(relation, f"hudi_read_optimized('{relation.render()}')")


def with_deleted(relation: LakehouseRelation) -> str:
    """The relation with its rows that were deleted softly."""
    return _narrowed(relation, f"lakehouse_with_deleted('{relation.render()}')")


def _narrowed(relation: LakehouseRelation, rows: str) -> str:
    """What `--empty`, `--sample` and the batch of a microbatch model leave of a `ref`: it holds for rows of another time, too."""
    if relation.event_time_filter is not None:
        rows = relation.render_event_time_filtered(rows)
    return rows if relation.limit is None else f"(select * from {rows} where false limit {relation.limit})"


def _instant(warehouse: Warehouse, relation: LakehouseRelation, point: object) -> str:
    """YAML and Jinja make numbers of instants and of -N."""
    return warehouse.moment(*relation.stored, str(point))
