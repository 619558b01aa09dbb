"""Savepoints of protected runs. Each records its process, so that savepoints of killed runs can be removed."""

from __future__ import annotations

import time
from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.lakehouse.bridge.outcomes import EngineError
from dbt.adapters.lakehouse.names import is_own_savepoint
from lakehouse_engine import api

logger = AdapterLogger("Lakehouse")

_DEAD_AFTER_MS = 24 * 3_600_000
"""Age after which a savepoint of a run on another machine counts as left behind; that process cannot be checked."""


def begin_run(invocation_id: str) -> str:
    """Comment of a run's savepoints until `end_run`; names the process."""
    return f"taken before a protected dbt run {api.work.begin_work(invocation_id).decode()}"


def end_run(invocation_id: str) -> None:
    """Mark the run's savepoints as no longer needed."""
    api.work.end_work(invocation_id)


def drop_left_savepoints(table: Any) -> None:
    """Delete savepoints of runs that ended without deleting them; they keep files from being cleaned. Failures are logged."""
    for one in table.savepoints():
        if is_own_savepoint(one.name) and _is_over(one):
            try:
                table.delete_savepoint(one.instant)
            except EngineError as error:
                logger.warning(f"The savepoint {one.name}, which a killed run left, stays: {error}")


def _is_over(savepoint: Any) -> bool:
    known = api.work.parse_signature(f"{{{savepoint.comment.partition('{')[2]}".encode())
    if api.work.is_of_this_machine(known):
        return not api.work.may_be_at_work(known)
    return bool(time.time() * 1000 - savepoint.created_at > _DEAD_AFTER_MS)
