"""What keeps rows from being written: each function raises `DbtDatabaseError` with the model's name, how many rows, and one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.config.model_config import ModelConfig
from dbt.adapters.lakehouse.reading.queries import outside_condition, outside_predicates
from dbt.adapters.lakehouse.writing.constraints import Check, Unique, violation_query
from dbt.adapters.lakehouse.writing.uniqueness import collisions


def check_rows(warehouse: Warehouse, name: str, checks: Sequence[Check], source: str) -> None:
    """Refuse rows that one of the checks holds against."""
    if not checks:
        return
    found = warehouse.sql(violation_query(checks, source)).collect()[0]
    for position, check in enumerate(checks):
        if found[2 * position]:
            raise DbtDatabaseError(
                f"{name}: {check.label} is violated by {found[2 * position]:,} row(s), for example {found[2 * position + 1]}; "
                "nothing was written"
            )


def check_unique(warehouse: Warehouse, name: str, unique: Unique, rows: str, kept: str | None, identity: Sequence[str]) -> None:
    """Refuse rows that would be a second one with values that have to be unique."""
    many, example = warehouse.sql(collisions(unique, rows, kept, identity)).collect()[0]
    if many:
        where = "more than once in the model's rows" if kept is None else "also in the table, or more than once in the model's rows"
        raise DbtDatabaseError(
            f"{name}: {unique.label} is violated by {many:,} value(s) {where}, for example {example}; nothing was written"
        )


def check_condition(warehouse: Warehouse, config: ModelConfig, condition: str, source: str, absent: Mapping[str, str]) -> None:
    """Refuse a batch with a row that the next run would not replace: that run would add it again. `absent`: columns it leaves out."""
    many, example = warehouse.sql(outside_condition(source, condition, absent)).collect()[0]
    if many:
        raise DbtDatabaseError(
            f"{config.name}: {condition} does not hold for {many:,} row(s) of the model, for example {example}: "
            f"{config.strategy} replaces the rows for which it holds, so that these would be there once more after each run; "
            "leave them out of the model. Nothing was written"
        )


def check_predicates(
    warehouse: Warehouse, config: ModelConfig, source: str, target: str, identity: Sequence[str], keys: Sequence[str]
) -> None:
    """Refuse a batch with a record that is stored where the predicates do not hold: to add it would double its key, and to update
    it would not keep them.
    """
    predicates = config.predicates
    many, example = warehouse.sql(outside_predicates(source, target, identity, keys, predicates)).collect()[0]
    if many:
        raise DbtDatabaseError(
            f"{config.name}: {many:,} row(s) have a key that is stored where incremental_predicates ({' and '.join(predicates)}) do not "
            f"hold, for example {example}: merge can neither update that row nor add a second one; widen the predicates, or leave such "
            "rows out of the model. Nothing was written"
        )
