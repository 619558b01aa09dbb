"""Changes of the partition `files`: which files exist, and their sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakehouse_engine.format.metadata_table.files import FILE_ENTRIES, files_payloads
from lakehouse_engine.format.metadata_table.keys import ALL_PARTITIONS, partition_identifier
from lakehouse_engine.format.metadata_table.merging import Records
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.plans import HoodieCleanMetadata, HoodieRestoreMetadata, HoodieRollbackMetadata
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from lakehouse_engine.storage.base import Storage


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Files that an action made (`added`: sizes in bytes by name) and removed, by partition path, and partitions that it removed."""

    added: Mapping[str, Mapping[str, int]]
    removed: Mapping[str, tuple[str, ...]]
    gone: tuple[str, ...] = ()

    def records(self) -> Records:
        """Records of `files`. The one of all partitions is always there, so that the metadata table knows every action."""
        paths = sorted({*self.added, *self.removed})
        keys = pa.array([ALL_PARTITIONS, *map(partition_identifier, paths)], pa.string())
        rows = [*self._partition_entries(), *self._file_entries(paths)]
        entries = pa.Table.from_arrays([pa.array(column, one.type) for column, one in zip(_columns(rows), FILE_ENTRIES, strict=True)],
                                       schema=FILE_ENTRIES)
        return Records(keys.cast(pa.binary()), files_payloads(keys, entries))

    def _partition_entries(self) -> Iterator[tuple[int, str, int, bool]]:
        for path in sorted(self.added):
            yield 0, partition_identifier(path), 0, False
        for path in sorted(set(self.gone) - self.added.keys()):
            yield 0, partition_identifier(path), 0, True

    def _file_entries(self, paths: Iterable[str]) -> Iterator[tuple[int, str, int, bool]]:
        for number, path in enumerate(paths, start=1):
            for name, size in sorted(self.added.get(path, {}).items()):
                yield number, name, size, False
            for name in sorted(self.removed.get(path, ())):
                yield number, name, 0, True


def _columns(rows: list[tuple[int, str, int, bool]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in FILE_ENTRIES]


def written_files(metadata: HoodieCommitMetadata) -> FileChanges:
    """Files that a write, a compaction or a clustering made. Replaced ones stay until they are cleaned."""
    added: dict[str, dict[str, int]] = {}
    if metadata.operation_type is not WriteOperationType.DELETE_PARTITION:
        for path, stats in metadata.partition_to_write_stats.items():
            added[path] = {name: size for stat in stats for name, size in _sizes(stat)}
    return FileChanges(added, {})


def _sizes(stat: HoodieWriteStat) -> Iterator[tuple[str, int]]:
    if stat.path:
        yield stat.path.rpartition("/")[2], stat.file_size_in_bytes
    for path, size in (stat.cdc_stats or {}).items():
        yield path.rpartition("/")[2], size


def cleaned_files(metadata: HoodieCleanMetadata) -> FileChanges:
    """Files that a clean removed."""
    parts = metadata.partition_metadata.values()
    removed = {part.partition_path: tuple(path.rpartition("/")[2] for path in part.success_delete_files) for part in parts}
    return FileChanges({}, removed, tuple(part.partition_path for part in parts if part.is_partition_deleted))


def rolled_back_files(storage: Storage, metadata: HoodieRollbackMetadata) -> FileChanges:
    """Log files that a rollback left or made: those with its blocks, and those of the write that they take back (version 6 only)."""
    added: dict[str, dict[str, int]] = {}
    for path, part in metadata.partition_metadata.items():
        logs = {**(part.log_files_from_failed_commit or {}), **(part.rollback_log_files or {})}
        names = dict.fromkeys(log.rpartition("/")[2] for log in logs)
        found = {name: entry.size for name in names if (entry := storage.head(f"{path}/{name}" if path else name)) is not None}
        if found:
            added[path] = found
    return FileChanges(added, {})


def restored_files(storage: Storage, metadata: HoodieRestoreMetadata) -> FileChanges:
    """The same for a restore, which is a rollback of each later instant."""
    added: dict[str, dict[str, int]] = {}
    for rollbacks in (metadata.hoodie_restore_metadata or {}).values():
        for one in rollbacks:
            if one is not None:
                for path, files in rolled_back_files(storage, one).added.items():
                    added.setdefault(path, {}).update(files)
    return FileChanges(added, {})
