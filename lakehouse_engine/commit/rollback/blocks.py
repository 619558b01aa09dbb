"""Rollback blocks: they take back what an instant logged to a shared file, which cannot be deleted (hudi-format 10.2)."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse_engine.commit.leftovers.log_owners import log_owners
from lakehouse_engine.format.file_names import is_log_file_name, parse_log_file
from lakehouse_engine.format.log.writer import render_rollback
from lakehouse_engine.model.files import LogFile
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.listings.listing import StorageLister

ROLLBACK_TOKEN = "1-0-1"
"""Write token of files with rollback blocks, in every Hudi version."""


def write_rollback_blocks(
    storage: Storage, group: FileGroupId, base_instant: str, rollback_time: str, targets: Sequence[str]
) -> tuple[str, int]:
    """Take back what the instants `targets` logged to a slice, in one new log file after its others; returns its path and size in bytes.

    If the same rollback has done so before (it is resumed), returns that file.
    """
    logs = slice_logs(storage, group, base_instant)
    wanted = {(rollback_time, target) for target in targets}
    for log in logs:
        if log.write_token == ROLLBACK_TOKEN and wanted <= log_owners(storage, log).takes_back:
            return log.path, log.size
    version = max((log.version for log in logs), default=0) + 1
    new = LogFile(group.partition_path, group.file_id, base_instant, version, ROLLBACK_TOKEN)
    content = b"".join(render_rollback(rollback_time, target) for target in targets)
    storage.create(new.path, content)
    return new.path, len(content)


def slice_logs(storage: Storage, group: FileGroupId, base_instant: str) -> list[LogFile]:
    """Current log files of a slice, without CDC files."""
    return [log for log in group_logs(storage, group) if log.instant_time == base_instant]


def group_logs(storage: Storage, group: FileGroupId) -> list[LogFile]:
    """Current log files of a group, without CDC files."""
    return [log for log in listed_logs(storage, group.partition_path) if log.file_id == group.file_id]


def listed_logs(storage: Storage, partition_path: str) -> list[LogFile]:
    """Current log files of a partition, without CDC files."""
    files = (
        parse_log_file(partition_path, entry.name, entry.size)
        for entry in StorageLister(storage).files(partition_path)
        if is_log_file_name(entry.name)
    )
    return [log for log in files if not log.is_cdc]
