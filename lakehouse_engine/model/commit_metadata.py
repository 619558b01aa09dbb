"""Metadata of a completed (or inflight) write on the timeline."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType

SCHEMA_KEY = "schema"
LOG_CHECKSUMS_KEY = "lakehouse.log.checksums"
WRITER_KEY = "lakehouse.writer"
"""Process and host that made the commit, in the extra metadata of every commit of this engine."""
WRITE_ID_KEY = "lakehouse.write.id"
"""Identifies the write of a commit: given by the caller, or generated; in the extra metadata of every commit of this engine."""
ROUTE_KEY = "lakehouse.write.route"
"""How a write that looked up keys was planned (`write.routes.Route`), in the extra metadata of its commit."""
INDEX_KEY = "lakehouse.write.index"
"""The index by which a write looked up keys, and why (`index.choice`), in the extra metadata of its commit."""
_CHECKSUM = re.compile("[0-9a-f]{8}")


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

    def replaced_groups(self) -> list[FileGroupId]:
        """Groups that a replace commit removes from the table; [] for any other commit."""
        replaced = self.partition_to_replace_file_ids or {}
        return [FileGroupId(partition, file_id) for partition, file_ids in replaced.items() for file_id in file_ids]

    @property
    def schema_json(self) -> str | None:
        """Avro schema text in the commit; may have meta columns (Hudi 0.15 delete_partition)."""
        return self.extra_metadata.get(SCHEMA_KEY) or None

    def log_checksums(self) -> dict[str, str]:
        """CRC-32, in 8 hex digits, of what the commit wrote to each log file, by path; {} if the commit has none."""
        paths, text = _log_paths(self.write_stats()), self.extra_metadata.get(LOG_CHECKSUMS_KEY) or ""
        found = text.split(",")
        if len(found) != len(paths) or not all(map(_CHECKSUM.fullmatch, found)):
            return {}
        return dict(zip(paths, found, strict=True))


def checksum_metadata(stats: Iterable[HoodieWriteStat]) -> dict[str, str]:
    """Extra metadata of a commit with these files: the checksums of its log files, in the order of their paths."""
    checksums = {str(stat.path): stat.checksum for stat in stats if stat.checksum is not None}
    return {LOG_CHECKSUMS_KEY: ",".join(checksums[path] for path in sorted(checksums))} if checksums else {}


def _log_paths(stats: Iterable[HoodieWriteStat]) -> list[str]:
    return sorted(stat.path for stat in stats if stat.path and ".log." in stat.path.rpartition("/")[2])
