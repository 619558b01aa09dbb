"""Options of the metadata table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse_engine.options.base import Option, positive

METADATA_COMPACT_DELTA_COMMITS = Option(
    "hoodie.metadata.compact.max.delta.commits",
    positive,
    10,
    "Delta commits of the metadata table after which a write compacts it.",
)


@dataclass(frozen=True, slots=True)
class MetadataServiceOptions:
    """When the metadata table is compacted: after `delta_commits` since the last time."""

    delta_commits: int = METADATA_COMPACT_DELTA_COMMITS.default

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> MetadataServiceOptions:
        return cls(delta_commits=METADATA_COMPACT_DELTA_COMMITS.read(raw))
