"""Results of a check of a metadata table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse_engine.compat import StrEnum

_NAMED = 3


class MetadataFindingKind(StrEnum):
    """What is wrong with a metadata table."""

    UNKNOWN_INSTANT = "unknown_instant"
    UNLISTED_FILE = "unlisted_file"
    LISTED_FILE_IS_GONE = "listed_file_is_gone"
    WRONG_SIZE = "wrong_size"
    WRONG_STATISTICS = "wrong_statistics"
    WRONG_BLOOM_FILTER = "wrong_bloom_filter"
    KEY_NOT_INDEXED = "key_not_indexed"
    INDEXED_KEY_IS_GONE = "indexed_key_is_gone"
    WRONG_LOCATION = "wrong_location"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class MetadataFinding:
    """One difference. `partition` is the metadata table's; `path` a data file or partition path, or "" for the whole table."""

    kind: MetadataFindingKind
    partition: str
    path: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataReport:
    """What was compared and what is wrong. `instant` is the newest completed write of the table, None if there is none.

    `files` are listed files, `statistics` pairs of file and column or expression, `filters` Bloom filters, `keys` entries of the record
    index and of secondary indexes; `skipped` says what could not be compared, and why.
    """

    table: str
    instant: str | None
    partitions: tuple[str, ...]
    files: int = 0
    statistics: int = 0
    filters: int = 0
    keys: int = 0
    findings: tuple[MetadataFinding, ...] = ()
    skipped: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.findings


def named(values: Sequence[str]) -> str:
    """The first few names, and the number of others."""
    first = ", ".join(map(repr, values[:_NAMED]))
    return first if len(values) <= _NAMED else f"{first} and {len(values) - _NAMED} more"
