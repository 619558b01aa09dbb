"""Whether a pending instant still takes files of task attempts.

An attempt can outlive its write: it pauses, the driver runs the task again elsewhere and commits. So the driver opens the instant with a
file beside its marker folder before it hands out tasks, and removes that file before it counts what was written, or takes it back. Attempts
look for it before they open a data file and after they have closed it; they never make it, and so never open an instant again.

It is not in the marker folder, in which Hudi takes every file for a marker when it rolls a dead write back.
"""

from __future__ import annotations

import socket

from lakehouse_engine.commit.beside.promised import PROMISED
from lakehouse_engine.errors import LateAttemptError
from lakehouse_engine.format.file_names import TEMP_FOLDER
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import discard, has_file

_OPEN = ".open"


def open_file(instant_time: str) -> str:
    """The path (relative to the table) of the file that says so."""
    return f"{TEMP_FOLDER}/{instant_time}{_OPEN}"


def opened_instant(name: str) -> str | None:
    """The instant that a file in the folder of temporary files opens, or promises to complete; None where it is another file."""
    time = name.removesuffix(_OPEN).removesuffix(PROMISED)
    return time if time != name and time.isdigit() else None


def open_to_attempts(storage: Storage, instant_time: str) -> None:
    """To be called by the driver, once the instant is inflight and before its first task is handed out."""
    storage.create(open_file(instant_time), b"")


def close_to_attempts(storage: Storage, instant_time: str) -> None:
    """To be called before the markers are read: what an attempt begins after that it removes itself."""
    discard(storage, open_file(instant_time))


def check_open(storage: Storage, instant_time: str) -> None:
    """Raise `LateAttemptError` where the instant takes no files any more, as far as this process sees the table."""
    if not has_file(storage, open_file(instant_time)):
        raise LateAttemptError(
            "the write that this task belongs to is not open where the task runs: it was completed or taken back meanwhile, or the executor"
            " does not see the directory that the driver writes to (then mount it under the same path on every worker)",
            instant=instant_time,
            table=storage.root,
            host=socket.gethostname(),
        )
