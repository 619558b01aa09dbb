"""Slices that pending compactions will make, for versions whose log names do not say."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from lakehouse_engine.errors import InstantNotFoundError, MetadataError
from lakehouse_engine.model.instant import Action, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.plans import HoodieCompactionPlan
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.timeline import Timeline

Planned = Mapping[FileGroupId, tuple[str, ...]]


def planned_slices(active: ActiveTimeline, timeline: Timeline) -> Planned:
    """Base instants of slices that pending compactions will make, by group; empty in version 6, whose log names say so.

    A damaged plan, or one taken back since the timeline was loaded, makes none: it is not run, and until a compaction completes, rows are
    the same whether or not logs are on its slice.
    """
    found: dict[FileGroupId, tuple[str, ...]] = {}
    if active.format.logs_by_writer:
        for instant in timeline.pending().filter(lambda one: one.action is Action.COMPACTION):
            with suppress(InstantNotFoundError, MetadataError):
                for operation in active.plan(HoodieCompactionPlan, instant.at(State.REQUESTED)).operations or ():
                    group = FileGroupId(operation.partition_path or "", operation.file_id or "")
                    found[group] = (*found.get(group, ()), instant.requested_time)
    return found
