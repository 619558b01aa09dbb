"""Fairness towards Hudi: a stream of quick writes must not refuse a slower Hudi writer for ever.

Of two writes to one file group the later commit is refused, which is always Hudi's, because Hudi checks. The refused writer starts again.
So if a Hudi write was overtaken and a newer one has not been yet, that one may finish: it gets twice the time between the two, about as
long as its writes take.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from lakehouse_engine.commit.concurrency.foreign import live_writes, refused_writes
from lakehouse_engine.commit.table_clock import table_clock
from lakehouse_engine.errors import FormatError
from lakehouse_engine.model.commit_metadata import WRITER_KEY
from lakehouse_engine.model.instant import Action, Instant, parse_instant_time
from lakehouse_engine.model.order import is_later, latest
from lakehouse_engine.model.plans import HoodieRollbackMetadata
from lakehouse_engine.timeline.locks.settings import lock_options
from lakehouse_engine.view.table_state import TableState


def turn_of_hudi(state: TableState) -> float:
    """Seconds that a write should leave to Hudi's writers now; 0 if it may go on."""
    options = lock_options(state.config)
    at_work = [beat.instant_time for beat in live_writes(state)] if options.optimistic else []
    refused = [left.instant_time for left in refused_writes(state)] if at_work else []
    overtaken = latest((*at_work[:-1], *refused, *_taken_back(state))) if at_work else ""
    if not overtaken or not is_later(at_work[-1], overtaken):
        return 0.0
    hopeful = at_work[-1]
    since = list(state.timeline.completed().writes().newer_than(overtaken))
    if not since or any(not state.order.is_visible(one.requested_time, hopeful) or not _is_ours(state, one) for one in since):
        return 0.0
    took = _moment(hopeful) - _moment(overtaken)
    if took > timedelta(milliseconds=options.tolerated_ms):
        return 0.0
    passed = _moment(table_clock(state).next(state.timeline)) - _moment(hopeful)
    return max(0.0, (2 * took - passed).total_seconds())


def _taken_back(state: TableState) -> tuple[str, ...]:
    """Instant that the newest rollback took back. Hudi 1.2.0 removes the heartbeat of a refused write, so the next write removes its
    traces.
    """
    last = state.timeline.completed().filter(lambda instant: instant.action is Action.ROLLBACK).last()
    if last is None:
        return ()
    try:
        done = state.active.plan(HoodieRollbackMetadata, last)
    except FormatError:
        return ()  # only fairness depends on it
    return tuple(done.commits_rollback)


def _is_ours(state: TableState, instant: Instant) -> bool:
    return WRITER_KEY in state.commit_metadata(instant).extra_metadata


def _moment(instant_time: str) -> datetime:
    return parse_instant_time(instant_time)
