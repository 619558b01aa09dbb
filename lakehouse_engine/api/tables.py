"""One table: creation, stored facts, and the rules by which a write finds its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakehouse_engine import spark as by_spark
from lakehouse_engine.api.options import lock_timeout
from lakehouse_engine.commit.expected import ExpectedState, check_expected, repeated
from lakehouse_engine.files.schema import user_schema
from lakehouse_engine.index.registry import is_global_anew, load_index
from lakehouse_engine.index.registry import keeps_index as config_keeps_index
from lakehouse_engine.model.constraints import Constraints, Generated
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.options import STORED_PREFIX, WriteOptions
from lakehouse_engine.read.moments import moment_of
from lakehouse_engine.record.merging.payloads import last_name, merger_of
from lakehouse_engine.record.spark_types import spark_name
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write import alter
from lakehouse_engine.write.create import TableSpec, create_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = [
    "ExpectedState",
    "HoodieTable",
    "TableState",
    "check_unchanged",
    "computable",
    "computed",
    "delete_softly",
    "forget_query",
    "generated_columns",
    "identity",
    "identity_anew",
    "keeps_index",
    "keeps_newest",
    "keeps_newest_anew",
    "limit",
    "lock",
    "made_in",
    "merges_as_asked",
    "moment",
    "newest_write",
    "repeated",
    "set_unfinished",
    "stored_options",
    "stores_whole_rows",
    "user_schema",
]

_MAPPED_PARTITIONS = ("TimestampBasedKeyGenerator", "TIMESTAMP", "CustomKeyGenerator", "CUSTOM")
"""Key generators that may put different values of a partition column into one partition."""

# `options` are the caller's defaults for every table; `given`, those of one write, override them.


def made_in(
    place: Storage,
    name: str,
    schema: pa.Schema | StructType,
    layout: Mapping[str, Any],
    *,
    spark: SparkSession | None,
    options: Mapping[str, Any],
) -> HoodieTable:
    """An empty table in a storage, with its future name. `layout` has arguments of `Lakehouse.create_table`."""
    columns = schema if isinstance(schema, pa.Schema) else by_spark.schema.to_arrow_schema(schema)
    create_table(place, TableSpec(name=name, schema=columns, **layout), options)
    return HoodieTable(place, spark=spark, options=options)


def newest_write(state: TableState) -> str | None:
    """Instant of the newest completed write; None without one."""
    newest = state.timeline.completed().writes().last()
    return newest.requested_time if newest is not None else None


def moment(state: TableState, point: str) -> str:
    """Instant that an instant, date, timestamp, savepoint name or `-N` means."""
    return moment_of(state, point)


def lock(table: HoodieTable, options: Mapping[str, Any]) -> TableLock:
    """The table's lock, for a read and a write with nothing in between; the write takes it again."""
    return TableLock(table.storage, lock_timeout(options))


def check_unchanged(state: TableState, expected: ExpectedState) -> None:
    """Raise `ChangedSinceReadError` if the table has changed since it was read."""
    check_expected(state, expected)


# stored facts


def stored_options(config: TableConfig) -> Mapping[str, str]:
    """Options that a table stores: defaults of its writes, and fixed ones."""
    return {**config.properties, **config.prefixed(STORED_PREFIX)}


def limit(state: TableState, lengths: Mapping[str, int | None], options: Mapping[str, Any], *, only_longer: bool = False) -> bool:
    """Limit text columns to a number of characters (None removes the limit); `only_longer` changes a limit only if the new one is longer.
    Returns whether a limit had to change.
    """

    def change(known: Constraints) -> Constraints:
        for column, length in lengths.items():
            before = known.length_of(column)
            if not only_longer or (before is not None and (length is None or length > before)):
                known = known.with_length(column, length)
        return known

    if change(state.config.constraints) == state.config.constraints:
        return False
    alter.set_constraints(state.storage, change, lock_timeout_ms=lock_timeout(options))
    return True


