"""Processes of Spark that tests start on this machine, and end."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyspark

HOST = "127.0.0.1"
SPARK_HOME = Path(pyspark.__file__).parent
PATIENCE = 90
_DIE_WITH_PARENT = 1


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        return int(taken.getsockname()[1])


def wait_for(what: str, there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not there():
        assert time.monotonic() < deadline, f"{what}: not in {PATIENCE} s"
        time.sleep(0.05)


def die_with_parent() -> None:
    """For a process that is about to begin."""
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started, which is in its group."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(PATIENCE)


def children(pid: int) -> list[tuple[int, str]]:
    """Processes that this one started and that have not ended, with their command lines."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid:
                found.append((int(place.name), (place / "cmdline").read_text().replace("\0", " ")))
    return found
