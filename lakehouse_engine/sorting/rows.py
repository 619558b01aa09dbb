"""Sorts rows in the order of a layout, in this process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.sorting.columns import chosen_columns, ordered
from lakehouse_engine.sorting.curves import Keys, places
from lakehouse_engine.sorting.layout import SortLayout
from lakehouse_engine.sorting.ranges import SAMPLE_ROWS, Ranges

_CHUNK_BYTES = 1 << 30
"""Most text in one chunk, whose offsets have 31 bits."""


def sort_rows(table: pa.Table, columns: Sequence[str], layout: SortLayout) -> pa.Table:
    """Rows in the order of a layout; equal rows keep their order. By one column every layout is LINEAR.

    Needs memory for the result, for the sort columns, and 24 bytes per row. Raises `OptionError` as `chosen_columns`.
    """
    return _taken(table, sort_order(table, columns, layout))


def sort_order(table: pa.Table, columns: Sequence[str], layout: SortLayout) -> npt.NDArray[np.int64]:
    """Row numbers in the order of a layout. Raises as `sort_rows`."""
    names = chosen_columns(table.schema, columns)
    if layout is SortLayout.LINEAR or len(names) == 1:
        return linear_order(table.select(names))
    ranges = Ranges.of(sample_of(table.select(names)), names)
    return stable_order(_places(table, names, layout, ranges))


def curve_keys(table: pa.Table, columns: Sequence[str], layout: SortLayout, ranges: Ranges) -> pa.Array:
    """Place of each row on a layout's curve through the columns' ranges. Sorting the keys sorts the rows.

    The type is `uint64`, or fixed size binary if the range ids of all columns have more than 64 bits. Rows with values in the same ranges
    have the same key, for LINEAR too. Raises as `Ranges.of_rows`.
    """
    keys = _places(table, columns, layout, ranges)
    if len(keys) == 1:
        return pa.array(keys[0])
    words = np.ascontiguousarray(keys.T).astype(">u8")
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(8 * len(keys)), table.num_rows, [None, pa.py_buffer(words)])


def sample_of(table: pa.Table, rows: int = SAMPLE_ROWS) -> pa.Table:
    """A sample of up to `rows` rows, the same each time; all rows if there are not more."""
    if table.num_rows <= rows:
        return table
    chosen = np.unique(np.random.default_rng(table.num_rows).integers(0, table.num_rows, rows))
    return table.take(pa.array(chosen))


def _places(table: pa.Table, columns: Sequence[str], layout: SortLayout, ranges: Ranges) -> Keys:
    return places(ranges.of_rows(table, columns), ranges.bits, layout)


def linear_order(table: pa.Table) -> npt.NDArray[np.int64]:
    """Row numbers in the order by all columns, whose types `check_ordered` accepts. Equal rows keep their order."""
    arrays: list[pa.Array] = []
    for column in table.columns:
        values = ordered(column)
        # Arrow puts nulls last by default, and its versions differ in how to change that.
        arrays += [values.is_valid(), values] if values.null_count else [values]
    names = [str(number) for number in range(len(arrays))]
    keys = pa.Table.from_arrays(arrays, names)
    return np.asarray(pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in names])).astype(np.int64)


def stable_order(keys: Keys) -> npt.NDArray[np.int64]:
    """Row numbers in the order of places on a curve. Equal rows keep their order."""
    return np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])


def _taken(table: pa.Table, order: npt.NDArray[np.int64]) -> pa.Table:
    """The rows in another order, taken column by column."""
    return pa.Table.from_arrays([_taken_column(column, order) for column in table.columns], schema=table.schema)


def _taken_column(column: pa.ChunkedArray, order: npt.NDArray[np.int64]) -> pa.ChunkedArray:
    short = pat.is_string(column.type) or pat.is_binary(column.type)
    if not short or column.nbytes < _CHUNK_BYTES:
        taken = column.combine_chunks().take(pa.array(order))
        return taken if isinstance(taken, pa.ChunkedArray) else pa.chunked_array([taken], column.type)
    wide = column.cast(pa.large_string() if pat.is_string(column.type) else pa.large_binary()).combine_chunks()
    lengths = np.asarray(pc.binary_length(wide).fill_null(0))[order]
    cuts = np.flatnonzero(np.diff(np.cumsum(lengths) // _CHUNK_BYTES)) + 1
    return pa.chunked_array([wide.take(pa.array(part)).cast(column.type) for part in np.split(order, cuts)], column.type)
