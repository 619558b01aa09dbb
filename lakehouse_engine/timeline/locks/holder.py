"""Identity of a lock's holder, for waiting processes, and whether its process exists."""

from __future__ import annotations

import json
import os
import socket
import threading
from dataclasses import asdict, dataclass
from datetime import datetime

from lakehouse_engine.compat import UTC


@dataclass(frozen=True, slots=True)
class Holder:
    """Holder of a lock, or a process waiting for it; `since` in UTC. A Hudi writer gives only its thread, its time, or nothing."""

    thread: str = ""
    since: str = ""
    pid: int | None = None
    host: str | None = None
    is_hudi: bool = False

    def __str__(self) -> str:
        if self.pid is not None:
            return f"process {self.pid} on {self.host} (thread {self.thread}) since {self.since}"
        if self.is_hudi:
            return f"a Hudi writer (thread {self.thread}) since {self.since}" if self.thread else "a Hudi writer that has not named itself"
        return "a process that has not named itself"


def is_running(pid: int) -> bool:
    """True if this machine has a process with that number that can still act.

    A killed process keeps its number until its parent has collected it, which may be never.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return process_fields(pid)[:1] not in (["Z"], ["X"])


def process_fields(pid: int) -> list[str]:
    """Kernel's line for a process in `/proc/<pid>/stat`, from its state on; empty without such a file."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode().split()
    except OSError:
        return []


def describe_self() -> str:
    """JSON: process id, host, thread and time."""
    since = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    own = Holder(threading.current_thread().name, since, os.getpid(), socket.gethostname())
    return json.dumps({key: value for key, value in asdict(own).items() if key != "is_hudi"})


def parse_holder(text: str) -> Holder:
    """Holder that wrote `text`; an unknown one if it says nothing."""
    try:
        known = json.loads(text)
        return Holder(str(known["thread"]), str(known["since"]), int(known["pid"]), str(known["host"]))
    except (ValueError, KeyError, TypeError):
        return Holder()


def describe(text: str) -> str:
    """Holder that wrote `text`, for a message."""
    return str(parse_holder(text))
