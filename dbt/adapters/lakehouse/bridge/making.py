"""How new tables are made and filled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.lakehouse.bridge.shapes import TableShape
from dbt.adapters.lakehouse.later import Later
from lakehouse_engine import options

if TYPE_CHECKING:
    import pyarrow as pa

    from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
    from lakehouse_engine.catalog.names import RelationName
    from lakehouse_engine.model.constraints import Constraints
else:
    pa = Later("pyarrow")

_alter = Later("lakehouse_engine.write.alter")
_catalog = Later("lakehouse_engine.catalog.catalog")
_create = Later("lakehouse_engine.write.create")
_expected = Later("lakehouse_engine.commit.expected")
_schema = Later("lakehouse_engine.spark.schema")
_table = Later("lakehouse_engine.table")


def layout(shape: TableShape, properties: Mapping[str, str]) -> dict[str, Any]:
    """What a new table is given besides its name and columns."""
    return {
        "record_key": shape.record_key,
        "ordering_fields": shape.ordering_fields,
        "partition_by": shape.partition_by,
        "table_type": shape.table_type,
        "hive_style": shape.hive_style,
        "properties": {**properties, **({"lakehouse.deletes": "soft"} if shape.deletes_softly else {})},
    }


def made_in(warehouse: Warehouse, place: Any, name: str, schema: Any, given: Mapping[str, Any]) -> Any:
    """An empty table in a storage, with the name that it is to have."""
    columns = schema if isinstance(schema, pa.Schema) else _schema.to_arrow_schema(schema)
    _create.create_table(place, _create.TableSpec(name=name, schema=columns, **given), warehouse.options)
    return _table.HoodieTable(place, spark=warehouse.spark, options=warehouse.options)


def fill(
    table: Any,
    rows: Any,
    write_options: Mapping[str, str],
    metadata: Mapping[str, str],
    lengths: Mapping[str, int | None],
    defaults: Mapping[str, str],
) -> Any:
    """The first commit of a table. `lengths` are of text columns, `defaults` options of the warehouse."""
    limit(table, lengths, defaults)
    return table.bulk_insert(rows, drop_deletions=True, options=dict(write_options), extra_metadata=dict(metadata))


def limit(table: Any, lengths: Mapping[str, int | None], defaults: Mapping[str, str], *, only_longer: bool = False) -> None:
    """Let text columns hold so many characters and no more (None: any number); with `only_longer` where that is more than now."""

    def change(known: Constraints) -> Constraints:
        for column, length in lengths.items():
            before = known.length_of(column)
            if not only_longer or (before is not None and (length is None or length > before)):
                known = known.with_length(column, length)
        return known

    if lengths and change(table.config.constraints) != table.config.constraints:
        _alter.set_constraints(table.storage, change, lock_timeout_ms=options.LOCK_TIMEOUT_MS.read(defaults))


def replacing(warehouse: Warehouse, name: RelationName, may_go: Callable[[], None]) -> Callable[[RelationName, Any], None]:
    """What is asked of the relation whose place a new table takes: `may_go` raises where a table must stay, and `ChangedSinceReadError` is
    raised where the new rows rest on what that table is no more.
    """

    def check(found: RelationName, kind: Any) -> None:
        if kind is _catalog.RelationKind.VIEW:
            return
        expected = warehouse.expected(name.schema, name.name)
        if expected is not None:
            _expected.check_expected(warehouse.table(found.schema, found.name).state, expected)
        may_go()

    return check
