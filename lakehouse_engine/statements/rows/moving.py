"""Rows that a statement moves to another partition, in tables whose keys are unique only within a partition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, lit

from lakehouse_engine.errors import DuplicateKeyError
from lakehouse_engine.model.keys import PARTITION_PATH, RECORD_KEY
from lakehouse_engine.read.pruning import path_rules
from lakehouse_engine.record.keys.keygen import key_generator_of
from lakehouse_engine.record.merging.payloads import payload_of
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.schema import free_name
from lakehouse_engine.sql.binding.needs import Needs, rows_where
from lakehouse_engine.sql.grammar.lexer import quote_name
from lakehouse_engine.sql.grammar.references import Parts
from lakehouse_engine.statements.context import Execution, Target

_PLACE = [RECORD_KEY, PARTITION_PATH]
_MOST = 100
"""Number of partitions above which stored rows of all partitions are read."""


def may_move(table: Target, assigned: Iterable[str]) -> bool:
    """True if rows with these columns assigned may belong to another partition, where their key belongs to another row."""
    changed = {name.split(".")[0].lower() for name in assigned}
    changed |= {one.column.lower() for one in table.generated if any(one.uses(name) for name in changed)}
    roots = {name.split(".")[0].lower() for name in table.config.partition_fields}
    return bool(changed & roots) and not table.keys_are_global


def check_arrivals(run: Execution, name: Parts, table: Target, moved: DataFrame, changed: DataFrame) -> None:
    """Raise `DuplicateKeyError` if a row would move to a partition that holds another row of its key.

    A row that the statement itself moves away or deletes does not count, unless it is newer by the ordering fields, which readers follow.
    `moved` has the table's new columns, and the stored key and partition path; `changed` has these two of all stored rows that the
    statement changes or deletes. The write itself refuses two rows that move to one place.
    """
    places, to = _places(table, moved)
    leaving = places.filter(pc.not_equal(places[PARTITION_PATH], places[to]))
    if not leaving.num_rows:
        return
    ordering = payload_of(table.config).ordering(table.config, table.schema)
    values = [".".join(map(quote_name, path)) for path in ordering.paths]
    needs = _needs(table, leaving[to].unique().to_pylist(), ordering.roots)
    stored = _with_values(run.spark.table(run.target(name, needs, deleted=True)), values, "was", *_PLACE)
    met = stored.join(_arrivals(run, moved, leaving, to, values), _PLACE)
    left = changed.select(*_PLACE).distinct().withColumn("leaves", lit(True))
    behind = lit(ordering.binlog) if ordering.binlog or not values else col("now") < col("was")
    found = met.join(left, _PLACE, "left").where(col("leaves").isNull() | behind).select(*_PLACE, "leaves").head(1)
    if found:
        key, path, leaves = found[0]
        what = "a newer row of that key by the ordering fields, which the statement takes away" if leaves else "another row of that key"
        message = f"a row of the key {key!r} would be moved to the partition {path!r}, which holds {what}"
        raise DuplicateKeyError(f"{message}; delete one of them in a statement before. Nothing was written", table=table.config.name)


def _with_values(rows: DataFrame, values: Sequence[str], name: str, *columns: str) -> DataFrame:
    """The columns, plus the ordering values as one column, if there are any."""
    made = [f"struct({', '.join(values)}) as {name}"] if values else []
    return rows.selectExpr(*columns, *made)


def _arrivals(run: Execution, moved: DataFrame, leaving: pa.Table, to: str, values: Sequence[str]) -> DataFrame:
    """Keys of moving rows, their target paths, and their ordering values (`now`)."""
    place = abilities_of(run.spark).frame(leaving).alias("place")
    same = [col(f"moved.{quote_name(one)}").eqNullSafe(col(f"place.{quote_name(one)}")) for one in leaving.column_names if one != to]
    found = moved.alias("moved").join(place, same)
    own = [f"moved.{value}" for value in values]
    return _with_values(found, own, "now", f"moved.{RECORD_KEY}", f"place.{quote_name(to)} as {PARTITION_PATH}")


def _places(table: Target, moved: DataFrame) -> tuple[pa.Table, str]:
    """Current paths of rows, their new partition columns, and their new paths in the named column."""
    roots = {one.split(".")[0] for one in table.config.partition_fields}
    fields = [field for field in table.schema if field.name in roots]
    found = moved.select(PARTITION_PATH, *(quote_name(field.name) for field in fields)).distinct().toArrow()
    typed = pa.table([found[field.name].cast(field.type) for field in fields], schema=pa.schema(fields))
    to = free_name("__lakehouse_to", found.column_names)
    return found.append_column(to, key_generator_of(table.config).partition_paths(typed)), to


def _needs(table: Target, arriving: Sequence[str], columns: Sequence[str]) -> Needs:
    """Rows of these partitions, if their paths give plain column values and are few; with their places and `columns`."""
    rules = path_rules(table.state, table.schema)
    told = [None if rules is None else rules.values(path) for path in arriving]
    conditions = []
    # For values that a path does not give, such as the time of a day, other rows in the partition may have other values.
    for field, values in [] if rules is None or None in told else zip(rules.columns, zip(*filter(None, told), strict=True), strict=True):
        plain = {None if value is None else value.as_py() for value in values}
        if len(plain) <= _MOST and all(_is_plain(value) for value in plain):
            conditions.append(f"{quote_name(field.name)} in ({', '.join(map(repr, plain))})")
    return Needs(frozenset(name.lower() for name in (*_PLACE, *columns)), rows_where(" and ".join(conditions) or None, "stored"))


def _is_plain(value: object) -> bool:
    """True if Python and SQL spell the value alike."""
    if isinstance(value, str):
        return value.isascii() and value.isprintable() and not any(sign in value for sign in "'\"\\$")
    return isinstance(value, int) and not isinstance(value, bool)
