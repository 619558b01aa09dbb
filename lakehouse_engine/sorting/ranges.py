"""Range ids: the part of a column's distribution in which each value lies.

With ids instead of values, columns of any type and skew are alike: a curve over ids cuts each column where its rows are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.errors import SchemaIncompatibleError
from lakehouse_engine.sorting.columns import chosen_columns, flat, numbers, ordered
from lakehouse_engine.sorting.curves import MOST_BITS

DEFAULT_BITS = 10
"""1023 ranges per column: far more than the files into which one column can be cut, and six columns fit a key of 64 bits."""

SAMPLE_ROWS = 100_000
"""Size of a sample: about a hundred rows per range, so that the ranges of a column differ by a tenth in their rows."""

_BLOCK = 32_768
"""Values looked up together."""

Ids = npt.NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class ColumnRanges:
    """Ranges of one column: values from `bounds[i - 1]` up to, not including, `bounds[i]` have the id `ids[i]`. Nulls have 0.

    `bounds` are values in the form of `columns.ordered`, ascending and distinct; `ids` is ascending and one longer.
    """

    type: pa.DataType
    bounds: pa.Array
    ids: Ids

    @classmethod
    def of(cls, sample: pa.Array | pa.ChunkedArray, bits: int) -> ColumnRanges:
        """Ranges of about equal shares of a sample, whose type `check_ordered` must accept."""
        kind = sample.type.value_type if pat.is_dictionary(sample.type) else sample.type
        values = ordered(sample.cast(kind)).drop_null()
        values = values.take(pc.sort_indices(values))
        slots = 2**bits - 1
        cuts = np.arange(1, slots) * len(sample) // slots - (len(sample) - len(values))
        nulls = int(np.count_nonzero(cuts < 0))
        bounds = values.take(pa.array(cuts[nulls:])) if len(values) else values
        starts = np.flatnonzero(_differ(bounds))
        edges = np.concatenate([[nulls], nulls + 1 + starts, [slots]])
        # A frequent value spans several slots: the middle one has the leading bits of its share of the rows.
        middles = (edges[:-1] + edges[1:] - 1) // 2
        return cls(kind, bounds.take(pa.array(starts)), (1 + middles).astype(np.uint16))

    def of_values(self, column: pa.Array | pa.ChunkedArray) -> Ids:
        """Id of each value."""
        if pat.is_dictionary(column.type):
            encoded = flat(column.unify_dictionaries() if isinstance(column, pa.ChunkedArray) else column)
            ids: Ids = np.concatenate([self.of_values(encoded.dictionary), np.zeros(1, np.uint16)])
            places = numbers(encoded.indices.cast(pa.int64()), missing=len(encoded.dictionary))
            return np.take(ids, places)
        found = np.empty(len(column), np.uint16)
        for low in range(0, len(column), _BLOCK):
            values = ordered(column.slice(low, _BLOCK))
            ids = np.take(self.ids, ranges_of(values, self.bounds))
            found[low : low + _BLOCK] = np.where(np.asarray(values.is_valid()), ids, 0) if values.null_count else ids
        return found


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges of the sort columns by their names in lower case. Picklable.

    Ids are numbers of `bits` bits; 0 is null.
    """

    columns: dict[str, ColumnRanges]
    bits: int = DEFAULT_BITS

    @classmethod
    def of(cls, sample: pa.Table, columns: Sequence[str], bits: int = DEFAULT_BITS) -> Ranges:
        """Ranges of about equal shares of a sample's rows.

        Raises `OptionError` as `chosen_columns`, and `ValueError` if `bits` is not 2 to 16.
        """
        if not 2 <= bits <= MOST_BITS:
            raise ValueError(f"range ids have 2 to {MOST_BITS} bits, not {bits}")
        names = chosen_columns(sample.schema, columns)
        return cls({name.lower(): ColumnRanges.of(sample.column(name), bits) for name in names}, bits)

    def of_rows(self, table: pa.Table, columns: Sequence[str]) -> Ids:
        """Range ids of rows: (columns, rows). Raises `OptionError` as `chosen_columns`, `SchemaIncompatibleError` for a column without
        ranges, or with ranges of another type.
        """
        names = chosen_columns(table.schema, columns)
        ids = np.empty((len(names), table.num_rows), np.uint16)
        for row, name in zip(ids, names, strict=True):
            row[:] = self._of(table, name).of_values(table.column(name))
        return ids

    def _of(self, table: pa.Table, name: str) -> ColumnRanges:
        found, kind = self.columns.get(name.lower()), table.schema.field(name).type
        kind = kind.value_type if pat.is_dictionary(kind) else kind
        if found is None:
            raise SchemaIncompatibleError(f"the column {name!r} has no ranges; ranges were made for {', '.join(self.columns)}", column=name)
        if found.type != kind:
            raise SchemaIncompatibleError(
                f"the column {name!r} is {kind}, and its ranges were made from {found.type}: cast one of the two", column=name
            )
        return found


def _differ(values: pa.Array) -> npt.NDArray[np.bool_]:
    """True where a sorted array's value differs from the one before."""
    differ = np.ones(len(values), np.bool_)
    if len(values) > 1:
        differ[1:] = np.asarray(pc.not_equal(values.slice(1), values.slice(0, len(values) - 1)))
    return differ


def ranges_of(values: pa.Array, bounds: pa.Array) -> npt.NDArray[np.intp]:
    """For each value, the number of bounds not above it; 0 for null.

    Searches for all values in step. A loop without branches takes a third of the time of `np.searchsorted`, whose branches are
    mispredicted.
    """
    reached = _numbers_reached(bounds, values) if pat.is_integer(values.type) else _values_reached(bounds, values)
    found = np.zeros(len(values), np.intp)
    for bit in reversed(range(len(bounds).bit_length())):
        last = found + (2**bit - 1)
        found += (reached(last) & (last < len(bounds))) * np.intp(2**bit)
    return found


_Reached = Callable[[npt.NDArray[np.intp]], npt.NDArray[np.bool_]]
"""For one place per value among the bounds: True if the bound there is not above the value. Places past the end count as the last."""


def _numbers_reached(bounds: pa.Array, values: pa.Array) -> _Reached:
    ends, found = numbers(bounds), numbers(values)
    return lambda places: np.asarray(np.take(ends, places, mode="clip") <= found)


def _values_reached(bounds: pa.Array, values: pa.Array) -> _Reached:
    def reached(places: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        ends = bounds.take(pa.array(np.minimum(places, len(bounds) - 1)))
        return np.asarray(pc.less_equal(ends, values).fill_null(False))

    return reached
