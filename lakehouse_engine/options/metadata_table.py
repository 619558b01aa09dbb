"""Options of the metadata table: whether a table has one, and which indexes are in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse_engine.errors import OptionError
from lakehouse_engine.options.base import Option, boolean, positive
from lakehouse_engine.options.index import BUILT, METADATA_ENABLE, RECORD_INDEX_ENABLE
from lakehouse_engine.options.write import INDEX_TYPE

COLUMN_STATS_ENABLE: Option[bool | None] = Option(
    "hoodie.metadata.index.column.stats.enable",
    boolean,
    None,
    f"Whether the metadata table has column statistics of every file (column_stats), which filters ask instead of footers.{BUILT}",
)
PARTITION_STATS_ENABLE: Option[bool | None] = Option(
    "hoodie.metadata.index.partition.stats.enable",
    boolean,
    None,
    "Whether the metadata table has column statistics of every partition, for Hudi's readers; in tables of versions 8 and 9, with"
    f" hoodie.metadata.index.column.stats.enable.{BUILT}",
)
BLOOM_FILTERS_ENABLE: Option[bool | None] = Option(
    "hoodie.metadata.index.bloom.filter.enable",
    boolean,
    None,
    f"Whether the metadata table has the Bloom filter of every file (bloom_filters), for Hudi's writers.{BUILT}",
)
METADATA_COMPACT_DELTA_COMMITS = Option(
    "hoodie.metadata.compact.max.delta.commits",
    positive,
    10,
    "Delta commits of the metadata table after which a write compacts it.",
)
_PARTITIONS: tuple[tuple[str, Option[bool | None]], ...] = (
    ("column_stats", COLUMN_STATS_ENABLE),
    ("bloom_filters", BLOOM_FILTERS_ENABLE),
    ("record_index", RECORD_INDEX_ENABLE),
    ("partition_stats", PARTITION_STATS_ENABLE),
)
_ASKS_FOR_RECORD_INDEX = "GLOBAL_RECORD_LEVEL_INDEX"
"""Value of `hoodie.index.type` that needs the partition `record_index`."""


@dataclass(frozen=True, slots=True)
class MetadataTableOptions:
    """What is asked of a table's metadata table: the `partitions` that it must have (none: it stays as it is), or that it `is_dropped`, and
    after how many `delta_commits` it is compacted.
    """

    partitions: tuple[str, ...] = ()
    is_dropped: bool = False
    delta_commits: int = METADATA_COMPACT_DELTA_COMMITS.default

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> MetadataTableOptions:
        """Raises `OptionError` for options that contradict each other."""
        enable = METADATA_ENABLE.read(raw)
        asked = {name: option.read(raw) for name, option in _PARTITIONS}
        keys = {name: option.key for name, option in _PARTITIONS}
        if (index := INDEX_TYPE.read(raw)) == _ASKS_FOR_RECORD_INDEX:
            if asked["record_index"] is False:
                raise OptionError(f"{INDEX_TYPE.key}={index} contradicts {keys['record_index']}=false: keep one of the two")
            if asked["record_index"] is None:
                asked["record_index"], keys["record_index"] = True, INDEX_TYPE.key
        wanted = tuple(name for name, value in asked.items() if value)
        if "partition_stats" in wanted and "column_stats" not in wanted:
            raise OptionError(f"{keys['partition_stats']}=true needs {keys['column_stats']}=true, from which they are made")
        if enable == "FALSE" and wanted:
            raise OptionError(f"{METADATA_ENABLE.key}=false contradicts {keys[wanted[0]]}, which needs a metadata table: keep one of them")
        needed = ("files", *wanted) if wanted or enable == "TRUE" else ()
        return cls(needed, enable == "FALSE", METADATA_COMPACT_DELTA_COMMITS.read(raw))
