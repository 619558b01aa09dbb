"""What carrying a statement out needs: the catalog, the session, the pins, and tables to write to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from lakehouse_engine.catalog.catalog import Catalog
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.commit.expected import ExpectedState
from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.frames.pins import Pins, Reads
from lakehouse_engine.sql.binding.needs import EVERYTHING, Needs
from lakehouse_engine.sql.grammar.references import Parts
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec

ONE_ROW_A_KEY = {"lakehouse.duplicate.source.keys": "ERROR"}
"""Options of a write whose rows must not meet in one key, as those that a statement moves to another partition, or makes of two."""
EVOLVE = {"hoodie.datasource.write.reconcile.schema": "true"}
"""Options of a write that may bring columns."""


@dataclass(frozen=True, slots=True)
class Execution:
    """One statement at work in one session. `args` are its parameters (`?` or `:name`), handed to Spark and never formatted.

    `reads` holds what it reads. With `repeats` the statement is run again by itself when that changes; else who gave the reads does that.
    """

    catalog: Catalog
    spark: SparkSession
    pins: Pins
    reads: Reads
    open_table: Callable[[RelationName], HoodieTable]
    make_table: Callable[[RelationName, TableSpec], HoodieTable]
    make_in: Callable[[Storage, TableSpec], HoodieTable]
    args: Sequence[Any] | Mapping[str, Any] | None = None
    repeats: int = 0
    attached: Mapping[str, Callable[[], Execution]] = field(default_factory=dict)
    """Who carries out what is asked of attached catalogs, by their names in lower case."""

    def table(self, parts: Parts) -> HoodieTable:
        """The table that a statement names. Raises `TableNotFoundError`."""
        return self.open_table(self.catalog.table(self.pins.name(parts)))

    def changed(self, parts: Parts) -> HoodieTable:
        """The table whose rows or columns a statement changes. Raises as `table`, and `UnsupportedSqlError` for a materialized view."""
        name = self.catalog.table(self.pins.name(parts))
        table = self.open_table(name)
        if table.config.materialized_query is not None:
            message = f"{name} is a materialized view: change what it reads and REFRESH MATERIALIZED VIEW {name}, or ALTER its query"
            raise UnsupportedSqlError(message, relation=name)
        return table

    def query(self, text: str) -> DataFrame:
        """A query's rows, its reads bound to snapshots of this moment."""
        return self.run(self.pins.bind(text, self.reads, self.args).text)

    def answer(self, text: str) -> DataFrame:
        """As `query`, for whoever asked: with columns of its own, as two statements may read one frame."""
        return abilities_of(self.spark).with_own_columns(self.query(text))

    def types_of(self, expressions: Sequence[str], source: str) -> list[DataType]:
        """The types of expressions over what stands in FROM."""
        columns = ", ".join(f"({expression})" for expression in expressions)
        return [field.dataType for field in self.query(f"select {columns} from {source}").schema.fields]

    def target(self, parts: Parts, needs: Needs = EVERYTHING, *, deleted: bool = False) -> str:
        """A view of the rows of the table to be changed, with their meta columns: at least those that are needed, `deleted` ones too."""
        return self.pins.target(self.pins.name(parts), self.reads, needs, deleted=deleted)

    def narrow(self, parts: Parts, partitions_of: Callable[[TableState], frozenset[str] | None]) -> None:
        """Say which partitions of the table to be changed were read, if `partitions_of` its state are not all of them (None)."""
        name = self.catalog.table(self.pins.name(parts))
        state = self.reads.pinned(name)
        partitions = None if state is None else partitions_of(state)
        if partitions is not None:
            self.reads.narrow(name, partitions)

    def expected(self, parts: Parts) -> ExpectedState | None:
        """What was read of the table to be changed: an argument of its write."""
        return self.reads.expected(self.catalog.table(self.pins.name(parts)))

    def run(self, text: str) -> DataFrame:
        """What Spark makes of a statement. Raises `UnsupportedSqlError` for one on files where those are not allowed."""
        self.pins.check(text)
        text = self.pins.functions.resolved(text)
        if not self.args:
            return self.spark.sql(text)
        return self.spark.sql(text, args=dict(self.args) if isinstance(self.args, Mapping) else list(self.args))

    def rows(self, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> DataFrame:
        """A small result as a DataFrame of text columns (numbers stay numbers)."""
        columns = list(zip(*rows, strict=True)) if rows else [() for _ in names]
        arrays = [_array(column) for column in columns]
        return abilities_of(self.spark).frame(pa.table(dict(zip(names, arrays, strict=True))))


def _array(values: Sequence[Any]) -> pa.Array:
    if any(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return pa.array(list(values), pa.int64())
    return pa.array([None if value is None else str(value) for value in values], pa.string())
