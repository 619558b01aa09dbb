"""Relations at another time, as SQL: what `lakehouse.at` and `lakehouse.changes` render."""

from __future__ import annotations

from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.relation import LakehouseRelation


def at(warehouse: Warehouse, relation: LakehouseRelation, point: object) -> str:
    """The relation as it was at a point. `--empty` and `--sample` limits of `ref` hold."""
    travelled = f"{relation.render()} version as of '{_instant(warehouse, relation, point)}'"
    return travelled if relation.limit is None else f"(select * from {travelled} where false limit {relation.limit})"


def changes(warehouse: Warehouse, relation: LakehouseRelation, begin: object, end: object = None) -> str:
    """The relation's changes between two points, with meta columns."""
    start = "earliest" if begin == "earliest" else _instant(warehouse, relation, begin)
    until = "" if end is None else f", '{_instant(warehouse, relation, end)}'"
    return f"hudi_table_changes('{relation.render()}', 'latest_state', '{start}'{until})"


def read_optimized(relation: LakehouseRelation) -> str:
    """The relation's base files, without what its logs say."""
    call = f"hudi_read_optimized('{relation.render()}')"
    return call if relation.limit is None else f"(select * from {call} where false limit {relation.limit})"


def _instant(warehouse: Warehouse, relation: LakehouseRelation, point: object) -> str:
    """YAML and Jinja make numbers of instants and of -N."""
    return warehouse.moment(relation.schema, relation.identifier, str(point))
