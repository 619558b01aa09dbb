"""File groups of a partition that is being built, whose delta commit is pending: writers log to them before the base files are there."""

from __future__ import annotations

from lakehouse_engine.format.file_names import is_log_file_name, parse_log_file, write_token
from lakehouse_engine.model.files import FileSlice, LogFile
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.view.table_state import TableState

FIRST_TOKEN = write_token(0, 0, 0)
"""Write token of the empty log that begins each file group (Hudi `HoodieTableMetadataUtil`)."""


def opened_groups(metadata: TableState, partition: str) -> list[FileSlice]:
    """Groups that a build began, with all logs since then; none if it has not come so far. The instant of each is that of the build."""
    logs: dict[str, list[LogFile]] = {}
    for log in listed_logs(metadata, partition):
        logs.setdefault(log.file_id, []).append(log)
    begun = {log.file_id: log.instant_time for found in logs.values() for log in found if _is_first(log)}
    pieces = ((FileGroupId(partition, file_id), begun[file_id], sorted(logs[file_id], key=_order)) for file_id in sorted(begun))
    return [FileSlice(group, instant, None, tuple(found)) for group, instant, found in pieces]


def listed_logs(metadata: TableState, partition: str) -> list[LogFile]:
    """All log files in a partition of the metadata table, also those that no completed delta commit wrote."""
    entries = metadata.storage.list(partition)
    return [parse_log_file(partition, entry.name, entry.size) for entry in entries if is_log_file_name(entry.name)]


def _is_first(log: LogFile) -> bool:
    return log.version == 1 and log.write_token == FIRST_TOKEN


def _order(log: LogFile) -> tuple[int, str]:
    return log.version, log.instant_time
