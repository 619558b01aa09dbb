"""Ranges of values in columns of rows, part by part. NaN counts as beyond both infinities, since Hudi finds no file by a bound of NaN."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.files.column_bounds import ColumnBounds

_DAYS_APART = 31
_MICROS = 24 * 60 * 60 * 1_000_000


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
    """Range of a column's values; no bounds if all are null. With NaN it ends at infinity, above which Spark orders it."""
    nulls = values.null_count
    if nulls == len(values):
        return ColumnBounds(None, None, len(values), nulls)
    ends = pc.min_max(values)  # leaves out NaN, unless there is nothing else
    least, greatest = ends["min"], ends["max"]
    if pat.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        infinity = pa.scalar(math.inf, values.type)
        least, greatest = pa.scalar(-math.inf, values.type) if math.isnan(least.as_py()) else least, infinity
    return ColumnBounds(least, greatest, len(values), nulls)


def joined(one: ColumnBounds, other: ColumnBounds) -> ColumnBounds:
    """Range of the values in both; both have the same type, and known bounds unless all values are null."""
    nulls = None if one.nulls is None or other.nulls is None else one.nulls + other.nulls
    counts = ColumnBounds(None, None, one.values + other.values, nulls, one.size + other.size, one.raw_size + other.raw_size)
    if not one.has_bounds or not other.has_bounds:
        known = one if one.has_bounds else other
        return replace(counts, least=known.least, greatest=known.greatest)
    least, greatest = (pa.array([getattr(each, end) for each in (one, other)]) for end in ("least", "greatest"))
    return replace(counts, least=pc.min(least), greatest=pc.max(greatest))


def widened(one: ColumnBounds) -> ColumnBounds:
    """Range of days or moments that holds them in the old calendar too, which is at most 10 days apart, and local time a day."""
    if one.least is None or one.greatest is None:
        return one
    kind = one.least.type
    number, apart = (pa.int32(), _DAYS_APART) if pat.is_date(kind) else (pa.int64(), _DAYS_APART * _MICROS)
    ends = [pc.add(end.cast(number), pa.scalar(shift, number)).cast(kind) for end, shift in ((one.least, -apart), (one.greatest, apart))]
    return replace(one, least=ends[0], greatest=ends[1])
