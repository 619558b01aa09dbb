"""Checks before a write. Each raises `DbtDatabaseError` with the model's name and, for rows, their number and one example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.lakehouse.bridge.named import in_config
from dbt.adapters.lakehouse.bridge.shapes import TableShape
from dbt.adapters.lakehouse.bridge.stored import StoredTable
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.columns import resolve
from dbt.adapters.lakehouse.config.model_config import ModelConfig
from dbt.adapters.lakehouse.names import same_names
from dbt.adapters.lakehouse.reading.event_time import TIMES
from dbt.adapters.lakehouse.reading.queries import outside_condition, outside_predicates
from dbt.adapters.lakehouse.writing.checks.constraints import Check, Unique, violation_query
from dbt.adapters.lakehouse.writing.checks.uniqueness import collisions


def check_rows(warehouse: Warehouse, name: str, checks: Sequence[Check], source: str) -> None:
    """Refuse rows that violate one of the checks."""
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
    """Refuse rows that would repeat values that have to be unique."""
    many, example = warehouse.sql(collisions(unique, rows, kept, identity)).collect()[0]
    if many:
        where = "more than once in the model's rows" if kept is None else "also in the table, or more than once in the model's rows"
        raise DbtDatabaseError(
            f"{name}: {unique.label} is violated by {many:,} value(s) {where}, for example {example}; nothing was written"
        )


def check_batch(config: ModelConfig, types: Mapping[str, str]) -> None:
    """Refuse a microbatch model without a column to find rows of a time range by; `types` are its columns'."""
    if config.strategy != "microbatch" or config.event_time is None:
        return
    [name] = resolve([config.event_time], list(types), "event_time", config.name)
    if types[name] not in TIMES:
        raise DbtDatabaseError(
            f"{config.name}: event_time '{name}' is of type {types[name]}, and batches are ranges of time: cast it to timestamp or date"
        )


def check_condition(warehouse: Warehouse, config: ModelConfig, condition: str, source: str, absent: Mapping[str, str]) -> None:
    """Refuse a batch with a row that the next run would not replace, and so would add again. `absent`: columns that the batch leaves out.
    """
    with in_config(config.name, "incremental_predicates" if config.predicates else config.strategy, condition):
        outside = warehouse.sql(outside_condition(source, condition, absent))
    many, example = outside.collect()[0]
    if many:
        raise DbtDatabaseError(
            f"{config.name}: {condition} does not hold for {many:,} row(s) of the model, for example {example}: "
            f"{config.strategy} replaces the rows for which it holds, so that these would be there once more after each run; "
            "leave them out of the model. Nothing was written"
        )


def check_predicates(
    warehouse: Warehouse, config: ModelConfig, source: str, target: str, identity: Sequence[str], keys: Sequence[str]
) -> None:
    """Refuse a batch with a record that is stored outside the predicates: inserting it would double its key, updating it would violate
    them.
    """
    predicates, aliases = config.predicates, (config.clauses.source, config.clauses.target)
    with in_config(config.name, "incremental_predicates", " and ".join(predicates)):
        outside = warehouse.sql(outside_predicates(source, target, identity, keys, predicates, aliases))
    many, example = outside.collect()[0]
    if many:
        raise DbtDatabaseError(
            f"{config.name}: {many:,} row(s) have a key that is stored where incremental_predicates ({' and '.join(predicates)}) do not "
            f"hold, for example {example}: merge can neither update that row nor add a second one; widen the predicates, or leave such "
            "rows out of the model. Nothing was written"
        )


def check_shape(model: str, stored: StoredTable, wanted: TableShape, options: Mapping[str, str], rebuild: str) -> None:
    """Raise `DbtDatabaseError` if a table's keys or layout differ from what its model wants, with the options of its write. `rebuild` names
    the way out.
    """
    mine = stored.shape
    for config, built, asked in (
        ("unique_key (the record key)", mine.record_key, wanted.record_key),
        ("partition_by", mine.partition_by, wanted.partition_by),
        ("ordering_fields", mine.ordering_fields, wanted.ordering_fields),
        ("table_type", (mine.table_type,), (wanted.table_type,)),
    ):
        if not same_names(built, asked):
            by_strategy = "record key" in config and not (built and asked)
            why = " (the strategy 'merge' keeps rows by their unique_key, append and the others by generated keys)" if by_strategy else ""
            raise DbtDatabaseError(
                f"{model}: {config} is {list(asked) or 'none'} but the table was built with {list(built) or 'none'}{why}; {rebuild}"
            )
    if wanted.partition_by and mine.hive_style != wanted.hive_style:
        raise DbtDatabaseError(
            f"{model}: hive_style_partitioning is {_flag(wanted.hive_style)} but the table was built with"
            f" {_flag(mine.hive_style)}; {rebuild}"
        )
    if wanted.version not in (None, mine.version):
        raise DbtDatabaseError(
            f"{model}: table_version is {wanted.version} but the table has version {mine.version}; leave it out, or make the table anew:"
            f" {rebuild}"
        )
    if mine.deletes_softly and not wanted.deletes_softly:
        raise DbtDatabaseError(
            f"{model}: deletes is hard but the table keeps deleted rows (deletes: soft); {rebuild}, without them, or set deletes: soft"
        )
    if not stored.keeps_index(options):
        raise DbtDatabaseError(
            f"{model}: index (or the number of its buckets, or their field) is not that of the table, and would not find each key where it"
            f" is stored; {rebuild}"
        )
    if not stored.merges_as_asked(options):
        raise DbtDatabaseError(
            f"{model}: the payload class (hoodie.datasource.write.payload.class) is not that of the table, which keeps one for its life;"
            f" {rebuild}"
        )


def _flag(value: bool) -> str:
    return str(value).lower()
