"""Slice of what is logged to a file group: the base instant in a new log file's name."""

from __future__ import annotations

from collections.abc import Mapping

from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import FileGroupId


def log_target(piece: FileSlice, compacting: Mapping[FileGroupId, str]) -> str:
    """The slice's base instant, or that of a pending compaction with the group in its plan (hudi-format 6).

    A compaction's plan names the logs that it merges, so later logs belong to the slice that it will make. `compacting` is
    `commit.pending.compacting_groups` of the table.
    """
    return compacting.get(piece.group, piece.base_instant)
