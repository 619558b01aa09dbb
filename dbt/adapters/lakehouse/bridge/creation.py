"""Creates new tables and fills them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.lakehouse.bridge.shapes import TableShape
from lakehouse_engine import api

if TYPE_CHECKING:
    from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
    from lakehouse_engine.api.names import RelationName
    from lakehouse_engine.api.tables import HoodieTable
    from lakehouse_engine.api.warehouse import RelationKind, WriteResult


def layout(shape: TableShape, properties: Mapping[str, str]) -> dict[str, Any]:
    """Settings of a new table besides its name and columns."""
    return {
        "record_key": shape.record_key,
        "ordering_fields": shape.ordering_fields,
        "partition_by": shape.partition_by,
        "table_type": shape.table_type,
        "hive_style": shape.hive_style,
        "properties": {
            **properties,
            **({"lakehouse.deletes": "soft"} if shape.deletes_softly else {}),
            **({} if shape.version is None else {"hoodie.write.table.version": str(shape.version)}),
        },
    }


def fill(
    table: HoodieTable,
    rows: Any,
    write_options: Mapping[str, str],
    metadata: Mapping[str, str],
    lengths: Mapping[str, int | None],
    defaults: Mapping[str, str],
) -> WriteResult:
    """Write the first commit of a table. `lengths` are limits of text columns, `defaults` the warehouse's options."""
    api.tables.limit(table.seen, lengths, defaults)
    return table.bulk_insert(rows, drop_deletions=True, options=dict(write_options), extra_metadata=dict(metadata))


def replacing(warehouse: Warehouse, name: RelationName, may_go: Callable[[], None]) -> Callable[[RelationName, RelationKind], None]:
    """Checks on the relation that the new table replaces.

    `may_go` raises if a table must stay. `ChangedSinceReadError` is raised if the new rows were computed from an older state of that table.
    """

    def check(found: RelationName, kind: RelationKind) -> None:
        if kind.value == "view":
            return
        expected = warehouse.expected(name.schema, name.name)
        if expected is not None:
            api.tables.check_unchanged(warehouse.look(found.schema, found.name).state, expected)
        may_go()

    return check
