"""Closes a pending instant to late task attempts.

An attempt can outlive its write: it pauses, and the driver runs the task elsewhere and commits. So the driver creates a file beside the
marker folder before it hands out tasks, and removes it before it counts or takes back what was written. An attempt checks this file before
it opens a data file and after it has closed it; it never creates the file.

It is outside the marker folder, in which Hudi takes every file for a marker when it rolls back a dead write.
"""

from __future__ import annotations

import socket

from lakehouse_engine.commit.concurrency.promised import PROMISED
from lakehouse_engine.errors import LateAttemptError
from lakehouse_engine.format.file_names import TEMP_FOLDER
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import discard, has_file

_OPEN = ".open"


def open_file(instant_time: str) -> str:
    """Path of that file, relative to the table."""
    return f"{TEMP_FOLDER}/{instant_time}{_OPEN}"


def opened_instant(name: str) -> str | None:
    """Instant of such a file, or of a promised completion, in the folder of temporary files; None for other files."""
    time = name.removesuffix(_OPEN).removesuffix(PROMISED)
    return time if time != name and time.isdigit() else None


def open_to_attempts(storage: Storage, instant_time: str) -> None:
    """Called by the driver once the instant is inflight, before its first task starts."""
    storage.create(open_file(instant_time), b"")


def close_to_attempts(storage: Storage, instant_time: str) -> None:
    """Called before markers are read: an attempt that begins later removes its own files."""
    discard(storage, open_file(instant_time))


def check_open(storage: Storage, instant_time: str) -> None:
    """Raise `LateAttemptError` if the instant accepts no more files, as far as this process sees the table."""
    if not has_file(storage, open_file(instant_time)):
        raise LateAttemptError(
            "the write that this task belongs to is not open where the task runs: it was completed or taken back meanwhile, or the executor"
            " does not see the directory that the driver writes to (then mount it under the same path on every worker)",
            instant=instant_time,
            table=storage.root,
            host=socket.gethostname(),
        )
