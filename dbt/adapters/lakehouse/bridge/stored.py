"""What a table stores, by one look at it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dbt.adapters.lakehouse.bridge.outcomes import table_type_of
from dbt.adapters.lakehouse.bridge.shapes import TableShape
from lakehouse_engine import api

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from lakehouse_engine.api.tables import TableState


@dataclass(frozen=True)
class StoredTable:
    """A table as `Warehouse.look` found it; it does not follow later changes. `defaults` are the profile's options, which `given`, those of
    a write, override.
    """

    state: TableState
    defaults: Mapping[str, str]

    @cached_property
    def schema(self) -> pa.Schema:
        """User columns, in canonical Arrow types."""
        return api.tables.user_schema(self.state)

    @cached_property
    def types(self) -> dict[str, str]:
        """Spark's type names of the columns."""
        return {item.name: api.types.spark_name(item.type) for item in self.schema}

    @property
    def shape(self) -> TableShape:
        config = self.state.config
        return TableShape(
            record_key=config.record_key_fields,
            partition_by=config.partition_fields,
            ordering_fields=config.ordering_fields,
            hive_style=config.hive_style_partitioning,
            table_type=table_type_of(config.table_type),
            deletes_softly=config.deletes_softly,
            version=int(config.version),
        )

    @property
    def options(self) -> Mapping[str, str]:
        """Options that the table stores: defaults of its writes, and fixed ones."""
        return api.tables.stored_options(self.state.config)

    @property
    def query(self) -> str | None:
        """The statement of a materialized view."""
        return self.state.config.materialized_query

    @property
    def newest_write(self) -> str | None:
        """Instant of the newest write; None without one."""
        return api.tables.newest_write(self.state)

    # what a write does to it

    def identity(self, given: Mapping[str, str]) -> tuple[str, ...]:
        """Columns that identify a record: the record key, plus the partition columns if the index keeps keys unique within a partition
        only.
        """
        return api.tables.identity(self.state, {**self.defaults, **given})

    def keeps_index(self, given: Mapping[str, str]) -> bool:
        """True if a write finds every key in its bucket, whatever the partition."""
        return api.tables.keeps_index(self.state.config, {**self.defaults, **given})

    def keeps_newest(self, given: Mapping[str, str]) -> bool:
        """True if the row with the greatest ordering value wins, unchanged, among incoming rows and the stored one."""
        return api.tables.keeps_newest(self.state.config, {**self.defaults, **given})

    def stores_whole_rows(self, given: Mapping[str, str]) -> bool:
        """True if the winner is stored unchanged, and on equal ordering values the incoming row wins."""
        return api.tables.stores_whole_rows(self.state.config, {**self.defaults, **given})

    def merges_as_asked(self, given: Mapping[str, str]) -> bool:
        """True if a write names no payload class other than the table's, which never changes."""
        return api.tables.merges_as_asked(self.state.config, {**self.defaults, **given})

    # generated columns

    @property
    def generated(self) -> list[str]:
        """Names of the generated columns."""
        return api.tables.generated_columns(self.state)

    def computable(self, columns: Iterable[str]) -> dict[str, str]:
        """Generated columns, with types, that are not among `columns` but whose sources all are."""
        return api.tables.computable(self.state, columns)

    def computed(self, rows: DataFrame) -> DataFrame:
        """The rows of a frame with the columns of `computable`."""
        return api.tables.computed(self.state, rows)
