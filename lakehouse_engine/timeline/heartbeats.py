"""Heartbeats of writers, judged like Hudi's `HoodieHeartbeatClient`.

A writer keeps a file named by its instant in `.hoodie/.heartbeat`, from before the instant is requested until it is completed or taken
back, and rewrites it at every interval. It is dead if the file is absent, or was not written for the tolerated number of intervals
(`hoodie.client.heartbeat.*`: 60 s, twice). "Now" is the storage's time, not this machine's.

The body, which Hudi leaves empty, names the process (`processes`), so dead processes of the same machine are known at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse_engine.errors import StoredFileNotFoundError
from lakehouse_engine.options import LockOptions
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.locks.probe import storage_now_ms
from lakehouse_engine.timeline.processes import may_be_at_work, parse_signature, pid_of

HEARTBEATS = ".hoodie/.heartbeat"


def heartbeat_file(instant_time: str) -> str:
    """Path of an instant's heartbeat."""
    return f"{HEARTBEATS}/{instant_time}"


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A heartbeat as found. `age_ms`: milliseconds since it was last written; None if its process is known to have ended. The other fields
    are empty (0) for Hudi's writers.
    """

    instant_time: str
    age_ms: int | None
    is_alive: bool
    host: str = ""
    pid: int = 0
    thread: str = ""
    since: str = ""

    @property
    def is_ours(self) -> bool:
        """True for a writer of this engine."""
        return self.pid > 0

    def __str__(self) -> str:
        who = f"process {self.pid} on {self.host} (thread {self.thread})" if self.is_ours else "a Hudi writer"
        if self.age_ms is None:
            return f"{who}, which has ended"
        seconds = f"{self.age_ms / 1000:.0f} s"
        return f"{who}, whose heartbeat is {seconds} old" if self.is_alive else f"{who}, which was seen last {seconds} ago"


def find_heartbeat(storage: Storage, instant_time: str, options: LockOptions) -> Heartbeat | None:
    """Heartbeat of an instant's writer, dead or alive; None without one."""
    path = heartbeat_file(instant_time)
    entry = storage.head(path)
    if entry is None:
        return None
    try:
        body = storage.read(path)
    except StoredFileNotFoundError:
        return None
    known = parse_signature(body)
    age = max(0, storage_now_ms(storage, HEARTBEATS) - entry.modified_ms) if may_be_at_work(known) else None
    return Heartbeat(
        instant_time,
        age,
        age is not None and age <= options.tolerated_ms,
        str(known.get("host", "")),
        pid_of(known),
        str(known.get("thread", "")),
        str(known.get("since", "")),
    )


def live_heartbeat(storage: Storage, instant_time: str, options: LockOptions) -> Heartbeat | None:
    """Heartbeat of the writer at work on an instant; None if it is dead."""
    found = find_heartbeat(storage, instant_time, options)
    return found if found is not None and found.is_alive else None
