"""Columns that have statistics in a table's metadata table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pat

from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.format.metadata_table.bounds import is_indexed
from lakehouse_engine.format.metadata_table.forms import metadata_form
from lakehouse_engine.metadata_table.definitions import stored_definitions
from lakehouse_engine.metadata_table.partitions import COLUMN_STATS
from lakehouse_engine.model.keys import META_COLUMNS
from lakehouse_engine.view.table_state import TableState

_BY_VALUE_TYPE = "V2"


@dataclass(frozen=True, slots=True)
class IndexedColumns:
    """Columns with statistics, in the table's types and order. `others` are the names of all columns of the table.

    `by_value_type`: bounds have the form of version V2 of the index.
    """

    fields: tuple[pa.Field, ...]
    by_value_type: bool
    others: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(self.fields)


def indexed_columns(data: TableState) -> tuple[str, ...]:
    """Names of the columns with statistics: those of the stored definition of `column_stats`, else Hudi's default for the table's version.
    In version 6 all columns that can have them, as by Hudi 0.15.

    Named columns of types without statistics are left out, as are those inside of nested columns.
    """
    return tuple(field.name for field in indexed(data).fields)


def indexed(data: TableState, columns: Sequence[str] | None = None) -> IndexedColumns:
    """The columns of `indexed_columns`, or those of the given names that can have statistics. Raises `FormatError` for bad definitions."""
    form, defined = metadata_form(data.config.version), stored_definitions(data).get(COLUMN_STATS)
    by_value_type = (form.statistics_version if defined is None else defined.version) == _BY_VALUE_TYPE
    user = table_schema(data)
    known = {name: pa.field(name, pa.string()) for name in META_COLUMNS} | {field.name: pa.field(field.name, field.type) for field in user}
    kinds = ((name, field.type) for name, field in known.items())
    can = {name for name, kind in kinds if is_indexed(kind, by_value_type=by_value_type) or (form.every_column and pat.is_decimal(kind))}
    if columns is None:
        default = [field.name for field in user if field.name in can][: form.indexed_columns]
        named = None if defined is None or form.every_column else defined.source_fields
        columns = (*form.indexed_meta_columns, *default) if named is None else named
    return IndexedColumns(tuple(known[name] for name in columns if name in can), by_value_type, tuple(known))
