"""Bounds and counts of columns from a base file's footer, in the types of the table.

Uses only bounds that hold however a reader interprets the column: of numbers, booleans, dates, timestamps, decimals, text and bytes,
converted to the table's type if that keeps their order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pat

from lakehouse_engine.files.footer import NAN_BOUNDS
from lakehouse_engine.files.projection import from_floating, match_name


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """Statistics of a column for a whole file. Bounds are in the table's type; None if unreliable, or if there is no value but nulls.

    `values` counts nulls too, `nulls` is None if unknown; `size` and `raw_size` are bytes of its chunks with and without compression.
    `may_hide_nan`: there may be NaN besides values within the bounds.
    """

    least: pa.Scalar | None
    greatest: pa.Scalar | None
    values: int
    nulls: int | None
    size: int = 0
    raw_size: int = 0
    may_hide_nan: bool = False

    @property
    def has_bounds(self) -> bool:
        return self.least is not None and self.greatest is not None

    @property
    def is_exact(self) -> bool:
        """True if every value lies within the bounds, or there is none."""
        return self.nulls is not None and (self.nulls == self.values or (self.has_bounds and not self.may_hide_nan))


def columns_bounds(metadata: pq.FileMetaData, fields: Sequence[pa.Field], path: str = "", others: Sequence[str] = ()) -> list[ColumnBounds]:
    """Statistics of each of `fields`, which are not nested. A column that the file lacks is null in every row.

    `others` are the names of all columns of the table. Raises `SchemaIncompatibleError` if columns of the file differ only in case.
    """
    stored = metadata.schema.to_arrow_schema()
    positions = {metadata.schema.column(number).path: number for number in range(metadata.num_columns)}
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    found = []
    for field in fields:
        at = match_name(stored.names, field.name, path, others or [one.name for one in fields])
        if at is None:
            found.append(ColumnBounds(None, None, metadata.num_rows, metadata.num_rows))
        elif stored.names[at] not in positions or pat.is_nested(stored.field(at).type):
            found.append(ColumnBounds(None, None, metadata.num_rows, None))
        else:
            position = positions[stored.names[at]]
            found.append(_bounds_of_chunks(metadata, position, stored.field(at).type, [one.column(position) for one in groups], field.type))
    return found


def _bounds_of_chunks(
    metadata: pq.FileMetaData, position: int, stored: pa.DataType, chunks: Sequence[pq.ColumnChunkMetaData], kind: pa.DataType
) -> ColumnBounds:
    sizes = (sum(one.total_compressed_size for one in chunks), sum(one.total_uncompressed_size for one in chunks))
    values = sum(one.num_values for one in chunks)
    if any(one.statistics is None or not one.statistics.has_null_count for one in chunks):
        return ColumnBounds(None, None, values, None, *sizes)
    nulls = sum(one.statistics.null_count for one in chunks)
    filled = [one.statistics for one in chunks if one.statistics.null_count < one.num_values]
    ends = [bounds_of(one, stored, kind) for one in filled]
    if not ends or None in ends or misleads(metadata, stored, metadata.schema.column(position).physical_type):
        return ColumnBounds(None, None, values, nulls, *sizes)
    least, greatest = (pa.concat_arrays([pa.repeat(end[place], 1) for end in ends if end is not None]) for place in (0, 1))
    counts_nan = _COUNTS_NAN.match(metadata.created_by or "") or NAN_BOUNDS in (metadata.metadata or {})
    hides = pat.is_floating(stored) and not counts_nan
    return ColumnBounds(pc.min(least), pc.max(greatest), values, nulls, *sizes, may_hide_nan=hides)


def misleads(metadata: pq.FileMetaData, stored: pa.DataType, physical: str) -> bool:
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
_COUNTS_NAN = re.compile(r"parquet-mr ")
"""Writers whose bounds are NaN if a value is: Java orders it above all numbers."""
_OLD_CALENDAR = {b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96"}


def bounds_of(statistics: pq.Statistics, stored: pa.DataType, kind: pa.DataType) -> tuple[pa.Scalar, pa.Scalar] | None:
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
    if not any(member(stored) for member in (pat.is_floating, pat.is_decimal, pat.is_string, pat.is_binary, pat.is_boolean)):
        return None
    value = getattr(statistics, end)
    return None if pat.is_floating(stored) and value != value else pa.scalar(value, stored)


def _keeps_order(stored: pa.DataType, kind: pa.DataType) -> bool:
    """True if a smaller stored value never becomes a larger value of the table."""
    if pat.is_signed_integer(stored):
        return bool(pat.is_signed_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind))
    families = (pat.is_floating, pat.is_decimal, pat.is_date32, pat.is_string, pat.is_binary, pat.is_boolean)
    same = any(member(stored) and member(kind) for member in families)
    return same or bool(pat.is_timestamp(stored) and pat.is_timestamp(kind) and (stored.tz is None) == (kind.tz is None))
