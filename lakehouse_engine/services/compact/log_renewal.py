"""Plans a log compaction again if the table was written to since the first plan."""

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
    """True if a write after `time` has files in a group of `slices`, or if a later savepoint keeps the table without this compaction."""
    if any(not is_later(time, savepoint) for savepoint in state.timeline.savepointed):
        return True
    groups = {piece.group for piece in slices}
    later = state.timeline.completed().writes().newer_than(time)
    written = (stat for write in later for stat in state.commit_metadata(write).write_stats())
    return any(_group(stat.partition_path, stat.file_id) in groups for stat in written)


def renew(
    state: TableState, requested: Instant, plan: HoodieCompactionPlan, slices: list[FileSlice]
) -> tuple[Instant, HoodieCompactionPlan]:
    """Replace the plan by one for the slices as they are now, at an instant after every write. The caller holds the table lock.

    The old plan is deleted first: Hudi's readers refuse a table with a file group in two plans. If the process dies in between, no plan is
    left, and only the merging is lost, which is planned again when due. Raises `CompactionError` while a write is pending, with nothing
    changed.
    """
    check_no_older_write(LOG_COMPACTION, state)
    anew = replace(plan, operations=tuple(operation_of(piece) for piece in slices))
    state.active.delete_pending(requested)
    instant = request(LOG_COMPACTION, state.refresh(), anew)
    logger.info("%s of %s is planned anew as %s: its slices were logged to since", requested, state.config.name, instant)
    return instant, anew


def _group(partition_path: str | None, file_id: str | None) -> FileGroupId:
    return FileGroupId(partition_path or "", file_id or "")
