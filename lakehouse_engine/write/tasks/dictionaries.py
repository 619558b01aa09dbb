"""Handles repeating columns on their way from one base file to the next.

Text that a file stores as a dictionary is read, put together and encoded in half the time if it stays one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.files.base_file import DICTIONARY_COLUMNS
from lakehouse_engine.write.source import Rows

_SAMPLE = 4096
_PAGE = 1024 * 1024
"""Bytes of values up to which Arrow makes a dictionary."""


def repeats(column: pa.ChunkedArray) -> bool:
    """True if a dictionary pays: few distinct values in a sample. Building one only to drop it costs a third of the write."""
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_dictionary(kind) or pa.types.is_boolean(kind):
        return True
    sample = column.slice(0, _SAMPLE)
    return bool(pc.count_distinct(sample).as_py() * 2 <= len(sample)) or len(sample) < 64


def alike(stored: pa.Table, given: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Both tables with the columns of `stored`, in one form (`given` may have more columns).

    A dictionary in `stored` becomes one in both, unless the given values do not repeat.
    """
    names = stored.column_names
    pairs = [_alike(stored.column(name), given.column(name)) for name in names]
    return pa.table([first for first, _ in pairs], names=names), pa.table([second for _, second in pairs], names=names)


def _alike(stored: pa.ChunkedArray, given: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    if not pa.types.is_dictionary(stored.type) or pa.types.is_dictionary(given.type):
        return stored, given
    return (stored, given.dictionary_encode()) if repeats(given) else (plain(stored), given)


def values_at(stored: pa.Table, names: Sequence[str], places: Rows) -> pa.Table:
    """Some columns of the rows at `places`, without dictionaries."""
    rows = stored.select(list(names)).take(pa.array(places))
    return pa.table([plain(column) for column in rows.columns], names=rows.column_names)


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as plain values; the very same column if it is no dictionary."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def plain_bytes(rows: pa.Table) -> int:
    """Bytes of the rows without dictionaries."""
    return sum(_text_bytes(column) if pa.types.is_dictionary(column.type) else column.nbytes for column in rows.columns)


def _text_bytes(column: pa.ChunkedArray) -> int:
    return sum(int(pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0) for chunk in column.chunks)


def without_unused(rows: pa.Table) -> pa.Table:
    """The same rows, with unused values removed from their dictionaries: a file would keep replaced values for good.

    Text for which a dictionary no longer pays becomes plain: Arrow checks that for dictionaries that it makes, but takes given ones as they
    are.
    """
    columns = dict(zip(rows.column_names, rows.columns, strict=True))
    for name, column in columns.items():
        if pa.types.is_dictionary(column.type):
            used = _used(column)
            columns[name] = used if name in DICTIONARY_COLUMNS or _pays(used) else plain(used)
    return pa.table(columns)


def _pays(column: pa.ChunkedArray) -> bool:
    return all(2 * len(chunk.dictionary) <= len(chunk) and chunk.dictionary.nbytes <= _PAGE for chunk in column.chunks)


def _used(column: pa.ChunkedArray) -> pa.ChunkedArray:
    whole = column.combine_chunks()
    if not isinstance(whole, pa.DictionaryArray):
        return column
    indices, dictionary = whole.indices, whole.dictionary
    used = np.zeros(len(dictionary), dtype=bool)
    used[np.asarray(indices.drop_null())] = True
    if used.all():
        return pa.chunked_array([whole])
    numbers = pa.array(np.cumsum(used) - 1, pa.int32())
    return pa.chunked_array([pa.DictionaryArray.from_arrays(numbers.take(indices), dictionary.filter(pa.array(used)))])
