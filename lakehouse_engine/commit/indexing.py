"""Completes index builds, and settles those whose process died. The table's lock is held. No participant follows one: it changes no file of
the table.
"""

from __future__ import annotations

import logging

from lakehouse_engine.commit.concurrency.executors import lock_file
from lakehouse_engine.commit.concurrency.promised import forget_promise
from lakehouse_engine.commit.table_clock import completion_time, table_clock
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.metadata_table.building.beside import conclude, is_written, take_back
from lakehouse_engine.metadata_table.building.plans import is_foreign, newest_contiguous, partitions_of, pending_builds, plan_of
from lakehouse_engine.model.instant import Instant, State
from lakehouse_engine.model.plans import HoodieIndexCommitMetadata
from lakehouse_engine.timeline.lock import find_lock_holder
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


def complete_build(state: TableState, inflight: Instant) -> TableState:
    """Name the partitions of a build as complete, then complete its instant; returns the state after that. Safe to repeat."""
    planned = partitions_of(state, inflight)
    state = conclude(state, inflight, table_clock(state))
    infos = plan_of(planned, newest_contiguous(state)).index_partition_infos
    outcome = HoodieIndexCommitMetadata(index_partition_infos=infos)
    state.active.complete(inflight, encode_plan(outcome), completion_time(state, inflight))
    if state.format.completes_with_time:
        forget_promise(state.storage, inflight.requested_time)
    return state.advance()


def settle_build(state: TableState, inflight: Instant) -> TableState:
    """Complete a build that no process runs any more, or return it to its plan; returns the state after that."""
    is_named = all(name in state.config.metadata_partitions for name in partitions_of(state, inflight))
    if is_named or is_written(state, inflight):
        return complete_build(state, inflight)
    take_back(state, inflight)
    return state.advance()


def settle_dead_builds(state: TableState) -> TableState:
    """Settle the builds of this engine whose process died. Those of Hudi are left to it."""
    for build in running_builds(state):
        if _is_dead(state, build):
            logger.warning("%s of %s is settled: the process that ran it died", build, state.config.name)
            state = settle_build(state, build)
    return state


def running_builds(state: TableState) -> list[Instant]:
    """Index builds that some process began."""
    return [one for one in pending_builds(state) if one.state is State.INFLIGHT]


def _is_dead(state: TableState, build: Instant) -> bool:
    return not is_foreign(state, build) and find_lock_holder(state.storage, lock_file(build.requested_time)) is None
