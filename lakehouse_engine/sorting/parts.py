"""Cuts the order of a layout into parts, so that rows of a part can be sorted without those of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.sorting.columns import chosen_columns, ordered
from lakehouse_engine.sorting.curves import Keys, places
from lakehouse_engine.sorting.layout import SortLayout
from lakehouse_engine.sorting.ranges import Ranges, ranges_of
from lakehouse_engine.sorting.rows import linear_order, stable_order

Numbers = npt.NDArray[np.int64]
_MOST = 2**62
"""Codes of a row are joined to one number up to here; columns beyond cut no finer."""


@dataclass(frozen=True, slots=True)
class SortParts:
    """Parts of about equal numbers of rows in the order by `columns`, numbered in that order. Equal rows are in one part.

    `ranges` are those of a curve, None for LINEAR. `cuts` has for each column, or word of a curve's key, its distinct values at the ends of
    parts, and `ends` the codes of these ends.
    """

    columns: tuple[str, ...]
    layout: SortLayout
    ranges: Ranges | None
    cuts: tuple[pa.Array, ...]
    ends: Numbers

    @classmethod
    def of(cls, sample: pa.Table, columns: Sequence[str], layout: SortLayout, parts: int) -> SortParts:
        """Up to `parts` parts of about equal shares of a sample's rows. Raises `OptionError` as `chosen_columns`."""
        names = tuple(chosen_columns(sample.schema, columns))
        layout = SortLayout.LINEAR if len(names) == 1 else layout
        ranges = None if layout is SortLayout.LINEAR else Ranges.of(sample, names)
        whole = cls(names, layout, ranges, (), np.empty(0, np.int64))
        at = whole.order(sample)[np.arange(1, parts) * sample.num_rows // parts] if sample.num_rows else np.empty(0, np.int64)
        keys = [key.take(pa.array(at)) for key in whole._keys(sample)]
        cuts = tuple(_distinct(key) for key in keys)
        return cls(names, layout, ranges, cuts, np.unique(_joined(keys, cuts)))

    @property
    def count(self) -> int:
        return len(self.ends) + 1

    def numbers(self, rows: pa.Table) -> Numbers:
        """The part of each row. Raises as `Ranges.of_rows`."""
        return np.searchsorted(self.ends, _joined(self._keys(rows), self.cuts), side="right")

    def order(self, rows: pa.Table) -> Numbers:
        """Row numbers in order; equal rows keep their order. Raises as `Ranges.of_rows`."""
        return linear_order(rows.select(list(self.columns))) if self.ranges is None else stable_order(self._curve(rows, self.ranges))

    def _keys(self, rows: pa.Table) -> list[pa.Array]:
        """Arrays that sort rows as the layout does, the most significant first."""
        if self.ranges is None:
            return [ordered(rows.column(name)) for name in self.columns]
        return [pa.array(word) for word in self._curve(rows, self.ranges)]

    def _curve(self, rows: pa.Table, ranges: Ranges) -> Keys:
        return places(ranges.of_rows(rows, self.columns), ranges.bits, self.layout)


def _distinct(values: pa.Array) -> pa.Array:
    found = values.drop_null().unique()
    return found.take(pc.sort_indices(found))


def _joined(keys: Sequence[pa.Array], cuts: Sequence[pa.Array]) -> Numbers:
    """For each row a number that compares with those of other rows as their keys do, as far as they are apart by `cuts`."""
    sizes = list(accumulate((2 * len(cut) + 2 for cut in cuts), lambda size, other: size * other))
    used = max(1, sum(size <= _MOST for size in sizes))
    joined = np.zeros(len(keys[0]), np.int64)
    for key, cut in zip(keys[:used], cuts[:used], strict=True):
        joined = joined * (2 * len(cut) + 2) + _codes(key, cut)
    return joined


def _codes(values: pa.Array, cuts: pa.Array) -> Numbers:
    """0 for null, 1 for values below all of `cuts`; then an even number for a value of `cuts`, the odd one after it up to the next."""
    reached = ranges_of(values, cuts)
    codes = 1 + 2 * reached
    if len(cuts):
        nearest = cuts.take(pa.array(np.maximum(reached - 1, 0)))
        codes -= (reached > 0) & np.asarray(pc.equal(nearest, values).fill_null(False))
    return np.where(np.asarray(values.is_valid()), codes, 0) if values.null_count else codes
