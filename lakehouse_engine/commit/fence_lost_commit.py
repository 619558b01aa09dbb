"""Rules out a commit that may still arrive in an object store, by an empty commit under its name.

A store may carry out a request that nothing waits for: its answer was lost, or its process died. The completed file is created with
If-None-Match, so only another object of that name keeps it out. If the write were taken back without one, the commit would arrive and name
deleted files. Readers ignore an empty commit; it stays on the timeline.

A write can be under way once it is closed to task attempts, just before its completed file is made (`publish`). Its files, which the empty
commit does not name, are removed by their markers like those of late attempts (`rollback.leftovers`).

A compaction cannot be empty, because its slices have logs. It is run again, and the files of the earlier run stay until it completes. A log
compaction can: its slices keep their logs, and are planned again.
"""

from __future__ import annotations

import logging

from lakehouse_engine.commit.concurrency.attempts import open_file
from lakehouse_engine.commit.concurrency.promised import promised_completion
from lakehouse_engine.commit.outcome import new_write_id
from lakehouse_engine.commit.participants import follow_all, take_back_all
from lakehouse_engine.errors import CommitOutcomeUnknownError, IllegalTransitionError, UnansweredError
from lakehouse_engine.model.commit_metadata import SCHEMA_KEY, WRITE_ID_KEY, HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import has_file, in_object_store
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

_WRITES = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT, Action.CLUSTERING)
"""Actions that can be complete without files. A compaction cannot: its slices have logs."""


def can_be_ruled_out(inflight: Instant, error: CommitOutcomeUnknownError) -> bool:
    """True for a write whose completed file a store did not answer for."""
    return inflight.action in _WRITES and isinstance(error.__cause__, UnansweredError)


def may_come(state: TableState, dead: Instant) -> bool:
    """True if the completed file of a write or log compaction of this engine, whose process died, may be under way."""
    return dead.action in (*_WRITES, Action.LOG_COMPACTION) and is_closed(state, dead)


def is_run_again(storage: Storage, inflight: Instant) -> bool:
    """True if an earlier run may still complete the instant, so that run's files stay until it is completed."""
    return in_object_store(storage) and inflight.action is Action.COMPACTION


def is_closed(state: TableState, dead: Instant) -> bool:
    """True if an inflight instant in an object store was closed to task attempts by its process, and may have been completed."""
    if not in_object_store(state.storage) or dead.state is not State.INFLIGHT:
        return False
    if state.format.completes_with_time and promised_completion(state.storage, dead.requested_time) is None:
        return False
    return not has_file(state.storage, open_file(dead.requested_time))


def rule_out(state: TableState, inflight: Instant, completed_at: str | None, operation: WriteOperationType | None = None) -> bool:
    """Complete a write as an empty one, so that its own commit cannot; False if it was completed before. `completed_at` is its commit's
    completion time.

    The table lock is held. `operation`: None if the inflight file names it; a plan's does not. Raises as `ActiveTimeline.complete`.
    """
    timeline = state.active
    last = state.timeline.completed().writes().last()
    schema = state.commit_metadata(last).schema_json if last is not None else None
    nothing = HoodieCommitMetadata(
        operation_type=operation or timeline.commit(inflight).operation_type,
        extra_metadata={**({SCHEMA_KEY: schema} if schema else {}), WRITE_ID_KEY: new_write_id()},
        partition_to_replace_file_ids={} if inflight.action.completes_as is Action.REPLACE_COMMIT else None,
    )
    try:
        timeline.complete(inflight, state.format.encode_commit(nothing), completed_at)
    except IllegalTransitionError:
        if timeline.load().completed().writes().contains(inflight.requested_time):
            return False
        raise
    take_back_all(state, [inflight.requested_time])
    follow_all(state, inflight, nothing)
    logger.warning("%s of %s is an empty commit now: its own may have been on its way, and cannot come", inflight, state.config.name)
    return True
