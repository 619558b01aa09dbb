"""`materialized: external`: writes a model's rows as files, with a view that reads them under the model's name."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from dbt.adapters.lakehouse.bridge.exports import Owner, check_place, export, files_of, reading_query
from dbt.adapters.lakehouse.columns import resolve
from dbt.adapters.lakehouse.config.external_config import ExternalConfig
from dbt.adapters.lakehouse.reading.introspection import check_nothing_is_kept
from dbt.adapters.lakehouse.writing.checks.checking import check_rows, check_unique
from dbt.adapters.lakehouse.writing.checks.constraints import Check, Unique
from dbt.adapters.lakehouse.writing.frames import columns_of, kept

if TYPE_CHECKING:
    from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
    from dbt.adapters.lakehouse.relation import LakehouseRelation


def write_external(
    warehouse: Warehouse, relation: LakehouseRelation, config: ExternalConfig, rows: Any, checks: Sequence[Check], uniques: Sequence[Unique]
) -> None:
    """Write the rows to the model's location, then store the view. A refused write changes neither.

    Raises as `export`, as `store_view`, and for rows that violate the contract.
    """
    schema, identifier = str(relation.schema), str(relation.identifier)
    warehouse.check_view(schema, identifier, columns_of(rows))
    partition_by = resolve(config.partition_by, columns_of(rows), "partition_by", config.name)
    is_table = warehouse.kind(schema, identifier) == "table"
    if is_table:
        check_nothing_is_kept(warehouse, relation)
    owner = Owner(config.name, f"{schema}.{identifier} in {warehouse.root}")
    check_place(config.location, owner)
    files = files_of(config.location, config.format, config.options, len(columns_of(rows)) - len(partition_by))
    with ExitStack() as stack:
        if checks or uniques:
            rows, source = stack.enter_context(kept(warehouse, rows))
            check_rows(warehouse, config.name, checks, source)
            for unique in uniques:
                check_unique(warehouse, config.name, unique, source, None, ())
        query = reading_query(rows, files)
        export(rows, files, partition_by, owner)
    if is_table:
        warehouse.vacate(schema, identifier, lambda: check_nothing_is_kept(warehouse, relation))
    warehouse.create_view(schema, identifier, query)
