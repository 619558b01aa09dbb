"""Plan a log compaction anew where the table has gone on since it was planned."""

from __future__ import annotations

import logging
from dataclasses import replace

from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.order import is_later
from lakehouse_engine.model.plans import HoodieCompactionPlan
from lakehouse_engine.services.compact.plan import LOG_COMPACTION, operation_of
from lakehouse_engine.services.executor.scheduling import check_no_older_write, request
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


def is_outdated(state: TableState, time: str, slices: list[FileSlice]) -> bool:
    """Whether a write after `time` has files in a group of `slices`, or a savepoint after it keeps the table as it is without it."""
    if any(not is_later(time, savepoint) for savepoint in state.timeline.savepointed):
        return True
    groups = {piece.group for piece in slices}
    later = state.timeline.completed().writes().newer_than(time)
    written = (stat for write in later for stat in state.commit_metadata(write).write_stats())
    return any(_group(stat.partition_path, stat.file_id) in groups for stat in written)


def renew(
    state: TableState, requested: Instant, plan: HoodieCompactionPlan, slices: list[FileSlice]
) -> tuple[Instant, HoodieCompactionPlan]:
    """The plan's slices as they are, under an instant after every write; the old plan is gone. The table lock is held.

    It goes first: Hudi's readers refuse a table with a file group in two plans. One who is killed between leaves none, and nothing is lost
    with it but the merging, which is planned again when it is due. Raises `CompactionError` while a write is pending, with nothing changed.
    """
    check_no_older_write(LOG_COMPACTION, state)
    anew = replace(plan, operations=tuple(operation_of(piece) for piece in slices))
    state.active.delete_pending(requested)
    instant = request(LOG_COMPACTION, state.refresh(), anew)
    logger.info("%s of %s is planned anew as %s: its slices were logged to since", requested, state.config.name, instant)
    return instant, anew


def _group(partition_path: str | None, file_id: str | None) -> FileGroupId:
    return FileGroupId(partition_path or "", file_id or "")
