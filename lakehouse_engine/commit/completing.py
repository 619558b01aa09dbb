"""Completes the instants of actions that are not writes: clean, rollback, restore, savepoint."""

from __future__ import annotations

import logging

from lakehouse_engine.commit.concurrency.promised import forget_promise
from lakehouse_engine.commit.participants import finish_all, follow_all
from lakehouse_engine.commit.table_clock import completion_time
from lakehouse_engine.errors import StorageError
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.outcomes import Outcome
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


def complete(state: TableState, inflight: Instant, outcome: Outcome, content: bytes | None = None) -> Instant:
    """Complete an instant at the table's time after its participants have followed, and remove the promised time. The table lock is held.

    `content`: the encoded outcome, if the table's format does not encode it. Raises as `ActiveTimeline.complete`, and what participants
    raise; nothing once the instant is completed.
    """
    follow_all(state, inflight, outcome)
    if content is None:
        content = state.format.encode_commit(outcome) if isinstance(outcome, HoodieCommitMetadata) else encode_plan(outcome)
    completed = state.active.complete(inflight, content, completion_time(state, inflight))
    finish_all(state, completed)
    if state.format.completes_with_time:
        try:
            forget_promise(state.storage, inflight.requested_time)
        except StorageError as error:
            logger.warning("%s is completed, but its promised time could not be removed (%s); the next write does", completed, error)
    return completed
