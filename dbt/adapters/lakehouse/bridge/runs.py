"""Savepoints of protected runs: they say whose they are, so that those of a run that was killed do not stay for ever."""

from __future__ import annotations

import time
from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.lakehouse.bridge.outcomes import EngineError
from dbt.adapters.lakehouse.names import is_own_savepoint
from lakehouse_engine import api

logger = AdapterLogger("Lakehouse")

_DEAD_AFTER_MS = 24 * 3_600_000
"""Of a run on another machine nothing is known but when its savepoint was taken."""


def begin_run(invocation_id: str) -> str:
    """The comment of a run's savepoints, until `end_run`: it says which process this is."""
    return f"taken before a protected dbt run {api.work.begin_work(invocation_id).decode()}"


def end_run(invocation_id: str) -> None:
    """The run needs its savepoints no more."""
    api.work.end_work(invocation_id)


def drop_left_savepoints(table: Any) -> None:
    """Drop those of runs that ended without dropping them, for they keep files from being cleaned. What cannot be dropped is logged."""
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
