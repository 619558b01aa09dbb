"""Resident memory of a process tree, sampled from /proc while an operation runs."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from benchmarks.cells import Peak

PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_INTERVAL_S = 0.1


@dataclass(frozen=True)
class ProcessInfo:
    """One process: `resident` in bytes."""

    pid: int
    parent: int
    name: str
    resident: int


def parse_stat(text: str) -> ProcessInfo:
    """A line of /proc/<pid>/stat. The name stands in parentheses and may itself hold spaces and parentheses."""
    head, _, tail = text.rpartition(")")
    pid, _, name = head.partition(" (")
    fields = tail.split()
    return ProcessInfo(int(pid), int(fields[1]), name, int(fields[21]) * _PAGE)


def peak_of(processes: list[ProcessInfo], root: int) -> Peak:
    """Memory of `root` and everything below it. Pages that processes share count once for each of them."""
    children: dict[int, list[ProcessInfo]] = {}
    by_pid = {process.pid: process for process in processes}
    for process in processes:
        children.setdefault(process.parent, []).append(process)
    if root not in by_pid:
        return Peak()
    tree, waiting = [], [by_pid[root]]
    while waiting:
        process = waiting.pop()
        tree.append(process)
        waiting.extend(children.get(process.pid, ()))
    jvm = sum(process.resident for process in tree if process.name == "java")
    return Peak(sum(process.resident for process in tree), by_pid[root].resident, jvm)


def processes() -> list[ProcessInfo]:
    """Every process that can be seen now. Empty where there is no /proc (memory is then reported as not measured)."""
    found = (_process(stat) for stat in PROC.glob("[0-9]*/stat"))
    return [process for process in found if process is not None]


def _process(stat: Path) -> ProcessInfo | None:
    """None when it ended between the listing and the read."""
    try:
        return parse_stat(stat.read_text(errors="replace"))
    except (FileNotFoundError, ProcessLookupError):
        return None


def anonymous(pid: int) -> int:
    """Bytes of a process that are no pages of mapped files, which the kernel takes back when it needs them; 0 when it has ended."""
    try:
        lines = (PROC / str(pid) / "status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), 0)


class MemorySampler:
    """Samples the tree under `root` until left; `peak` is then the largest value of each kind."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory-sampler", daemon=True)
        self.peak = Peak()

    def __enter__(self) -> MemorySampler:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self.peak = self.peak.merge(peak_of(processes(), self._root))
            if self._stop.wait(_INTERVAL_S):
                return
