"""Which slice takes what is logged to a file group: the base instant that goes into the name of a new log file."""

from __future__ import annotations

from collections.abc import Mapping

from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import FileGroupId


def log_target(piece: FileSlice, compacting: Mapping[FileGroupId, str]) -> str:
    """The slice's own base instant, or that of the pending compaction which has the group in its plan (hudi-format 6).

    From the moment a compaction is scheduled its plan names the log files that it will fold in, so what is logged later belongs to the
    slice that it will make. `compacting` is `commit.pending.compacting_groups` of the table.
    """
    return compacting.get(piece.group, piece.base_instant)
