"""Mends what says which files of the history of version 8 or 9 count: `_version_`, and the manifest that it names.

Both follow from the files of the history, each of which is whole or not by itself: files of earlier manifests that are still there have
been merged into others. What a dead archiving added is on the active timeline too, and counts once.
"""

from __future__ import annotations

from lakehouse_engine.repair.repairs.aside import FOLDER, set_aside
from lakehouse_engine.repair.repairs.remedy import Mending, mending
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.history import LsmHistory
from lakehouse_engine.timeline.history_head import gone_from_earlier
from lakehouse_engine.timeline.lsm_writer import LsmWriter
from lakehouse_engine.view.archive_gaps import damaged_head, with_lost
from lakehouse_engine.view.table_state import TableState


def history_head(state: TableState) -> Mending | None:
    """Repair of a damaged or missing one; None if all is well, or the table has no such history."""
    found, history = damaged_head(state), state.archived_timeline
    if found is None or not isinstance(history, LsmHistory):
        return None
    path, wrong = found

    def replace() -> None:
        if state.storage.head(path) is not None:
            set_aside(state.storage, path)
            state.storage.delete(path)
        gone = gone_from_earlier(history)
        if gone:
            ConfigStore(state.storage).update(with_lost(state, *gone))
        LsmWriter(history).rebuild()

    message = f"{wrong}: a manifest is made anew of the files that are there, and the damaged file set aside in {FOLDER}"
    return mending(path, message, replace)
