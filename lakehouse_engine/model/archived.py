"""Entries of the archived timeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lakehouse_engine.compat import StrEnum
from lakehouse_engine.model.instant import Instant


class HistoryForm(StrEnum):
    """How archived instants are stored: in log files of Avro blocks, or in a tree of Parquet files with manifests."""

    ARCHIVE = "archive"
    LSM = "lsm"


@dataclass(frozen=True, slots=True)
class ArchivedEntry:
    """One state of an archived instant, from its state file.

    `transition_time` is when it entered that state (`yyyyMMddHHmmssSSS` in the table's zone; None in old archives). `record` has the
    members of Hudi's `HoodieArchivedMetaEntry` under their Avro names.
    """

    instant: Instant
    transition_time: str | None = None
    record: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
