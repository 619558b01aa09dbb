"""When instants reached their states."""

from __future__ import annotations

from lakehouse_engine.model.instant import Instant
from lakehouse_engine.view.table_state import TableState


def state_times(state: TableState) -> dict[Instant, int]:
    """When each instant of the active timeline reached each state, by its file's age, in epoch milliseconds."""
    entries = ((state.format.parse_file_name(entry.name), entry) for entry in state.storage.list(state.format.timeline_folder))
    return {instant: entry.modified_ms for instant, entry in entries if instant is not None and not entry.is_directory}
