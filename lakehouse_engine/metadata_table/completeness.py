"""Checks that a metadata table knows every change of its data table; otherwise its answers do not count."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse_engine.metadata_table.partitions import FILES
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.metadata_table.written import built_at
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.order import is_later

_CHANGES_FILES = frozenset({Action.CLEAN, Action.RESTORE})
"""Actions besides writes that change which files exist. A rollback removes only what was never complete."""


def unknown_instants(table: MetadataTable) -> list[Instant]:
    """Completed instants of the data table that changed its files but are unknown to the metadata table, oldest first.

    It knows an instant if it has a completed one with the same time, and all those that were completed before its partition `files` was
    built (in version 6 `<last instant>010`, and its later instants are compared; in later versions by the time of completion), or before it
    was restored.
    """
    changes = (one for one in table.data.timeline.completed() if one.action.is_write or one.action in _CHANGES_FILES)
    unknown = [one for one in changes if not _knows(table, one)]
    if not unknown:
        return []
    builds = list(_builds(table))
    return [one for one in unknown if not (_restored_since(table, one) or any(_covers(table, build, one) for build in builds))]


def is_built_in(table: MetadataTable, requested_time: str) -> bool:
    """True if a build has what an instant did that has no delta commit: it was requested before the build, during which nothing is
    pending.
    """
    builds = (one.completed_at or one.requested_time for one in _builds(table))
    return any(is_later(build, requested_time) for build in builds)


def is_in_a_build(table: MetadataTable, delta_commit: Instant) -> bool:
    """True if a partition besides `files` was built after a delta commit, so that its base files may have what the commit is about."""
    return any(_is_built_after(table, name, delta_commit) for name in table.partitions if name != FILES)


def _is_built_after(table: MetadataTable, partition: str, delta_commit: Instant) -> bool:
    """In versions 8 and 9 a build beside writers is completed after delta commits that its base files do not have; they count as well."""
    time = built_at(table.state, partition)
    build = table.state.timeline.find(time)
    if build is None or build.completed_at is None or delta_commit.completed_at is None:
        return is_later(time, delta_commit.requested_time)
    return is_later(build.completed_at, delta_commit.completed_at)


def _knows(table: MetadataTable, instant: Instant) -> bool:
    timeline = table.state.timeline
    found = timeline.find(instant.requested_time)
    if found is not None:
        return found.is_completed
    return timeline.is_before_start(instant.requested_time)


def _restored_since(table: MetadataTable, instant: Instant) -> bool:
    """True if the metadata table was restored later than an instant, by one of its own. Hudi does so within a restore of the data table,
    and compares it with the directories then, so that cleans in between are in it, too.
    """
    own = (one for one in table.state.timeline.completed() if one.action is Action.RESTORE)
    return any(is_later(one.requested_time, instant.requested_time) for one in own)


def _builds(table: MetadataTable) -> Iterator[Instant]:
    """Delta commits that wrote all files into `files`: they wrote a base file there."""
    for instant in table.state.timeline.completed().writes():
        if instant.action is Action.DELTA_COMMIT:
            stats = table.state.commit_metadata(instant).partition_to_write_stats.get(FILES, ())
            if any((stat.path or "").endswith(".hfile") for stat in stats):
                yield instant


def _covers(table: MetadataTable, build: Instant, instant: Instant) -> bool:
    """True if an instant was completed before a build; Hudi builds only when nothing is pending."""
    if build.completed_at is not None:
        return not is_later(instant.completed_at or instant.requested_time, build.completed_at)
    return is_later(build.requested_time, instant.requested_time)
