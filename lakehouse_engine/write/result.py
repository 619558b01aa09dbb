"""Counts for the caller, from the commit metadata."""

from __future__ import annotations

from lakehouse_engine.model.commit_metadata import INDEX_KEY, ROUTE_KEY, HoodieCommitMetadata
from lakehouse_engine.model.write_stats import WriteOperationType, WriteResult
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.view.table_state import TableState

_NEW_GROUP = "null"


def result_of(
    state: TableState,
    instant: str,
    metadata: HoodieCommitMetadata,
    *,
    dropped: int = 0,
    moves: int = 0,
    was_written: bool = False,
    builds_index: bool = False,
) -> WriteResult:
    """What a commit did. A record that changed partition (`moves`) is an update, although it was deleted and inserted.

    `state` is the table before it, or later.
    """
    before = _before(state, instant)
    stats = list(metadata.write_stats())
    logs = [stat for stat in stats if stat.log_version is not None]
    created = [stat for stat in stats if stat.prev_commit == _NEW_GROUP and stat.log_version is None]
    return WriteResult(
        operation=metadata.operation_type or WriteOperationType.UNKNOWN,
        table_type=state.config.table_type.value,
        instant=instant,
        previous_instant=state.order.newest(one.requested_time for one in before),
        inserts=sum(stat.num_inserts for stat in stats) - moves,
        updates=sum(stat.num_update_writes for stat in stats) + moves,
        deletes=sum(stat.num_deletes for stat in stats) - moves,
        files_created=len(created),
        files_updated=len(stats) - len(created) - len(logs),
        log_files=len(logs),
        bytes_written=sum(stat.total_write_bytes for stat in stats),
        duplicates_dropped=dropped,
        was_written=was_written,
        route=metadata.extra_metadata.get(ROUTE_KEY),
        index=metadata.extra_metadata.get(INDEX_KEY),
        builds_index=builds_index,
    )


def _before(state: TableState, instant: str) -> Timeline:
    """The completed writes of the active timeline before a write, which need not be on it yet."""
    done = state.timeline.writes().completed()
    if state.timeline.contains(instant):
        return done.older_than(instant)
    return Timeline() if state.timeline.is_before_start(instant) else done


def no_change(state: TableState, operation: WriteOperationType, dropped: int = 0) -> WriteResult:
    """Nothing was written; there is no commit."""
    last = state.timeline.writes().completed().last()
    return WriteResult(
        operation=operation,
        table_type=state.config.table_type.value,
        instant=None,
        previous_instant=last.requested_time if last else None,
        duplicates_dropped=dropped,
    )
