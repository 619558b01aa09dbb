"""Starts writing processes and reads their logs."""

from __future__ import annotations

import subprocess
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.write.create import TableSpec, create_table
from tests.crash.writer import SCHEMA, main
from tests.support.forking import forkserver

ROOT = Path(__file__).parents[2]


def make(path: Path, table_type: str = "cow") -> LocalStorage:
    storage = LocalStorage(str(path))
    create_table(storage, TableSpec("killed", SCHEMA, ["id"], [], ["part"], table_type))
    return storage


def forked(table: Path, log: Path, seed: int) -> BaseProcess:
    """A writer in mode `mixed`, forked off a process that has imported everything: it is at work after some milliseconds."""
    process = forkserver().Process(target=main, args=("mixed", str(table), str(log), "w", 10**6, 0.0, seed))
    process.start()
    return process


def start(mode: str, table: Path, log: Path, name: str, count: int, start_at: float = 0.0) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.crash.writer", mode, str(table), str(log), name, str(count), str(start_at)]
    with open(f"{log}.errors", "ab") as errors:
        return subprocess.Popen(command, cwd=ROOT, stderr=errors)


def wait_ready(log: Path, process: subprocess.Popen[bytes] | BaseProcess, times: int = 1) -> None:
    deadline = time.monotonic() + 60
    while not log.exists() or log.read_text().count("ready") < times:
        ended = process.poll() if isinstance(process, subprocess.Popen) else process.exitcode
        assert ended is None, f"the writer ended with {ended}: {errors_of(log)}"
        assert time.monotonic() < deadline, "the writer did not start"
        time.sleep(0.002)


def finish(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for the end of a writer, which must be a good one."""
    assert process.wait(120) == 0, errors_of(log)


def errors_of(log: Path) -> str:
    errors = Path(f"{log}.errors")
    return errors.read_text()[-2000:] if errors.exists() else ""


def acknowledged(log: Path) -> list[tuple[str, int]]:
    """(instant, number) of every acknowledged commit."""
    lines = [line.split() for line in log.read_text().splitlines() if line[:1].isdigit()] if log.exists() else []
    return [(line[0], int(line[1])) for line in lines]
