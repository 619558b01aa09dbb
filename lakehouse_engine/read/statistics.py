"""Guarantees about the rows of row groups, from a base file's footer.

Uses only bounds that hold however a reader interprets the column: of numbers, dates, timestamps, decimals and text, converted to the
table's type if that keeps their order. Statistics that are missing or not understood guarantee nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pat

from lakehouse_engine.files.projection import from_floating, match_name
from lakehouse_engine.read.row_filter import RowFilter

EVERY = pc.scalar(True)
"""A guarantee without information."""
_MOST_FLOATING = 3
"""Number of floating point columns whose statistics are used: each doubles the number of checks, because bounds leave out NaN."""


def matching_row_groups(metadata: pq.FileMetaData, wanted: RowFilter, path: str = "") -> list[int]:
    """Numbers of the row groups that may have rows for which the filter is true.

    Raises `SchemaIncompatibleError` if columns of the file differ only in case.
    """
    asked = guarantees_of(metadata, wanted, path)
    found = wanted.may_hold([one for _, one in asked])
    return sorted({number for (number, _), may in zip(asked, found, strict=True) if may})


def guarantees_of(metadata: pq.FileMetaData, wanted: RowFilter, path: str = "") -> list[tuple[int, pc.Expression]]:
    """Row group numbers, each with a guarantee about the filter's columns; each row satisfies one of its row group's guarantees.

    Raises as `matching_row_groups`.
    """
    stored = metadata.schema.to_arrow_schema()
    every = wanted.schema.names
    fields = [(wanted.schema.field(name), match_name(stored.names, name, path, every)) for name in wanted.columns]
    positions = {metadata.schema.column(number).path: number for number in range(metadata.num_columns)}
    known = [_column(metadata, field, None if at is None else stored.field(at), positions, wanted) for field, at in fields]
    asked: list[tuple[int, pc.Expression]] = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        asked += [(number, one) for one in together(column.guarantees(group) for column in known)]
    return asked


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """Footer statistics of a column for the whole file. Bounds are in the table's type; None if they are unreliable."""

    least: pa.Scalar | None
    greatest: pa.Scalar | None
    values: int
    nulls: int


def column_bounds(metadata: pq.FileMetaData, field: pa.Field) -> ColumnBounds | None:
    """Bounds and counts of a column that is not nested; None if the file lacks the column or its statistics."""
    stored = metadata.schema.to_arrow_schema()
    positions = {metadata.schema.column(number).path: number for number in range(metadata.num_columns)}
    position = positions.get(field.name)
    if position is None or pat.is_nested(stored.field(field.name).type):
        return None
    kind = stored.field(field.name).type
    chunks = [metadata.row_group(number).column(position) for number in range(metadata.num_row_groups)]
    if any(chunk.statistics is None or not chunk.statistics.has_null_count for chunk in chunks):
        return None
    values, nulls = (sum(numbers) for numbers in zip(*((chunk.num_values, chunk.statistics.null_count) for chunk in chunks), strict=True))
    filled = [chunk.statistics for chunk in chunks if chunk.statistics.null_count < chunk.num_values]
    ends = [_bounds(one, kind, field.type) for one in filled]
    if not ends or None in ends or _misleads(metadata, kind, metadata.schema.column(position).physical_type):
        return ColumnBounds(None, None, values, nulls)
    least, greatest = (pa.concat_arrays([pa.repeat(end[place], 1) for end in ends if end is not None]) for place in (0, 1))
    return ColumnBounds(pc.min(least), pc.max(greatest), values, nulls)


def _column(metadata: pq.FileMetaData, field: pa.Field, stored: pa.Field | None, positions: dict[str, int], wanted: RowFilter) -> _Column:
    position = None if stored is None else positions.get(stored.name)
    if stored is None or position is None:
        return _Column(field, stored, None, unbounded=wanted.rounds)
    physical = metadata.schema.column(position).physical_type
    return _Column(field, stored, position, unbounded=wanted.rounds or _misleads(metadata, stored.type, physical))


def _misleads(metadata: pq.FileMetaData, stored: pa.DataType, physical: str) -> bool:
    """True if the file's writer may have written bounds that differ from those of the column's values.

    Before Parquet had a column order, decimals stored as bytes had bounds of single signed bytes (parquet-mr 1.10, PARQUET-686). Spark 2,
    and later versions in legacy mode, store days and moments before 1582 in another calendar (Spark `DataSourceUtils.datetimeRebaseSpec`):
    Spark reads them as other days than are stored.
    """
    if pat.is_decimal(stored) and physical not in ("INT32", "INT64"):
        return not _ORDERED.match(metadata.created_by or "")
    if pat.is_date(stored) or pat.is_timestamp(stored):
        return is_rebased(metadata, first_right=b"3")
    return False


