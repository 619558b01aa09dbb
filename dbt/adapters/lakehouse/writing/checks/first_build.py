"""What every increment of a model would refuse, refused by its first build, which reads none of these configs by itself.

A project that is built from nothing in CI would pass, and fail in production.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.lakehouse.bridge.outcomes import dbt_error
from dbt.adapters.lakehouse.bridge.spark_errors import missing_relation
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.columns import resolve
from dbt.adapters.lakehouse.config.model_config import STRATEGIES, ModelConfig
from dbt.adapters.lakehouse.reading.queries import TARGET, outside_predicates
from dbt.adapters.lakehouse.writing.frames import columns_of, viewed

_META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name")


def check_increments(warehouse: Warehouse, config: ModelConfig, rows: Any, place: tuple[str, str]) -> None:
    """Raise `DbtDatabaseError` for columns of the merge that the model does not have, and for predicates that Spark cannot analyse.

    `place` is the model's table, which need not be there yet: predicates that read it are left to the increments.
    """
    if config.materialized != "incremental" or config.strategy not in STRATEGIES:
        return
    columns = columns_of(rows)
    resolve(config.merge_update_columns, columns, "merge_update_columns", config.name)
    resolve(config.merge_exclude_columns, columns, "merge_exclude_columns", config.name)
    if config.predicates:
        _check_predicates(warehouse, config, rows, columns, place)


def _check_predicates(warehouse: Warehouse, config: ModelConfig, rows: Any, columns: Sequence[str], place: tuple[str, str]) -> None:
    stored = rows.selectExpr("*", *(f"cast(null as string) as {name}" for name in _META))
    with viewed(warehouse, rows) as source, viewed(warehouse, stored) as target:
        try:
            _ = warehouse.sql(_query(config, columns, source, target)).schema  # analysed, not run
        except Exception as error:
            found = dbt_error(error)
            if not isinstance(found, DbtRuntimeError):
                raise
            missing = missing_relation(str(found.msg))
            if missing is not None and tuple(part.lower() for part in missing.parts[-2:]) == tuple(part.lower() for part in place):
                return
            raise DbtDatabaseError(f"{config.name}: incremental_predicates ({' and '.join(config.predicates)}): {found.msg}") from error


def _query(config: ModelConfig, columns: Sequence[str], source: str, target: str) -> str:
    if config.strategy == "merge":
        keys = resolve(config.record_key, columns, "unique_key", config.name)
        return outside_predicates(source, target, keys, keys, config.predicates)
    return f"select 1 from {target} as {TARGET} where {' and '.join(f'({text})' for text in config.predicates)}"
