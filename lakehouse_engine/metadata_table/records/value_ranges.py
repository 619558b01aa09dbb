"""Ranges of values in columns of rows, part by part, in the order of Hudi: NaN is above all numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.files.column_bounds import ColumnBounds


@dataclass(slots=True)
class ValueRanges:
    """Ranges of the columns of `schema` over all rows that were added."""

    schema: pa.Schema
    found: list[ColumnBounds]

    @classmethod
    def of(cls, fields: Sequence[pa.Field]) -> ValueRanges:
        return cls(pa.schema(fields), [ColumnBounds(None, None, 0, 0) for _ in fields])

    def add(self, rows: pa.Table) -> None:
        """Take in rows that have at least the columns of the schema, in their types."""
        self.found = [joined(one, range_of(rows.column(field.name))) for field, one in zip(self.schema, self.found, strict=True)]


def range_of(values: pa.ChunkedArray) -> ColumnBounds:
    """Range of a column's values; no bounds if all are null."""
    nulls, floating = values.null_count, pat.is_floating(values.type)
    if nulls == len(values):
        return ColumnBounds(None, None, len(values), nulls)
    ends = pc.min_max(values)
    least, greatest = ends["min"], ends["max"]
    if floating and pc.any(pc.is_nan(values)).as_py():  # `min_max` leaves out NaN
        greatest = pa.scalar(float("nan"), values.type)
    return ColumnBounds(least, greatest, len(values), nulls)


def joined(one: ColumnBounds, other: ColumnBounds) -> ColumnBounds:
    """Range of the values in both; both have the same type, and known bounds unless all values are null."""
    nulls = None if one.nulls is None or other.nulls is None else one.nulls + other.nulls
    counts = ColumnBounds(None, None, one.values + other.values, nulls, one.size + other.size, one.raw_size + other.raw_size)
    if not one.has_bounds or not other.has_bounds:
        known = one if one.has_bounds else other
        return replace(counts, least=known.least, greatest=known.greatest)
    return replace(counts, least=_end(one.least, other.least, highest=False), greatest=_end(one.greatest, other.greatest, highest=True))


def _end(one: pa.Scalar, other: pa.Scalar, *, highest: bool) -> pa.Scalar:
    ends = pa.concat_arrays([pa.repeat(end, 1) for end in (one, other)])
    if pat.is_floating(ends.type):
        numbers = ends.filter(pc.invert(pc.is_nan(ends)))
        if len(numbers) < len(ends) and (highest or not len(numbers)):
            return pa.scalar(float("nan"), ends.type)
        ends = numbers
    return pc.max(ends) if highest else pc.min(ends)
