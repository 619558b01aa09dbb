"""The harness's end of a contender's process."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.cells import Peak
from benchmarks.memory import MemorySampler

REPOSITORY = Path(__file__).resolve().parents[1]
_STOP_TIMEOUT_S = 30
_CALL_TIMEOUT_S = 1800


class ContenderError(Exception):
    """A contender's call failed, or its process ended. The trace is in the contender's log."""


@dataclass(frozen=True)
class Answer:
    """What one call took and returned."""

    seconds: float
    jobs: int
    value: Any
    peak: Peak


class ContenderProcess:
    """One contender in a process of its own; use as a context manager."""

    def __init__(self, name: str, python: str, log: Path) -> None:
        self._name = name
        self._profile: Path | None = None
        self._log = log.open("ab")
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "TZ": "UTC", "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
        environment.pop("SPARK_HOME", None)
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=log.parent,
            env=environment,
            text=True,
        )

    def __enter__(self) -> ContenderProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def call(self, call: str, **arguments: Any) -> Answer:
        """Run one call and sample memory meanwhile. Raises `ContenderError`."""
        profile = None if self._profile is None else str(self._profile)
        with MemorySampler(self._process.pid) as sampler:
            reply = self._exchange({"call": call, "arguments": arguments, "profile": profile})
        if "error" in reply:
            self._log.write(reply["trace"].encode())
            self._log.flush()
            raise ContenderError(reply["error"])
        return Answer(reply["seconds"], reply["jobs"], reply["value"], sampler.peak)

    @contextmanager
    def profiled(self, file: Path) -> Iterator[None]:
        """Calls made inside leave a sampling profile in `file` (the last one's)."""
        self._profile = file
        try:
            yield
        finally:
            self._profile = None

    def _exchange(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise ContenderError(self._ended()) from error
        # A call that hangs ends with its process, and the other contenders still run.
        limit = threading.Timer(_CALL_TIMEOUT_S, self._process.kill)
        limit.start()
        line = self._process.stdout.readline()
        limit.cancel()
        if not line:
            raise ContenderError(self._ended())
        reply: dict[str, Any] = json.loads(line)
        return reply

    def _ended(self) -> str:
        return f"the process of {self._name} ended with code {self._process.wait()}; see {self._log.name}"
