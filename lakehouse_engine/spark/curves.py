"""Brings rows of a DataFrame into the order of a layout, in parts of about equal size, for tables too large for one process."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, LongType, StructField

from lakehouse_engine.sorting.columns import chosen_columns
from lakehouse_engine.sorting.layout import SortLayout
from lakehouse_engine.sorting.ranges import SAMPLE_ROWS, Ranges
from lakehouse_engine.sorting.rows import curve_keys
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.arranging import with_columns
from lakehouse_engine.spark.schema import free_name, to_arrow_schema
from lakehouse_engine.sql.grammar.lexer import quote_name

_KEY = "__lakehouse_place"
_SIGNED = 63
"""Most bits of a key that fits Spark's long."""
_SEED = 0


def laid_out(frame: DataFrame, columns: Sequence[str], layout: SortLayout, parts: int, rows: int | None = None) -> DataFrame:
    """The rows in `parts` consecutive partitions in the order of a layout, each sorted.

    `rows`: about how many there are; without it they are counted. The query runs once for a sample of the columns, once for the cuts, and
    once for the rows. By one column every layout is LINEAR. Raises `OptionError` as `chosen_columns`.
    """
    names = chosen_columns(to_arrow_schema(frame.schema), columns)
    quoted = [quote_name(name) for name in names]
    if layout is SortLayout.LINEAR or len(names) == 1:
        return frame.repartitionByRange(parts, *quoted).sortWithinPartitions(*quoted)
    ranges = Ranges.of(_sample(frame.select(*quoted), rows), names)
    key = free_name(_KEY, frame.columns)
    keyed = with_columns(frame, [_field(key, len(names), ranges)], lambda some: [_places(some, names, layout, ranges)])
    return keyed.repartitionByRange(parts, quote_name(key)).sortWithinPartitions(quote_name(key)).drop(key)


def _sample(frame: DataFrame, rows: int | None) -> pa.Table:
    share = SAMPLE_ROWS / max(1, frame.count() if rows is None else rows)
    chosen = frame if share >= 1 else frame.sample(share, _SEED)
    return abilities_of(frame.sparkSession).handed_over(chosen)


def _field(name: str, columns: int, ranges: Ranges) -> StructField:
    return StructField(name, LongType() if columns * ranges.bits <= _SIGNED else BinaryType())


def _places(rows: pa.Table, names: Sequence[str], layout: SortLayout, ranges: Ranges) -> pa.ChunkedArray:
    """The keys of rows, in a Spark type that sorts like them."""
    keys = curve_keys(rows, names, layout, ranges)
    return pa.chunked_array([keys.cast(pa.int64() if pa.types.is_integer(keys.type) else pa.binary())])
