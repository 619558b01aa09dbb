"""What a savepoint pins."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieSavepointPartitionMetadata:
    """`savepoint_data_file`: bare names of the base and log files of the latest slices of one partition."""

    partition_path: str
    savepoint_data_file: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HoodieSavepointMetadata:
    """The record of a savepoint; it stands under the instant time of the commit that it keeps. `savepointed_at` in epoch milliseconds."""

    savepointed_by: str
    savepointed_at: int
    comments: str
    partition_metadata: dict[str, HoodieSavepointPartitionMetadata] = field(default_factory=dict)
    version: int | None = 1

    def pinned_files(self) -> dict[str, frozenset[str]]:
        """File names that must stay, by partition path."""
        return {partition: frozenset(entry.savepoint_data_file) for partition, entry in self.partition_metadata.items()}
