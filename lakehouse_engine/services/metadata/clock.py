"""Instants of a metadata table's services: those of the data table's clock, or in version 6 the last delta commit's with a suffix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields

from lakehouse_engine.commit.table_clock import lent_clock, table_clock
from lakehouse_engine.metadata_table.compaction import last_delta_commit
from lakehouse_engine.timeline.clock import InstantClock
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.view.table_state import TableState

COMPACTION_SUFFIX, CLEAN_SUFFIX = "001", "002"
"""What instants of version 6 end with (Hudi `HoodieTableMetadataUtil.OperationSuffix`)."""


@dataclass(frozen=True, slots=True)
class MetadataTableClock(InstantClock):
    """Clock of the data table, whose instants are also after those of its `followed` timeline. With `fixed` there is only that instant."""

    followed: Timeline = field(default_factory=Timeline)
    fixed: str = ""

    def next(self, timeline: Timeline) -> str:
        return self.fixed or InstantClock.next(self, Timeline((*self.followed.instants, *timeline.instants)))


def service_instant(metadata: TableState, suffix: str) -> str:
    """The only instant that a service can have now; "" if it can have any later one."""
    return "" if metadata.format.completes_with_time else f"{last_delta_commit(metadata)}{suffix}"


@contextmanager
def named_instants(data: TableState, metadata: TableState, suffix: str) -> Iterator[None]:
    """Let a service of `metadata` name its instants meanwhile. The lock of the data table is held."""
    clock = table_clock(data)
    known = {one.name: getattr(clock, one.name) for one in fields(InstantClock)}
    lent = MetadataTableClock(**known, followed=data.timeline, fixed=service_instant(metadata, suffix))
    with lent_clock(metadata.storage, lent):
        yield
