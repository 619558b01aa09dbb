"""The record of a completed (or inflight) write on the timeline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType

SCHEMA_KEY = "schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieCommitMetadata:
    """Commit, delta commit and replace commit metadata (Hudi `HoodieCommitMetadata`, `HoodieReplaceCommitMetadata`).

    Keys of `partition_to_write_stats` and `partition_to_replace_file_ids` are partition paths ("" when not partitioned).
    `partition_to_replace_file_ids` is None except for replace commits. `extra_metadata["schema"]` is the table's Avro schema
    of user columns. `extra` keeps unknown members so that foreign records print back unchanged.
    """

    partition_to_write_stats: dict[str, tuple[HoodieWriteStat, ...]] = field(default_factory=dict)
    operation_type: WriteOperationType | None = None
    compacted: bool = False
    extra_metadata: dict[str, str | None] = field(default_factory=dict)
    partition_to_replace_file_ids: dict[str, tuple[str, ...]] | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def write_stats(self) -> Iterator[HoodieWriteStat]:
        for stats in self.partition_to_write_stats.values():
            yield from stats

    @property
    def schema_json(self) -> str | None:
        """The Avro schema text carried by the commit; may hold meta columns (Hudi 0.15 delete_partition)."""
        return self.extra_metadata.get(SCHEMA_KEY) or None
