"""Rows that UPDATE and MERGE give another partition, of a table in which a key is unique in its partition only.

The index looks for a key where the row goes, so that the stored row would stay where it was, as a second one of its key: it is deleted in
the same commit. With a global index the write itself finds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.model.keys import PARTITION_PATH, RECORD_KEY
from lakehouse_engine.sql.grammar.lexer import quote_name
from lakehouse_engine.table import HoodieTable

ONCE = {"lakehouse.duplicate.source.keys": "ERROR"}
"""Rows of two partitions that would become one row are an error."""
_OLD = "__lakehouse_old_"
_MAPPED = ("TimestampBasedKeyGenerator", "TIMESTAMP", "CustomKeyGenerator", "CUSTOM")
"""Key generators that put different values of a column into one partition: whether a row moves is not seen from its columns."""


def moving_columns(table: HoodieTable, assigned: Iterable[str] | None) -> tuple[str, ...]:
    """The partition columns, where a statement that assigns to those columns (None: to all) may leave rows behind; else none.

    Raises `UnsupportedSqlError` where it could not be told which rows move.
    """
    config = table.config
    names = config.partition_fields if assigned is None else {name.split(".")[0].lower() for name in assigned}
    touched = [name for name in config.partition_fields if name.lower() in {one.lower() for one in names}]
    if not touched or not table.is_key_of_partition:
        return ()
    if config.key_generator in _MAPPED:
        raise UnsupportedSqlError(
            f"the partition column {touched[0]!r} cannot be changed: keys are unique in their partition only, and {config.key_generator}"
            " puts several values into one; delete the rows and insert them anew",
            column=touched[0],
        )
    return config.partition_fields


def old_values(columns: Sequence[str], qualifier: str | None = None) -> list[str]:
    """Select expressions that keep the stored values of the columns."""
    before = "" if qualifier is None else f"{qualifier}."
    return [f"{before}{quote_name(name)} as {quote_name(_OLD + str(number))}" for number, name in enumerate(columns)]


def left_behind(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Keys and partition paths of the stored rows that `rows`, which have `old_values`, move; but for places that another row comes to."""
    olds = [_OLD + str(number) for number in range(len(columns))]
    stay = _all(col(quote_name(name)).eqNullSafe(col(old)) for name, old in zip(columns, olds, strict=True))
    moved = rows.where(col(RECORD_KEY).isNotNull() & ~stay).select(RECORD_KEY, PARTITION_PATH, *olds)
    news = [f"__lakehouse_new_{number}" for number in range(len(columns))]
    coming = rows.select(
        col(RECORD_KEY).alias("__lakehouse_key"), *(col(quote_name(name)).alias(new) for name, new in zip(columns, news, strict=True))
    )
    same = _all([col(RECORD_KEY) == col("__lakehouse_key"), *(col(old).eqNullSafe(col(new)) for old, new in zip(olds, news, strict=True))])
    return moved.join(coming, same, "left_anti").select(RECORD_KEY, PARTITION_PATH)


def _all(conditions: Iterable[Column]) -> Column:
    return reduce(lambda one, other: one & other, conditions)
