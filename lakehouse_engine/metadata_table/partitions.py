"""Partitions of a metadata table: their names, file groups, and how two records of one key are merged."""

from __future__ import annotations

import re
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.metadata_table.merging import Merging
from lakehouse_engine.record.keys.java_hash import java_string_hash
from lakehouse_engine.record.keys.partition_path import escape_path_name

FILES = "files"
COLUMN_STATS = "column_stats"
PARTITION_STATS = "partition_stats"
BLOOM_FILTERS = "bloom_filters"
RECORD_INDEX = "record_index"
SECONDARY_INDEX = "secondary_index_"
EXPRESSION_INDEX = "expr_index_"
"""Names, and prefixes of names that the user completes."""

_STATS = (COLUMN_STATS, PARTITION_STATS)
_NEWEST = (BLOOM_FILTERS, RECORD_INDEX)
_GROUP = re.compile(r"(?P<stem>.+)-(?P<number>[0-9]{4,})(?:-0)?")
_RECORD_INDEX_STEM = "record-index"


def merging_of(partition: str) -> Merging:
    """How two records of one key are merged. Raises `FormatError` for an unknown partition."""
    if partition == FILES:
        return Merging.FILES
    if partition in _STATS or partition.startswith(EXPRESSION_INDEX):
        return Merging.STATS
    if partition in _NEWEST or partition.startswith(SECONDARY_INDEX):
        return Merging.NEWEST
    raise FormatError(f"the metadata table has the partition {partition!r}, whose records this engine does not know", partition=partition)


def group_numbers(keys: pa.Array, count: int) -> npt.NDArray[np.int64]:
    """File group, among `count`, of each key (text or `binary`) (Hudi `HoodieTableMetadataUtil.mapRecordKeyToFileGroupIndex`).

    The hash has 32 bits: the absolute value of the least number is that number itself.
    """
    hashed = java_string_hash(keys.cast(pa.string())).view(np.int32)
    positive = np.abs(hashed).astype(np.int64)
    return np.asarray(np.abs(np.fmod(positive, count)))


def group_number(file_id: str) -> int:
    """Number of a file group in its partition, or in its data partition. Raises `FormatError`."""
    return int(_parsed(file_id)["number"])


def data_partition(file_id: str) -> str | None:
    """Data partition of a file group of a partitioned record index; None if the index covers the whole table."""
    stem = _parsed(file_id)["stem"]
    if not stem.startswith(f"{_RECORD_INDEX_STEM}-"):
        return None
    return unquote(stem.removeprefix(f"{_RECORD_INDEX_STEM}-"))


def record_index_group(partition_path: str, number: int) -> str:
    """File id of a group of a partitioned record index (Hudi `HoodieTableMetadataUtil.getFileIDForFileGroup`)."""
    escaped = escape_path_name(partition_path).replace("_", "%5F").replace("-", "%2D")
    return f"{_RECORD_INDEX_STEM}-{escaped}-{number:04d}-0"


def _parsed(file_id: str) -> re.Match[str]:
    found = _GROUP.fullmatch(file_id)
    if found is None:
        raise FormatError(f"{file_id!r} is no file group of a metadata table", file=file_id)
    return found
