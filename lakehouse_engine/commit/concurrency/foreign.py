"""What writers have pending that make their files without the table lock: those of Hudi (docs/adr/0020), and in table versions 8 and 9
those of this engine (docs/adr/0064).
"""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse_engine.model.instant import Instant, State
from lakehouse_engine.options import LockOptions
from lakehouse_engine.timeline.heartbeats import HEARTBEATS, Heartbeat, find_heartbeat, live_heartbeat
from lakehouse_engine.timeline.locks.probe import storage_now_ms
from lakehouse_engine.timeline.locks.settings import lock_options
from lakehouse_engine.view.plans import is_plan
from lakehouse_engine.view.table_state import TableState


def live_writes(state: TableState, without_ours: bool = False) -> tuple[Heartbeat, ...]:
    """Heartbeats of the writers that are at work on the table beside the caller, who holds its lock, oldest instant first."""
    options = lock_options(state.config)
    found = (live_heartbeat(state.storage, instant.requested_time, options) for instant in _writes(state))
    return tuple(heartbeat for heartbeat in found if heartbeat is not None and not (without_ours and heartbeat.is_ours))


def refused_writes(state: TableState) -> tuple[Heartbeat, ...]:
    """Pending writes that Hudi has ended and not taken back yet, each as `left_by_hudi`, oldest instant first."""
    options = lock_options(state.config)
    ended = (instant for instant in _writes(state) if find_heartbeat(state.storage, instant.requested_time, options) is None)
    found = (left_by_hudi(state, instant, options) for instant in ended)
    return tuple(left for left in found if left is not None)


def left_by_hudi(state: TableState, instant: Instant, options: LockOptions) -> Heartbeat | None:
    """For a pending instant without a heartbeat: the age of the last state file by Hudi's writer, while Hudi may still take it back.

    None if this engine has to do that. Its own pending instants always have a heartbeat.
    """
    if not options.optimistic:
        return None
    files = (f"{state.format.timeline_folder}/{state.format.file_name(instant.at(step))}" for step in (State.REQUESTED, State.INFLIGHT))
    entries = [entry for file in files if (entry := state.storage.head(file)) is not None]
    if not entries:
        return None
    age = max(0, storage_now_ms(state.storage, HEARTBEATS) - max(entry.modified_ms for entry in entries))
    return Heartbeat(instant.requested_time, age, is_alive=False) if age <= options.tolerated_ms else None


def _writes(state: TableState) -> Iterator[Instant]:
    return (instant for instant in state.timeline.pending().writes() if not is_plan(state, instant))
