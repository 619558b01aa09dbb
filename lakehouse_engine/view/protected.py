"""What savepoints pin: files that nothing but the savepoint's own deletion releases."""

from __future__ import annotations

from lakehouse_engine.format.plans_codec import decode_plan
from lakehouse_engine.model.files import join_path
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.savepoint import HoodieSavepointMetadata
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.view.table_state import TableState


def savepoint_metadata(state: TableState) -> dict[str, HoodieSavepointMetadata]:
    """Every completed savepoint by the instant that it keeps, oldest first. Raises `CorruptInstantError` for a torn one."""
    timeline = ActiveTimeline(state.storage, state.layout)
    return {
        time: decode_plan(HoodieSavepointMetadata, timeline.read(Instant(time, Action.SAVEPOINT, State.COMPLETED)))
        for time in sorted(state.timeline.savepointed)
    }


def protected_files(state: TableState, *, up_to: str | None = None) -> dict[str, str]:
    """Path (relative to the table) of every pinned base and log file, with the instant of a savepoint that pins it.

    Of the savepoints of instants not after `up_to`, or of all.
    """
    return {
        join_path(partition, name): time
        for time, metadata in savepoint_metadata(state).items()
        if up_to is None or time <= up_to
        for partition, names in metadata.pinned_files().items()
        for name in names
    }
