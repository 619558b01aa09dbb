"""Finds mistakes in incremental configs during the first build, which does not apply them.

Otherwise a project that CI builds from nothing would pass, and fail in production.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.lakehouse.bridge.named import without_place
from dbt.adapters.lakehouse.bridge.outcomes import dbt_error
from dbt.adapters.lakehouse.bridge.spark_errors import missing_relation
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.columns import quoted, resolve
from dbt.adapters.lakehouse.config.clauses import TARGET
from dbt.adapters.lakehouse.config.model_config import STRATEGIES, ModelConfig
from dbt.adapters.lakehouse.reading.queries import outside_predicates
from dbt.adapters.lakehouse.writing.clauses import assigned_columns, rows_by_source, rows_to_write
from dbt.adapters.lakehouse.writing.frames import columns_of, types_of, viewed
from lakehouse_engine.api.names import META_COLUMNS


def check_increments(warehouse: Warehouse, config: ModelConfig, rows: Any, place: tuple[str, str]) -> None:
    """Raise `DbtDatabaseError` for columns that the model lacks, and for merge conditions that Spark cannot analyse.

    `place` is the model's table, which may not exist yet: conditions that read it are checked by the increments.
    """
    if config.materialized != "incremental" or config.strategy not in STRATEGIES:
        return
    columns = columns_of(rows)
    resolve(config.merge_update_columns, columns, "merge_update_columns", config.name)
    resolve(config.merge_exclude_columns, columns, "merge_exclude_columns", config.name)
    resolve([column for column, _ in config.clauses.assignments], columns, "not_matched_by_source_action", config.name)
    if not (config.predicates or config.clauses):
        return
    types = types_of(rows)
    meta = (f"cast(null as string) as {quoted(name)}" for name in META_COLUMNS)
    with viewed(warehouse, rows) as source, viewed(warehouse, rows.selectExpr(*meta, *map(quoted, types))) as target:
        for said, text in _queries(config, types, source, target):
            _analyse(warehouse, text, f"{config.name}: {said}", place)


def _queries(config: ModelConfig, types: Mapping[str, str], source: str, target: str) -> Iterator[tuple[str, str]]:
    """Description of each config, with a query that uses it. `target` is a view with the table's columns."""
    columns, clauses = list(types), config.clauses
    keys = resolve(config.record_key, columns, "unique_key", config.name)
    if config.predicates:
        said = f"incremental_predicates ({' and '.join(config.predicates)})"
        if config.strategy == "merge":
            yield said, outside_predicates(source, target, keys, keys, config.predicates, (clauses.source, clauses.target))
        else:
            yield said, f"select 1 from {target} as {TARGET} where {' and '.join(f'({text})' for text in config.predicates)}"
    if clauses.choose_rows:
        given = {"matched_condition": clauses.matched_condition, "not_matched_condition": clauses.not_matched_condition}
        yield _said(given), rows_to_write(source, target, columns, keys, clauses)
    if clauses.by_source is not None:
        action = ", ".join(f"{column} = {value}" for column, value in clauses.assignments)
        given = {"not_matched_by_source_action": action, "not_matched_by_source_condition": clauses.by_source_condition}
        yield _said(given), rows_by_source(source, target, assigned_columns(types, clauses), keys, clauses)


def _said(configs: Mapping[str, str | None]) -> str:
    """Configs that hold a text, with their texts."""
    given = {key: text for key, text in configs.items() if text}
    return f"{' or '.join(given)} ({'; '.join(given.values())})"


def _analyse(warehouse: Warehouse, text: str, said: str, place: tuple[str, str]) -> None:
    """Let Spark analyse a query without running it. Raises `DbtDatabaseError` that begins with `said`."""
    try:
        _ = warehouse.sql(text).schema
    except Exception as error:
        found = dbt_error(error)
        if not isinstance(found, DbtRuntimeError):
            raise
        missing = missing_relation(str(found.msg))
        if missing is None or tuple(part.lower() for part in missing.parts[-2:]) != tuple(part.lower() for part in place):
            raise DbtDatabaseError(f"{said}: {without_place(str(found.msg))}") from error
