"""Log files of table versions 8 and 9: their names, their order, and the slice that each belongs to (hudi-format II.3).

The grammar of a name is that of version 6 (`file_names.parse_log_file`). The time in it is not the slice's: at that time the delta commit
that wrote the file was requested.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from lakehouse_engine.model.files import LogFile

FIRST_VERSION = 1


def new_log_file(partition_path: str, file_id: str, requested_time: str, token: str, known: Iterable[LogFile] = ()) -> LogFile:
    """The file that the delta commit `requested_time` writes next to a group; `known` are files that it may have written before.

    Versions count from 1 for every delta commit and group.
    """
    beside = (log for log in known if (log.partition_path, log.file_id, written_by(log)) == (partition_path, file_id, requested_time))
    version = max((log.version + 1 for log in beside), default=FIRST_VERSION)
    return LogFile(partition_path, file_id, requested_time, version, token)


def written_by(log: LogFile) -> str:
    """Requested time of the delta commit that wrote the file."""
    return log.base_instant


def log_order(log: LogFile, completed_at: str) -> tuple[str, int, str, str]:
    """Place of a file in its slice; `completed_at` is the completion time of the delta commit that wrote it."""
    return completed_at, log.version, log.write_token or "", log.suffix


def slice_of_log(completed_at: str, opened: Sequence[str]) -> str | None:
    """The base instant of the slice that a log file is in: the last one that was requested before its delta commit completed.

    `opened`, ascending, are the requested times of what opens slices of the group: base files, and pending compactions of it. None for a
    file that is older than all of them: it opens a slice of its own.
    """
    place = bisect_right(opened, completed_at)
    return opened[place - 1] if place else None
