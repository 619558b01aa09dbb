"""What a process of a history says of itself: one JSON object a line, in a file of its own.

A line is one call of the kernel, so a killed process leaves whole lines, and what it had said before is there. Times are those of
`time.monotonic`, which all processes of the machine share.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

Json = dict[str, Any]


class Log:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def tell(self, **fields: Any) -> None:
        os.write(self._file, f"{json.dumps(fields)}\n".encode())


def entries(path: Path) -> Iterator[Json]:
    """What was said, oldest first."""
    if path.exists():
        yield from (json.loads(line) for line in path.read_bytes().split(b"\n")[:-1])


class Outcome(Enum):
    ACKNOWLEDGED = "acknowledged"
    NOTHING = "nothing"
    """Acknowledged, without a commit: there was nothing to change."""
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """Its process was killed, or was told that nobody knows."""


@dataclass(slots=True)
class Operation:
    """One call that writes. `kind` and `what` are the workload's; `seen` is the newest commit before it began.

    `until` is the newest commit after it ended, of operations that had nothing to change.
    """

    name: str
    kind: str
    what: Json
    began: float
    seen: str
    outcome: Outcome = Outcome.UNKNOWN
    ended: float = float("inf")
    instant: str = ""
    until: str = ""
    error: str = ""


@dataclass(slots=True)
class Told:
    """All that the processes of a history said."""

    operations: dict[str, Operation] = field(default_factory=dict)
    services: list[Json] = field(default_factory=list)
    readings: list[Json] = field(default_factory=list)
    failures: list[Json] = field(default_factory=list)
    """Refusals of readings, and errors that ended a process."""
    given_up: int = 0
    cpu: dict[str, float] = field(default_factory=dict)
    """Seconds of processor time of processes that came to their end, by name."""


def told_by(folder: Path) -> Told:
    told = Told()
    for path in sorted(folder.glob("*.log")):
        for entry in entries(path):
            _sort_in(told, entry)
            if "cpu" in entry:
                told.cpu[path.stem] = entry["cpu"]
    return told


def _sort_in(told: Told, entry: Json) -> None:
    if "began_operation" in entry:
        told.operations[entry["began_operation"]] = Operation(
            entry["began_operation"], entry["kind"], entry["what"], entry["at"], entry["seen"]
        )
    elif "operation" in entry:
        done = told.operations[entry["operation"]]
        done.outcome, done.ended = Outcome(entry["outcome"]), entry["at"]
        done.instant, done.until, done.error = entry.get("instant", ""), entry.get("until", ""), entry.get("error", "")
    elif "service" in entry:
        told.services.append(entry)
    elif "reading" in entry:
        told.readings.append(entry)
    elif "failed" in entry:
        told.failures.append(entry)
    elif "given_up" in entry:
        told.given_up += 1
