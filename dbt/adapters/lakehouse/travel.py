"""Relations at another time, as SQL: what `lakehouse.at` and `lakehouse.changes` render."""

from __future__ import annotations

import re

from dbt_common.exceptions import CompilationError

from dbt.adapters.lakehouse.bridge import Warehouse, instant_of
from dbt.adapters.lakehouse.relation import LakehouseRelation

_BACK = re.compile(r"-\d+")


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
    text = str(point).strip()
    if not _BACK.fullmatch(text):
        return warehouse.savepoint_instants(relation.schema, relation.identifier).get(text) or instant_of(text)
    commits = warehouse.commits(relation.schema, relation.identifier)
    back = int(text[1:])
    if back >= len(commits):
        raise CompilationError(f"{relation.render()} has {len(commits)} commits on its timeline; there is none {back} before the newest")
    return commits[-1 - back]
