"""Rows of slices as entries of `record_index` (design: metadata table, section 4.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from lakehouse_engine.errors import UnsupportedTableError
from lakehouse_engine.files.log_scanner import LogScope
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.files.slice_reader import BaseRowsBy, SliceReader
from lakehouse_engine.manifest.missing import logged_slices
from lakehouse_engine.metadata_table.answers import LOCATED
from lakehouse_engine.metadata_table.records.instants import InstantMoments
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.view.table_state import TableState

_TOGETHER = 64 * 1024
"""Rows of small files that are given together: what is done with a table of them costs the same for few rows."""


def row_locations(data: TableState, slices: Iterable[FileSlice]) -> Iterator[pa.Table]:
    """Key and location of each row of the slices, merged with their logs, in the columns of `LOCATED`; rows of small files come together.

    The instant is that of the slice. One row group of keys (of small ones several, up to `_TOGETHER` rows and one more), and the outcome of
    one slice's logs, are in memory at a time.

    Raises `UnsupportedTableError` for a table without meta columns, and as `SliceReader.stream`.
    """
    moments = InstantMoments.of(data)
    held, count = [], 0
    for piece, streamed in slice_streams(data, slices, [RECORD_KEY]):
        millis = moments.millis(piece.base_instant)
        for rows in streamed:
            held.append(_located(rows, piece, millis))
            count += rows.num_rows
            if count >= _TOGETHER:
                yield pa.concat_tables(held)
                held, count = [], 0
    if held:
        yield pa.concat_tables(held)


def slice_streams(data: TableState, slices: Iterable[FileSlice], columns: Sequence[str]) -> Iterator[tuple[FileSlice, Iterator[pa.Table]]]:
    """Each slice with its rows, merged with its logs. Memory, and raises, as `row_locations`."""
    if not data.config.populates_meta_fields:
        raise UnsupportedTableError(
            "rows of a table without meta columns (hoodie.populate.meta.fields=false) have no record keys to index", table=data.config.name
        )
    schema = table_schema(data)
    rules, scope = MergeRules.of(data.config, schema), LogScope.of(data.timeline)
    reader = SliceReader(data.storage, schema, rules, scope, base_rows=BaseRowsBy.CHECKED_POSITIONS)
    for piece in logged_slices(data.manifest, None, slices):
        yield piece.slice, reader.stream(piece, columns)


def _located(rows: pa.Table, piece: FileSlice, millis: int) -> pa.Table:
    count, keys = rows.num_rows, rows.column(RECORD_KEY).cast(pa.string())
    columns = [keys, pa.repeat(piece.partition_path, count), pa.repeat(piece.file_id, count), pa.repeat(millis, count)]
    return pa.Table.from_arrays([column.cast(field.type) for column, field in zip(columns, LOCATED, strict=True)], schema=LOCATED)
