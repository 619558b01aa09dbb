"""Who is alive: heartbeats of writers, as Hudi's `HoodieHeartbeatClient` judges them.

A writer keeps a file of its instant's name in `.hoodie/.heartbeat`, from before the instant is requested until it is completed or taken
back, and writes it anew at every interval. It is dead when the file is not there, or was not written for so many intervals as may be
missed (`hoodie.client.heartbeat.*`: 60 s, twice). "Now" is the time of the table's storage, not of this machine.

The body, which Hudi leaves empty, says which process it is (`processes`); so the dead of one machine are known at once.
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
    """The path of an instant's heartbeat."""
    return f"{HEARTBEATS}/{instant_time}"


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A heartbeat as it was found. `age_ms`: since it was written last, in milliseconds; None of a process that is known to have ended.
    What follows is empty (0) for writers of Hudi.
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
        """Whether it is of a writer of this engine."""
        return self.pid > 0

    def __str__(self) -> str:
        who = f"process {self.pid} on {self.host} (thread {self.thread})" if self.is_ours else "a Hudi writer"
        if self.age_ms is None:
            return f"{who}, which has ended"
        seconds = f"{self.age_ms / 1000:.0f} s"
        return f"{who}, whose heartbeat is {seconds} old" if self.is_alive else f"{who}, which was seen last {seconds} ago"


def find_heartbeat(storage: Storage, instant_time: str, options: LockOptions) -> Heartbeat | None:
    """The heartbeat of the writer of an instant, dead or alive; None where there is none."""
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
    """The heartbeat of the writer that is at work on an instant; None where it is dead."""
    found = find_heartbeat(storage, instant_time, options)
    return found if found is not None and found.is_alive else None
