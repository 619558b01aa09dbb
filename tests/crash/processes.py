"""Starts writing processes and reads their logs."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from lakehouse_engine.actions.create import TableSpec, create_table
from lakehouse_engine.storage.local import LocalStorage
from tests.crash.writer import SCHEMA

ROOT = Path(__file__).parents[2]


def make(path: Path) -> LocalStorage:
    storage = LocalStorage(str(path))
    create_table(storage, TableSpec("killed", SCHEMA, ["id"], [], ["part"]))
    return storage


def start(mode: str, table: Path, log: Path, name: str, count: int, start_at: float = 0.0) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.crash.writer", mode, str(table), str(log), name, str(count), str(start_at)]
    with open(f"{log}.errors", "ab") as errors:
        return subprocess.Popen(command, cwd=ROOT, stderr=errors)


def wait_ready(log: Path, process: subprocess.Popen[bytes], times: int = 1) -> None:
    deadline = time.monotonic() + 60
    while not log.exists() or log.read_text().count("ready") < times:
        assert process.poll() is None, f"the writer ended with {process.returncode}: {errors_of(log)}"
        assert time.monotonic() < deadline, "the writer did not start"
        time.sleep(0.002)


def finish(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for the end of a writer, which must be a good one."""
    assert process.wait(120) == 0, errors_of(log)


def errors_of(log: Path) -> str:
    return Path(f"{log}.errors").read_text()[-2000:]


def acknowledged(log: Path) -> list[tuple[str, int]]:
    """(instant, number) of every acknowledged commit."""
    lines = [line.split() for line in log.read_text().splitlines() if line[:1].isdigit()] if log.exists() else []
    return [(line[0], int(line[1])) for line in lines]
