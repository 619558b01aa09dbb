"""Who is at work on a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Writer:
    """One that writes a table, or wants to.

    `instant` and `action`: what it has on the timeline, None for one that holds or waits for the lock without. `state`: `writing`,
    `running` (a planned compaction), `holding` the lock, `waiting` for it, or `dead`: the next write takes back what it left. `program`:
    `lakehouse` or `hudi`, `since`: UTC, `heartbeat_seconds`: age of its last sign of life. What is not known is None. `waits_for`: who
    holds the lock that it waits for.
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