def delete_softly(table: HoodieTable, options: Mapping[str, Any]) -> None:
    """Keep rows that are deleted from now on."""
    alter.set_soft_deletes(table.storage, lock_timeout_ms=lock_timeout(options))


def forget_query(table: HoodieTable, options: Mapping[str, Any]) -> None:
    """Turn a table into a materialized view."""
    alter.set_query(table.storage, None, lock_timeout_ms=lock_timeout(options))


def set_unfinished(table: HoodieTable, change: Callable[[str | None], str | None], options: Mapping[str, Any]) -> None:
    """Set the mark of an unfinished build; None removes it."""
    alter.set_unfinished(table.storage, change, lock_timeout_ms=lock_timeout(options))


# identity of rows, and which of two wins


def identity(state: TableState, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Columns that identify a record: the record key, plus the partition columns if the index keeps keys unique within a partition only."""
    config = state.config
    if load_index(state, WriteOptions.read(given)).is_global or config.key_generator in _MAPPED_PARTITIONS:
        return config.record_key_fields
    return tuple(dict.fromkeys((*config.record_key_fields, *config.partition_fields)))


def identity_anew(record_key: tuple[str, ...], partition_by: tuple[str, ...], given: Mapping[str, Any]) -> tuple[str, ...]:
    """`identity` of a table that is made with the options of the write."""
    return record_key if is_global_anew(WriteOptions.read(given)) else tuple(dict.fromkeys((*record_key, *partition_by)))


def keeps_index(config: TableConfig, given: Mapping[str, Any]) -> bool:
    """True if the write finds every key in its bucket, whatever the partition."""
    return config_keeps_index(config, WriteOptions.read({**config.prefixed(STORED_PREFIX), **given}))


def keeps_newest(config: TableConfig, given: Mapping[str, Any]) -> bool:
    """True if the row with the greatest ordering value wins unchanged, among incoming rows and the stored one. Other payload classes fill
    nulls, ignore ordering values, or keep the first of equals.
    """
    merger = merger_of(config, WriteOptions.read(given).payload_class)
    return merger.compares_ordering and merger.whole_rows and merger.equals_win


def keeps_newest_anew(given: Mapping[str, Any]) -> bool:
    """`keeps_newest` of a table with an ordering field that is made with the options of the write, unless they name a payload class."""
    return not WriteOptions.read(given).payload_class


def stores_whole_rows(config: TableConfig, given: Mapping[str, Any]) -> bool:
    """True if the winner is stored unchanged, and on equal ordering values the incoming row wins."""
    merger = merger_of(config, WriteOptions.read(given).payload_class)
    return merger.whole_rows and merger.equals_win


def merges_as_asked(config: TableConfig, given: Mapping[str, Any]) -> bool:
    """True if the write names no payload class other than the table's, which never changes."""
    asked, stored = WriteOptions.read(given).payload_class, config.payload_class
    return not (asked and stored) or last_name(asked) == last_name(stored)


# generated columns


def generated_columns(state: TableState) -> list[str]:
    """Names of the table's generated columns."""
    return [one.column for one in state.config.constraints.generated_among(user_schema(state).names)]


def computable(state: TableState, columns: Iterable[str]) -> dict[str, str]:
    """Generated columns, with types, that are not among `columns` but whose sources all are."""
    if not state.config.constraints.generated:
        return {}
    schema = user_schema(state)
    return {one.column: spark_name(schema.field(one.column).type) for one in _computable(state.config, schema, columns)}


def computed(state: TableState, rows: DataFrame) -> DataFrame:
    """The rows with the columns of `computable`."""
    if not state.config.constraints.generated:
        return rows
    schema = user_schema(state)
    wanted = _computable(state.config, schema, rows.columns)
    return by_spark.generated.with_generated(rows, wanted, schema, state.config) if wanted else rows


def _computable(config: TableConfig, schema: pa.Schema, columns: Iterable[str]) -> list[Generated]:
    known = {name.lower() for name in columns}
    return [
        one
        for one in config.constraints.generated_among(schema.names)
        if one.column.lower() not in known and known >= {name.lower() for name in one.inputs}
    ]
