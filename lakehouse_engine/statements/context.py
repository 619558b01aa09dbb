"""What a statement needs to run: catalog, session, pinned states, and tables to write to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from lakehouse_engine.catalog.catalog import Catalog
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.commit.expected import ExpectedState
from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.files.schema import user_schema
from lakehouse_engine.model.constraints import Generated
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.frames.statement_views import Pins, Reads
from lakehouse_engine.sql.binding.needs import EVERYTHING, Needs
from lakehouse_engine.sql.grammar.references import Parts
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec

ONE_ROW_A_KEY = {"lakehouse.duplicate.source.keys": "ERROR"}
"""Options of a write whose rows must not be combined by key, such as rows that move to another partition."""
EVOLVE = {"hoodie.datasource.write.reconcile.schema": "true"}
"""Options of a write that may add columns."""


@dataclass(frozen=True)
class Target:
    """The table that a statement changes. `state` is what it was when the statement began; writes go through `handle`."""

    handle: HoodieTable
    state: TableState

    @property
    def config(self) -> TableConfig:
        return self.state.config

    @cached_property
    def schema(self) -> pa.Schema:
        """User columns, in canonical Arrow types."""
        return user_schema(self.state)

    @property
    def keys_are_global(self) -> bool:
        """True if a record key is unique in the table, False if only in each partition."""
        return self.handle.keys_are_global

    @property
    def generated(self) -> tuple[Generated, ...]:
        """The generated columns."""
        return self.config.constraints.generated_among(self.schema.names)


@dataclass(frozen=True, slots=True)
class Execution:
    """One statement in one session. `args` are its parameters (`?` or `:name`), passed to Spark and never formatted into text.

    `reads` holds what it reads. `repeats`: the statement repeats itself if that changes; otherwise the owner of `reads` does.
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
    """Runs questions to attached catalogs, by lower-case name."""

    def table(self, parts: Parts) -> HoodieTable:
        """The table that a statement names. Raises `TableNotFoundError`."""
        return self.open_table(self.catalog.table(self.pins.name(parts)))

    def changed(self, parts: Parts) -> Target:
        """The table that a statement changes. Raises as `table`, and `UnsupportedSqlError` for a materialized view."""
        name = self.catalog.table(self.pins.name(parts))
        table = self.open_table(name)
        found = Target(table, table.seen)
        if found.config.materialized_query is not None:
            message = f"{name} is a materialized view: change what it reads and REFRESH MATERIALIZED VIEW {name}, or ALTER its query"
            raise UnsupportedSqlError(message, relation=name)
        return found

    def query(self, text: str) -> DataFrame:
        """Rows of a query over the current states of its tables."""
        return self.run(self.pins.bind(text, self.reads, self.args).text)

    def answer(self, text: str) -> DataFrame:
        """Like `query`, with column ids of its own, because two statements may read one frame."""
        return abilities_of(self.spark).with_own_columns(self.query(text))

    def types_of(self, expressions: Sequence[str], source: str) -> list[DataType]:
        """Types of expressions over a FROM clause."""
        columns = ", ".join(f"({expression})" for expression in expressions)
        return [field.dataType for field in self.query(f"select {columns} from {source}").schema.fields]

    def target(self, parts: Parts, needs: Needs = EVERYTHING, *, deleted: bool = False) -> str:
        """View of the target's rows with meta columns; at least the needed ones, `deleted` ones too."""
        return self.pins.target(self.pins.name(parts), self.reads, needs, deleted=deleted)

    def narrow(self, parts: Parts, partitions_of: Callable[[TableState], frozenset[str] | None]) -> None:
        """Record the partitions of the target that were read; all of them if `partitions_of` returns None."""
        name = self.catalog.table(self.pins.name(parts))
        state = self.reads.pinned(name)
        partitions = None if state is None else partitions_of(state)
        if partitions is not None:
            self.reads.narrow(name, partitions)

    def expected(self, parts: Parts) -> ExpectedState | None:
        """What was read of the target, for its write."""
        return self.reads.expected(self.catalog.table(self.pins.name(parts)))

    def run(self, text: str) -> DataFrame:
        """Result of a statement that Spark runs itself. Raises `UnsupportedSqlError` for one on files if those are not allowed."""
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
