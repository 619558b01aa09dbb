"""Which slice takes what is logged to a file group: the base instant that goes into the name of a new log file."""

from __future__ import annotations

from collections.abc import Mapping

from lakehouse_engine.commit.pending import compacting_groups
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.view.table_state import TableState


def log_target(state: TableState, piece: FileSlice, compacting: Mapping[FileGroupId, str] | None = None) -> str:
    """The slice's own base instant, or that of the pending compaction which has the group in its plan (hudi-format 6).

    From the moment a compaction is scheduled its plan names the log files that it will fold in, so what is logged later belongs to the
    slice that it will make. `compacting` is `compacting_groups(state)`, for those who ask for many slices.
    """
    groups = compacting_groups(state) if compacting is None else compacting
    return groups.get(piece.group, piece.base_instant)
