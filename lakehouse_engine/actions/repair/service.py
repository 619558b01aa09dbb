"""`repair`: bring a table to order. Much of it is done before every change of the table; here it is asked for."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse_engine.actions.locked import locked_table
from lakehouse_engine.actions.repair.disorder import REPAIRED, Disorder, DisorderKind, RepairReport
from lakehouse_engine.actions.repair.future import future
from lakehouse_engine.actions.repair.leftovers import leftover_markers, orphans, temporary_files
from lakehouse_engine.actions.repair.pending import pending
from lakehouse_engine.actions.table_clock import accept_future as accept
from lakehouse_engine.actions.unpublished import all_dead_temporaries, remove_temporaries
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.lock import lock_holder
from lakehouse_engine.view.table_state import TableState


def repair(storage: Storage, *, lock_timeout_ms: int, dry_run: bool = False, accept_future: bool = False) -> RepairReport:
    """Take dead writes back, finish rollbacks and restores that were cut off, remove what killed processes left.

    `accept_future`: let the table go on from instants that a wrong clock put into the future.
    Raises as `locked_table`. A dry run takes no lock, and waits for nobody: what may belong to whoever holds the lock is left.
    """
    before = list(disorders(TableState.load(storage), lock_holder(storage)))
    kinds = (*REPAIRED, DisorderKind.FUTURE_INSTANT) if accept_future else REPAIRED
    if dry_run:
        wanted = tuple(one for one in before if one.kind in kinds)
        left = tuple(one for one in before if one.kind not in kinds)
        return RepairReport(table=storage.root, repaired=wanted, left=left, dry_run=True)
    if accept_future:
        accept(storage, lock_timeout_ms=lock_timeout_ms)
    with locked_table(storage, lock_timeout_ms=lock_timeout_ms) as state:
        remove_temporaries(storage, all_dead_temporaries(storage))
        after = list(disorders(state.refresh(), None))
    remaining = {(one.kind, one.what) for one in after}
    repaired = tuple(one for one in before if one.kind in kinds and (one.kind, one.what) not in remaining)
    return RepairReport(table=storage.root, repaired=repaired, left=tuple(after))


def disorders(state: TableState, holder: str | None) -> Iterator[Disorder]:
    """What is pending, damaged or left over; `holder`: who holds the table lock and may be at work on it.

    Every directory of the table is listed, for files that no instant accounts for.
    """
    for instant in state.timeline.pending():
        yield pending(state, instant, holder)
    yield from leftover_markers(state, holder)
    yield from temporary_files(state)
    yield from orphans(state)
    yield from future(state)
