"""Ensures that only one executor at a time runs a plan without the table lock.

An executor of this engine locks the plan; the kernel releases the lock when the process dies. Hudi's executors have no such lock: a plan
that is inflight and never had one is left alone for some time, then taken over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lakehouse_engine.commit.concurrency.executors import executor_lock, lock_file
from lakehouse_engine.format.file_names import marker_folder
from lakehouse_engine.model.instant import Instant, State
from lakehouse_engine.services.executor.service import Kind, Lease
from lakehouse_engine.timeline.heartbeats import HEARTBEATS
from lakehouse_engine.timeline.locks.probe import storage_now_ms
from lakehouse_engine.view.table_state import TableState


@contextmanager
def leased(kind: Kind, lease: Lease, state: TableState, instant: Instant, timeout_ms: int) -> Iterator[None]:
    """Keep other executors away from a pending plan.

    Raises the kind's error while another program may be running it, `LockTimeoutError` while another executor does.
    """
    _check_not_foreign(kind, lease, state, instant)
    time = instant.requested_time
    with executor_lock(state.storage, time, timeout_ms):
        yield
        # An executor that waits for the lock then finds this file replaced, and nothing left to do.
        state.storage.delete(lock_file(time))


def _check_not_foreign(kind: Kind, lease: Lease, state: TableState, instant: Instant) -> None:
    """Raise the kind's error if another program may run the plan. Call this before locking: a lock file means that an executor of this
    engine began it.
    """
    if instant.state is not State.INFLIGHT or state.storage.head(lock_file(instant.requested_time)) is not None:
        return
    inflight = state.storage.head(f"{state.format.timeline_folder}/{state.format.file_name(instant)}")
    marks = state.storage.walk(marker_folder(instant.requested_time))
    active = [entry.modified_ms for entry in (inflight, *marks) if entry is not None]
    # Time of the storage: if this machine's clock is ahead, a running plan would be taken over, and its files deleted.
    age = (storage_now_ms(state.storage, HEARTBEATS) - max(active, default=0)) / 1000
    if age < lease.seconds:
        raise kind.error(
            f"another program began this {kind.name} {age:.0f} s ago and may still run it; it is taken over after"
            f" {lease.option}={lease.seconds}",
            instant=instant,
            table=state.config.name,
        )
