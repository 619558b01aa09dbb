"""A restore that has begun and whose plan is lost. Only Hudi's: this engine writes the plan into both state files.

The table cannot be opened, because it is unclear which writes the restore takes back. Hudi takes them back one by one, newest first, so
without the restore the table is whole as of the newest remaining write.
"""

from __future__ import annotations

from lakehouse_engine.errors import InstantNotFoundError, MetadataError
from lakehouse_engine.format.table_format import format_of
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.repair.repairs.aside import FOLDER, set_aside
from lakehouse_engine.repair.repairs.remedy import Mending, mending
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.restores import restore_plan


def unplanned_restore(storage: Storage) -> Mending | None:
    """Remedy for the oldest such restore; None without one. Copies of its files are kept."""
    active = ActiveTimeline(storage, format_of(ConfigStore(storage).read()))
    timeline = active.load()
    for instant in timeline:
        if instant.action is Action.RESTORE and instant.state is State.INFLIGHT and not _is_planned(active, instant):
            newest = timeline.completed().writes().last()
            now = f"the table is as of {newest.requested_time} then" if newest is not None else "the table has no write left"
            message = (
                f"the plan of {instant} is damaged or gone, and what the restore goes back to cannot be told: its files are set aside in"
                f" {FOLDER}. What it took back until now stays gone, and {now}; restore it to the moment that was meant"
            )
            return mending(_path(active, instant.at(State.REQUESTED)), message, lambda found=instant: _drop(active, found))  # type: ignore[misc]
    return None


def _is_planned(active: ActiveTimeline, instant: Instant) -> bool:
    try:
        restore_plan(active, instant)
    except (InstantNotFoundError, MetadataError):
        return False
    return True


def _drop(active: ActiveTimeline, instant: Instant) -> None:
    """The inflight file goes first: a restore that was only requested, with a damaged plan, has not begun."""
    for state in (State.INFLIGHT, State.REQUESTED):
        path = _path(active, instant.at(state))
        if active.storage.head(path) is not None:
            set_aside(active.storage, path)
            active.delete(instant.at(state))


def _path(active: ActiveTimeline, instant: Instant) -> str:
    return f"{active.format.timeline_folder}/{active.format.file_name(instant)}"
