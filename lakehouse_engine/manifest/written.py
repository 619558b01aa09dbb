"""Converts commit metadata to what a write left and removed."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse_engine.format.file_names import is_base_file_name, is_log_file_name, parse_base_file, parse_log_file
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.live_files import WriteRecord, WrittenFile
from lakehouse_engine.model.write_stats import HoodieWriteStat


def write_record(
    instant_time: str, metadata: HoodieCommitMetadata, *, archived: bool = False, shown_at: str | None = None
) -> WriteRecord:
    """Record of a completed write. `archived`: the metadata is from the archived timeline, which drops log offsets. `shown_at` is the
    completion time, which determines the base files of its logs; None if log names do.
    """
    return WriteRecord(instant_time, tuple(_files(instant_time, metadata, archived, shown_at)), tuple(metadata.replaced_groups()))


def named_files(instant_time: str, metadata: HoodieCommitMetadata) -> frozenset[str] | None:
    """Names (not paths) of a completed write's base and log files; a name belongs to one partition.

    None for a write that does not list all of them: a stat without a path, or with a base file of another instant.
    """
    names: set[str] = set()
    for stat in metadata.write_stats():
        name = (stat.path or "").rpartition("/")[2]
        if not name or (is_base_file_name(name) and parse_base_file("", name).instant_time != instant_time):
            return None
        names.add(name)
    return frozenset(names)


def _files(
    instant_time: str, metadata: HoodieCommitMetadata, archived: bool, shown_at: str | None
) -> Iterator[tuple[FileGroupId, WrittenFile]]:
    checksums = metadata.log_checksums()
    for partition, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            file = _file(partition, instant_time, stat, archived, checksums.get(stat.path or ""), shown_at)
            if file is not None and stat.file_id:
                yield FileGroupId(partition, stat.file_id), file


def _file(
    partition: str, instant_time: str, stat: HoodieWriteStat, archived: bool, checksum: str | None, shown_at: str | None
) -> WrittenFile | None:
    if not stat.path:
        return None
    name = stat.path.rpartition("/")[2]
    if is_base_file_name(name):
        return WrittenFile(stat.path, instant_time, instant_time, size=stat.file_size_in_bytes)
    if not is_log_file_name(name):
        return None
    log = parse_log_file(partition, name)
    # Writers with checksums begin a log file with each write.
    start = None if archived and checksum is None else max(stat.log_offset or 0, 0)
    if log.is_cdc:
        return None
    return WrittenFile(stat.path, instant_time, shown_at or log.instant_time, True, stat.file_size_in_bytes, start, checksum)
