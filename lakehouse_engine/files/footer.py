"""Footer of a base file: enough for an index to rule the file in or out without reading a row."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.parquet as pq

from lakehouse_engine.files.base_file import base_file_metadata
from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.format.bloom import BloomFilter
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.storage.base import Storage

MIN_KEY = b"hoodie_min_record_key"
MAX_KEY = b"hoodie_max_record_key"
BLOOM_FILTER = b"org.apache.hudi.bloomfilter"
OLD_BLOOM_FILTER = b"com.uber.hoodie.bloomfilter"
BLOOM_FILTER_KIND = b"hoodie_bloom_filter_type_code"
NAN_BOUNDS = b"lakehouse.nan.bounds"
"""Present if chunks of floating point columns that have NaN have no bounds."""
SORTED_BY = b"lakehouse.sorted.by"
"""Order into which a clustering of this engine sorted all rows of the file. No other writer of the file keeps it."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Bounds of the record keys of a row group, both inclusive; None without statistics for a text column of that name."""

    num_rows: int
    min_key: str | None
    max_key: str | None


@dataclass(frozen=True, slots=True)
class BaseFileFooter:
    """Footer of a base file (hudi-format 4.1).

    `min_key` and `max_key` are None for a file without rows, or of a table without meta columns. `bloom` is the filter's base64 text as
    stored and `bloom_kind` its type code (`SIMPLE`, `DYNAMIC_V0`); None if the file has no filter. `row_groups` has the rows and the key
    column's statistics of every row group, in file order. `num_rows` counts all rows. `sorted_by` names their order, if a clustering sorted
    them.
    """

    num_rows: int
    min_key: str | None
    max_key: str | None
    bloom: str | None
    bloom_kind: str | None
    row_groups: tuple[KeyRange, ...]
    sorted_by: str | None = None

    def bloom_filter(self) -> BloomFilter | None:
        """Filter over the file's record keys; None if the file has none. Raises `FormatError` if it does not parse."""
        if self.bloom is None or self.bloom_kind is None:
            return None
        return BloomFilter.from_base64(self.bloom, self.bloom_kind)


def read_footer(storage: Storage, base: BaseFile | str, *, key_column: str = RECORD_KEY) -> BaseFileFooter:
    """Footer of a base file; reads no row. Raises as `read_base_file`.

    For a listed file, the process may have the footer cached; for a path relative to the table it reads it. `key_column` is the column for
    the row groups' statistics: a user column for tables without meta columns.
    """
    metadata = base_file_metadata(storage, base) if isinstance(base, str) else FOOTERS.read(storage, base)
    stored = metadata.metadata or {}
    bloom = stored.get(BLOOM_FILTER, stored.get(OLD_BLOOM_FILTER))
    return BaseFileFooter(
        num_rows=metadata.num_rows,
        min_key=_text(stored.get(MIN_KEY)),
        max_key=_text(stored.get(MAX_KEY)),
        bloom=_text(bloom),
        # Files older than the type code use Hudi's first kind of filter.
        bloom_kind=_text(stored.get(BLOOM_FILTER_KIND)) or ("SIMPLE" if bloom else None),
        row_groups=_key_ranges(metadata, key_column),
        sorted_by=_text(stored.get(SORTED_BY)),
    )


def _text(stored: bytes | None) -> str | None:
    return None if stored is None else stored.decode("utf-8")


def _key_ranges(metadata: pq.FileMetaData, key_column: str) -> tuple[KeyRange, ...]:
    paths = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
    position = paths.index(key_column) if key_column in paths else None
    return tuple(_key_range(metadata.row_group(number), position) for number in range(metadata.num_row_groups))


def _key_range(group: pq.RowGroupMetaData, position: int | None) -> KeyRange:
    statistics = None if position is None else group.column(position).statistics
    low, high = (statistics.min, statistics.max) if statistics is not None and statistics.has_min_max else (None, None)
    if not (isinstance(low, str) and isinstance(high, str)):
        return KeyRange(group.num_rows, None, None)
    return KeyRange(group.num_rows, low, high)
