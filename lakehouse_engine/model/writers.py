"""Processes at work on a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Writer:
    """A process that writes a table, or waits to.

    `instant` and `action`: its instant on the timeline; None if it only holds or waits for the lock. `state`: `writing`, `running` (a
    planned compaction), `holding` the lock, `waiting` for it, or `dead`: the next write takes back what it left. `program`: `lakehouse` or
    `hudi`; `since`: UTC; `heartbeat_seconds`: age of its last heartbeat. Unknown values are None. `waits_for`: holder of the lock that it
    waits for.
    """

    state: str
    instant: str | None = None
    action: str | None = None
    program: str | None = None
    host: str | None = None
    pid: int | None = None
    thread: str | None = None
    since: str | None = None
    heartbeat_seconds: float | None = None
    waits_for: str | None = None
