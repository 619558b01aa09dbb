"""Difference between two readings of a table's timeline: which partitions may have other files.

Files that a completed write named come and go with instants that say so (other files are never kept, `view.kept`). So the difference of two
timelines suffices, if everything in between is on the later one; it may be archived by now, or the table may be another one. If that is
unclear, every partition may have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.order import is_later
from lakehouse_engine.model.plans import HoodieCleanMetadata, HoodieRollbackMetadata
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.timeline import Timeline

_REMOVE = frozenset({Action.CLEAN, Action.ROLLBACK, Action.RESTORE})
"""Actions that delete files as soon as they are pending."""
_PLANS = frozenset({Action.COMPACTION, Action.LOG_COMPACTION})


class _Unknown(Exception):
    """Something happened without saying which partitions it touched."""


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """One reading of the timeline: properties, and instants with the file of each state. `commit` decodes a write."""

    config: TableConfig
    timeline: Timeline
    active: ActiveTimeline
    files: Mapping[Instant, StoredFile]
    commit: Callable[[Instant], HoodieCommitMetadata]

    def touched_since(self, then: Moment) -> frozenset[str] | None:
        """Partitions that may have other files than at the moment `then`, or later; None if any may."""
        if then is self:
            return frozenset()
        if not self._goes_on_from(then):
            return None
        touched: set[str] = set()
        try:
            for one in self.timeline:
                if one.is_completed and one not in then.files:
                    touched.update(self._touched_by(one))
        except (LakehouseError, _Unknown):
            # Damaged, or archived meanwhile: listing again is always right, and reading the instant will report the problem.
            return None
        return frozenset(touched)

    def _goes_on_from(self, then: Moment) -> bool:
        """True if this is the same table, everything since `then` is on the timeline, and no completed write is gone."""
        start, newest = self.timeline.start, _newest(then, self.timeline.savepointed)
        if self.config != then.config or start is None or newest not in self.files:
            # Archiving goes from old to new: while that write is there, everything after it is.
            return False
        if any(one.action in _REMOVE for one in self.timeline.pending()):
            return False
        known = {(one.requested_time, one.action.completes_as) for one in self.timeline}
        return all(self._explains(one, then, known, start.requested_time) for one in then.timeline)

    def _explains(self, one: Instant, then: Moment, known: set[tuple[str, Action]], start: str) -> bool:
        """True if an instant's outcome is on the timeline, or does not matter."""
        if one in self.files:
            # A repaired file, or one of a table's copy, is another file.
            return not one.is_completed or self.files[one] == then.files[one]
        if (one.requested_time, one.action.completes_as) in known:
            return True
        if one.is_completed:
            return not one.action.is_write or is_later(start, one.requested_time)
        # An abandoned write's files are in no kept listing; an archived instant was completed.
        return one.action not in _REMOVE | _PLANS and not (one.action.is_write and is_later(start, one.requested_time))

    def _touched_by(self, one: Instant) -> Iterable[str]:
        if one.action.is_write:
            metadata = self.commit(one)
            return {*metadata.partition_to_write_stats, *(metadata.partition_to_replace_file_ids or {})}
        if one.action is Action.CLEAN:
            cleaned = self.active.plan(HoodieCleanMetadata, one)
            return {*cleaned.partition_metadata, *(cleaned.bootstrap_partition_metadata or {})}
        if one.action is Action.ROLLBACK:
            return self.active.plan(HoodieRollbackMetadata, one).partition_metadata
        if one.action is Action.SAVEPOINT:
            return ()
        raise _Unknown


def _newest(then: Moment, savepointed: frozenset[str]) -> Instant | None:
    """The last completed write that no savepoint keeps from being archived."""
    writes = then.timeline.completed().writes().instants
    return next((one for one in reversed(writes) if one.requested_time not in savepointed), None)
