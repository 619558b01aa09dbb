"""Memory and processor seconds of this process and all below it. No third-party imports."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from benchmarks.memory import ProcessInfo, anonymous, processes


def cpu_seconds() -> float:
    """Seconds of all processors that this process and those below it have used."""
    tick = os.sysconf("SC_CLK_TCK")
    return sum(_used(one.pid) for one in tree()) / tick


def _used(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(field) for field in fields[11:15])


def tree() -> list[ProcessInfo]:
    """This process and all below it."""
    found, below, grown = processes(), {os.getpid()}, True
    while grown:
        more = {one.pid for one in found if one.parent in below} - below
        below |= more
        grown = bool(more)
    return [one for one in found if one.pid in below]


class Peaks:
    """Peak memory, in bytes and without mapped files, of this process, of the largest Python process below it, and of the JVM."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.before = self.driver = self.worker = self.jvm = 0

    def __enter__(self) -> Peaks:
        self.before = anonymous(os.getpid())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            for one in tree():
                if one.pid == os.getpid():
                    self.driver = max(self.driver, anonymous(one.pid))
                elif one.name.startswith("python"):
                    self.worker = max(self.worker, anonymous(one.pid))
                elif one.name == "java":
                    self.jvm = max(self.jvm, anonymous(one.pid))