def is_rebased(metadata: pq.FileMetaData, *, first_right: bytes) -> bool:
    """True if Spark reads days and moments of the file before 1582 as others than are stored.

    That is so if it was written before Spark version `first_right`, or says so (`DataSourceUtils.datetimeRebaseSpec`; `int96RebaseSpec` has
    another version).
    """
    texts = metadata.metadata or {}
    return texts.get(b"org.apache.spark.version", first_right) < first_right or bool(_OLD_CALENDAR & texts.keys())


_ORDERED = re.compile(r"parquet-(cpp|rs)|parquet-mr version (1\.[1-9][0-9]|[2-9]\.)")
_OLD_CALENDAR = {b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"}


class _Column:
    """A table column and the file's column that stores it (None: the file lacks it, so it is null). With `unbounded`, its bounds are
    ignored.
    """

    def __init__(self, field: pa.Field, stored: pa.Field | None, position: int | None, *, unbounded: bool) -> None:
        self.field, self.stored, self.position, self.unbounded = field, stored, position, unbounded

    def guarantees(self, group: pq.RowGroupMetaData) -> list[pc.Expression]:
        """Alternatives: each row of the group satisfies one of them."""
        name, kind = pc.field(self.field.name), self.field.type
        if pat.is_nested(kind):
            return [EVERY]
        if self.stored is None:
            return [name.is_null()]
        statistics = None if self.position is None or pat.is_nested(self.stored.type) else group.column(self.position).statistics
        if statistics is None:
            return [EVERY]
        nulls = statistics.null_count if statistics.has_null_count else None
        if nulls == group.num_rows:
            return [name.is_null()]
        bounds = None if self.unbounded else _bounds(statistics, self.stored.type, kind)
        if bounds is None:
            return [EVERY]
        return within(self.field, bounds[0], bounds[1], has_nulls=nulls != 0)


def within(field: pa.Field, least: pa.Scalar, greatest: pa.Scalar, *, has_nulls: bool) -> list[pc.Expression]:
    """What bounds guarantee about a column's values, as alternatives: each row satisfies one of them. Bounds leave out NaN."""
    name = pc.field(field.name)
    low, high = name >= least, name <= greatest
    inside = (low | name.is_null()) & (high | name.is_null()) if has_nulls else low & high
    return [inside, name == pa.scalar(float("nan"), field.type)] if pat.is_floating(field.type) else [inside]


def together(columns: Iterable[list[pc.Expression]]) -> list[pc.Expression]:
    """Alternatives for whole rows, combined from those of several columns."""
    alternatives, floating = [], 0
    for found in columns:
        floating += len(found) > 1
        alternatives.append([EVERY] if len(found) > 1 and floating > _MOST_FLOATING else found)
    return [_all(one) for one in product(*alternatives)]


def _all(expressions: Sequence[pc.Expression]) -> pc.Expression:
    whole = EVERY
    for one in expressions:
        whole = one if whole is EVERY else whole if one is EVERY else whole & one
    return whole


def _bounds(statistics: pq.Statistics, stored: pa.DataType, kind: pa.DataType) -> tuple[pa.Scalar, pa.Scalar] | None:
    """Lowest and highest value in the table's type; None if there are no reliable ones."""
    if not statistics.has_min_max:
        return None
    try:
        low, high = (_scalar(statistics, end, stored) for end in ("min", "max"))
        if low is None or high is None or not _keeps_order(stored, kind):
            return None
        if pat.is_floating(stored):
            return from_floating(low, kind), from_floating(high, kind)
        return low.cast(kind, safe=not pat.is_floating(kind)), high.cast(kind, safe=not pat.is_floating(kind))
    except (pa.ArrowException, UnicodeDecodeError):
        return None  # bounds cut inside a character, or outside of the type's range


def _scalar(statistics: pq.Statistics, end: str, stored: pa.DataType) -> pa.Scalar | None:
    if pat.is_signed_integer(stored) or pat.is_date32(stored) or (pat.is_timestamp(stored) and stored.unit in ("ms", "us")):
        # Python's date objects cover only the years 1 to 9999.
        raw = getattr(statistics, f"{end}_raw")
        return pa.scalar(raw, pa.int32() if pat.is_date32(stored) else pa.int64()).cast(stored)
    if not (pat.is_floating(stored) or pat.is_decimal(stored) or pat.is_string(stored)):
        return None
    value = getattr(statistics, end)
    return None if pat.is_floating(stored) and value != value else pa.scalar(value, stored)


def _keeps_order(stored: pa.DataType, kind: pa.DataType) -> bool:
    """True if a smaller stored value never becomes a larger value of the table."""
    if pat.is_signed_integer(stored):
        return bool(pat.is_signed_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind))
    families = (pat.is_floating, pat.is_decimal, pat.is_date32, pat.is_string)
    same = any(member(stored) and member(kind) for member in families)
    return same or bool(pat.is_timestamp(stored) and pat.is_timestamp(kind) and (stored.tz is None) == (kind.tz is None))
