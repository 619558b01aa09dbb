"""Materialized views: statements that make and change one, and the differences between a model's configs and the stored view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.bridge.shapes import TableShape
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.columns import quoted
from dbt.adapters.lakehouse.config.model_config import ModelConfig, node_name
from dbt.adapters.lakehouse.writing.checks.constraints import Check, Unique, checks_of, lengths_of, uniques_of


@dataclass(frozen=True)
class ViewChanges:
    """Differences of the stored materialized view. `rebuild`: those in keys, partitions or type, which need a new one."""

    rebuild: bool
    query: bool
    options: Mapping[str, str]

    def __bool__(self) -> bool:
        return self.rebuild or self.query or bool(self.options)


def check_model(model: Mapping[str, Any]) -> None:
    """Raises `DbtConfigError` for constraints, which a refresh would not check."""
    constraints: list[Check | Unique] = [*checks_of(model), *uniques_of(model)]
    if constraints or lengths_of(model):
        said = constraints[0].label if constraints else "the length of a text"
        raise DbtConfigError(f"{node_name(model)}: {said} is not enforced when a materialized view is refreshed: test it, or use 'table'")


def create_text(relation: str, sql: str, config: ModelConfig) -> str:
    """Statement that makes it, replacing whatever has its name."""
    partitions = f" partitioned by ({_listed(config.partition_by)})" if config.partition_by else ""
    keys = {"primaryKey": config.record_key, "orderingFields": config.ordering_fields, "type": (config.table_type,)}
    version = {} if config.table_version is None else {"hoodie.write.table.version": str(config.table_version)}
    properties = {**{key: ",".join(names) for key, names in keys.items() if names}, **config.options, **version}
    return f"create or replace materialized view {relation}{partitions} tblproperties ({_properties(properties)}) as\n{sql}"


def alter_text(relation: str, sql: str, changes: ViewChanges) -> str:
    """Statements that set its query and missing options."""
    altered = f"alter materialized view {relation} as\n{sql}" if changes.query else ""
    options = f"alter table {relation} set tblproperties ({_properties(changes.options)})" if changes.options else ""
    return ";\n".join(text for text in (options, altered) if text)


def changes_of(warehouse: Warehouse, schema: str, identifier: str, sql: str, config: ModelConfig) -> ViewChanges:
    """Options that a model no longer sets stay; a full refresh keeps them too."""
    stored = warehouse.look(schema, identifier)
    keys = config.record_key, config.partition_by, config.ordering_fields
    wanted = TableShape(*keys, config.hive_style, config.table_type, version=config.table_version)
    before = stored.options
    options = {key: value for key, value in config.options.items() if before.get(key) != value}
    return ViewChanges(not stored.shape.fits(wanted), (stored.query or "").strip() != sql.strip(), options)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names))


def _properties(given: Mapping[str, str]) -> str:
    return ", ".join(f"{_literal(key)} = {_literal(value)}" for key, value in given.items())


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
