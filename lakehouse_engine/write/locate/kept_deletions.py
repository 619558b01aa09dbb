"""Refuses inserts of keys whose softly deleted row is stored: both would be stored, and the next upsert would revive both."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import DuplicateKeyError
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.model.keys import DELETED_AT, PARTITION_PATH, RECORD_KEY
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.record.keys.keygen import root_columns
from lakehouse_engine.record.merging.soft_deletes import hidden_column
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.context import WriteContext
from lakehouse_engine.write.source import RowSource


def check_none_is_kept(state: TableState, context: WriteContext, rows: RowSource) -> None:
    """Raise `DuplicateKeyError` if a deleted row with the key of one of the (keyed) rows is stored."""
    kept = _kept(state, context)
    if not len(kept):
        return
    for part in rows.parts():
        table = part.columns([RECORD_KEY, PARTITION_PATH])
        found = table.filter(pc.is_in(_identity(context, *table.columns), value_set=kept))
        if found.num_rows:
            raise DuplicateKeyError(
                f"the key {found.column(RECORD_KEY)[0].as_py()!r} was deleted, and its row is kept, for deletes of this table are soft: an"
                " insert would store the key a second time. Nothing was written: bring the row by an upsert or MERGE, which puts it in the"
                " place of the deleted one",
                table=context.config.name,
            )


def _kept(state: TableState, context: WriteContext) -> pa.Array:
    """Identities of the stored deleted rows."""
    config, schema = context.config, table_schema(state)
    if hidden_column(config, schema) is None:
        return pa.array([], pa.string())
    fields = root_columns([*config.record_key_fields, *config.partition_fields], schema.names)
    plan = plan_query(state, Query(filters=pc.field(DELETED_AT).is_valid(), deleted=True))
    rows = read_arrow(plan, columns=fields)
    kept = _identity(context, context.generator.record_keys(rows), context.generator.partition_paths(rows))
    return kept.combine_chunks() if isinstance(kept, pa.ChunkedArray) else kept


def _identity(context: WriteContext, keys: pa.Array, paths: pa.Array) -> pa.Array | pa.ChunkedArray:
    keys = keys.cast(pa.string())
    return keys if context.is_global else pc.binary_join_element_wise(paths.cast(pa.string()), keys, "\x00")
