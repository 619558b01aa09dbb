"""Instants of builds: in version 6 the newest instant of the data table with a suffix from `010` on, later numbers with 17 digits."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse_engine.metadata_table.building.plans import NO_INSTANT
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.order import last_digits, latest
from lakehouse_engine.timeline.clock import InstantClock
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.view.table_state import TableState

_FIRST_SUFFIX = 10
_INDEXER_SUFFIX = "004"
_SUFFIX = 3
_DIGITS = 17


@dataclass(frozen=True, slots=True)
class BuildInstants:
    """Instants of builds in `metadata`, the metadata table of `data`."""

    data: TableState
    metadata: TableState

    def next(self) -> Instant:
        """A free instant, to be requested."""
        if self.metadata.format.completes_with_time:
            times = [one.requested_time for one in self.metadata.timeline if one.requested_time.startswith(NO_INSTANT)]
            taken = [last_digits(time, _DIGITS) for time in times]
            time = f"{max(taken, default=-1) + 1:0{_DIGITS}d}"
        else:
            newest = latest(one.requested_time for one in self.data.timeline.completed()) or NO_INSTANT
            times = [one.requested_time for one in self.metadata.timeline if _is_suffixed(one.requested_time, newest)]
            taken = [last_digits(time, _SUFFIX) for time in times]
            time = f"{newest}{max(taken, default=_FIRST_SUFFIX - 1) + 1:0{_SUFFIX}d}"
        return Instant(time, Action.DELTA_COMMIT, State.REQUESTED)

    def beside(self, indexing: Instant) -> Instant:
        """A free instant, to be requested, for a build beside writers. Hudi's take back any other pending delta commit: 0.15 those without
        the suffix of an indexer, 1.x those without an indexing of that time (`HoodieTableMetadataUtil.isIndexingCommit`).
        """
        if self.metadata.format.completes_with_time:
            time = indexing.requested_time
        else:
            time = f"{latest(one.requested_time for one in self.data.timeline.completed()) or NO_INSTANT}{_INDEXER_SUFFIX}"
        taken = self.metadata.timeline.contains(time)
        return self.next() if taken else Instant(time, Action.DELTA_COMMIT, State.REQUESTED)

    def pending(self) -> list[Instant]:
        """Pending delta commits of builds, whose process is dead."""
        return [one for one in self.metadata.timeline.pending() if one.action is Action.DELTA_COMMIT and self._is_build(one.requested_time)]

    def completion_time(self, clock: InstantClock) -> str | None:
        """After every instant of both tables; None if the table's version has no completion times."""
        if not self.metadata.format.completes_with_time:
            return None
        return clock.next(Timeline((*self.data.timeline.instants, *self.metadata.timeline.instants)))

    def _is_build(self, time: str) -> bool:
        if self.metadata.format.completes_with_time:
            return time.startswith(NO_INSTANT)
        is_first = time.startswith(NO_INSTANT) and len(time) == len(NO_INSTANT) + _SUFFIX
        return (is_first or len(time) > _DIGITS) and last_digits(time, _SUFFIX) >= _FIRST_SUFFIX


def _is_suffixed(time: str, newest: str) -> bool:
    return time.startswith(newest) and len(time) == len(newest) + _SUFFIX and last_digits(time, _SUFFIX) >= _FIRST_SUFFIX
