"""Finds the latest of several rows of one key by the table's ordering fields.

Fields compare one after the other: null is below every value, text compares by UTF-8 bytes, floats like `Double.compareTo` (-0.0 below 0.0,
NaN above all). Among equal rows the later one wins (table format, "Merge semantics").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.errors import SchemaIncompatibleError


def latest_per_key(
    keys: pa.Array | pa.ChunkedArray, ordering: Sequence[pa.Array | pa.ChunkedArray], *, earliest: bool = False
) -> npt.NDArray[np.int64]:
    """Ascending row numbers to keep: for each key the row with the highest ordering values, the last of equals.

    `ordering` has one array per field, as long as `keys`; without fields, all rows of a key are equal. `earliest` takes the first of
    equals.
    """
    codes, distinct = _codes(keys)
    rows = np.arange(len(codes), dtype=np.int64)
    if distinct == len(codes):
        return rows
    if earliest:
        backwards = pa.array(rows[::-1])
        kept = latest_per_key(pc.take(keys, backwards), [pc.take(column, backwards) for column in ordering])
        return np.asarray(len(rows) - 1 - kept[::-1], dtype=np.int64)
    if not ordering:
        return _last_rows(codes, rows, distinct)
    repeated = np.bincount(codes, minlength=distinct)[codes] > 1
    contested = rows[repeated]
    order = _sorted_by_key(codes[contested], ordering, contested)
    winners = contested[order[_ends(codes[contested][order])]]
    return np.sort(np.concatenate([rows[~repeated], winners]))


def ranks(ordering: Sequence[pa.Array | pa.ChunkedArray], rows: int) -> npt.NDArray[np.int64]:
    """A number per row (`rows` of them) that compares like its ordering values; all 0 without ordering fields."""
    if not ordering:
        return np.zeros(rows, np.int64)
    columns = [_numbers(column) for column in ordering]
    if len(columns) == 1:
        return columns[0]
    order = np.lexsort(columns[::-1])
    steps = np.zeros(rows, np.int64)
    for column in columns:
        steps[1:] |= column[order][1:] != column[order][:-1]
    found = np.empty(rows, np.int64)
    found[order] = np.cumsum(steps)
    return found


def incoming_wins(
    base: Sequence[pa.Array | pa.ChunkedArray], incoming: Sequence[pa.Array | pa.ChunkedArray], *, equals: bool = True
) -> npt.NDArray[np.bool_]:
    """For each pair, whether the incoming row replaces the stored one: its ordering values are higher, or (with `equals`) equal.

    One pair of arrays of equal type and length per field, at least one. Raises `SchemaIncompatibleError` if types differ.
    """
    lower: npt.NDArray[np.bool_] | None = None
    for stored, offered in reversed(list(zip(base, incoming, strict=True))):
        if stored.type != offered.type:
            raise SchemaIncompatibleError(f"an ordering field is {stored.type} in the table and {offered.type} in the batch; cast it")
        above, equal = _compared(_comparable(stored), _comparable(offered))
        lower = ~above & (~equal | (not equals if lower is None else lower))
    if lower is None:
        raise ValueError("there is no ordering field to compare by")
    return ~lower


def has_value(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Where a column is not null."""
    return np.asarray(column.is_valid())


def last_values_per_key(
    batch: pa.Table,
    keys: pa.Array | pa.ChunkedArray,
    ordering: Sequence[pa.Array | pa.ChunkedArray],
    *,
    has: Callable[[pa.ChunkedArray], npt.NDArray[np.bool_]] = has_value,
) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """One row per key, made of the last value that each column `has` (not null), with rows in the order of their ordering values.

    Returns the rows, and for each the ascending number of its key's latest row.
    """
    codes, distinct = _codes(keys)
    rows = np.arange(len(codes), dtype=np.int64)
    if distinct == len(codes):
        return batch, rows
    order = _sorted_by_key(codes, ordering, rows)
    ends = np.flatnonzero(_ends(codes[order]))
    starts = np.concatenate([[0], ends[:-1] + 1])
    latest = order[ends]
    groups = np.argsort(latest)
    columns = []
    for column in batch.columns:
        filled = np.where(has(column)[order], np.arange(len(order)), -1)
        positions = np.maximum.reduceat(filled, starts)
        # A column without any value takes the latest row's.
        sources = order[np.where(positions < 0, ends, positions)]
        columns.append(column.take(pa.array(sources[groups])))
    return pa.Table.from_arrays(columns, schema=batch.schema), latest[groups]


def _sorted_by_key(
    codes: npt.NDArray[np.int64], ordering: Sequence[pa.Array | pa.ChunkedArray], rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Positions into `rows` that sort them by key code, ordering values, position. `codes` is as long as `rows`."""
    ranks = [_ranks(pc.take(column, pa.array(rows))) for column in ordering]
    return np.lexsort([*reversed(ranks), codes])


def _codes(keys: pa.Array | pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], int]:
    """A number per row that is equal for equal keys, and the number of keys."""
    array = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    encoded = array if pat.is_dictionary(array.type) else array.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64, copy=False), len(encoded.dictionary)


def _last_rows(codes: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], distinct: int) -> npt.NDArray[np.int64]:
    last = np.full(distinct, -1, np.int64)
    np.maximum.at(last, codes, rows)
    return np.sort(last[last >= 0])


def _ends(sorted_codes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Marks the last row of each run of equal codes."""
    ends = np.ones(len(sorted_codes), np.bool_)
    ends[:-1] = sorted_codes[1:] != sorted_codes[:-1]
    return ends


def _ranks(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.uint64]:
    values = _comparable(column)
    # Ranks start at 1; nulls have the last one.
    ranks = np.array(pc.rank(values, sort_keys="ascending", tiebreaker="dense"))
    ranks[np.asarray(values.is_null())] = 0
    return ranks


def _numbers(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Numbers that compare like the values: integers and moments themselves, ranks for others."""
    values = _comparable(column)
    if values.null_count or not (pat.is_signed_integer(values.type) or pat.is_temporal(values.type)):
        return _ranks(values).astype(np.int64)
    whole = pa.int32() if values.type.bit_width == 32 else pa.int64()
    return np.asarray(values if pat.is_integer(values.type) else values.view(whole)).astype(np.int64, copy=False)


def _comparable(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column in a type whose Arrow comparison is the wanted one."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pat.is_boolean(array.type):
        return array.cast(pa.int8())
    if not pat.is_floating(array.type):
        return array
    values = np.asarray(pc.fill_null(array.cast(pa.float64()), 0.0)).copy()
    values[np.isnan(values)] = np.nan
    bits = values.view(np.int64)
    # Negative numbers have their bits reversed.
    sortable = np.where(bits < 0, np.int64(-(2**63)) - bits - 1, bits)
    return pa.array(sortable, mask=np.asarray(array.is_null()))


def _compared(base: pa.Array, incoming: pa.Array) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Whether the incoming value is above the stored one, and whether they are equal; null equals null and is below the rest."""
    above, equal = _flags(pc.greater(incoming, base)), _flags(pc.equal(incoming, base))
    if base.null_count or incoming.null_count:
        stored, offered = np.asarray(base.is_valid()), np.asarray(incoming.is_valid())
        above |= offered & ~stored
        equal |= ~offered & ~stored
    return above, equal


def _flags(compared: pa.Array) -> npt.NDArray[np.bool_]:
    return np.array(pc.fill_null(compared, False))
