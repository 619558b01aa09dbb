"""What can be out of order on a table, and what a repair says of it."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse_engine.compat import StrEnum


class DisorderKind(StrEnum):
    DEAD_WRITE = "dead_write"
    UNFINISHED_ROLLBACK = "unfinished_rollback"
    UNFINISHED_RESTORE = "unfinished_restore"
    LEFTOVER_MARKERS = "leftover_markers"
    STRAY_FILE = "stray_file"
    TEMPORARY_FILE = "temporary_file"
    DAMAGED_FILE = "damaged_file"
    LOST_METAFILE = "lost_metafile"
    NO_CHECKPOINT = "no_checkpoint"
    AT_WORK = "at_work"
    UNFINISHED_CLEAN = "unfinished_clean"
    UNFINISHED_SAVEPOINT = "unfinished_savepoint"
    PENDING_SERVICE = "pending_service"
    ORPHAN = "orphan"
    FUTURE_INSTANT = "future_instant"
    LOST_DATA = "lost_data"
    BEYOND_REPAIR = "beyond_repair"


REPAIRED = (
    DisorderKind.DEAD_WRITE,
    DisorderKind.UNFINISHED_ROLLBACK,
    DisorderKind.UNFINISHED_RESTORE,
    DisorderKind.LEFTOVER_MARKERS,
    DisorderKind.STRAY_FILE,
    DisorderKind.TEMPORARY_FILE,
    DisorderKind.DAMAGED_FILE,
    DisorderKind.LOST_METAFILE,
    DisorderKind.NO_CHECKPOINT,
)
"""What a repair sees to. The rest is harmless, or of somebody who is at work, or waits for what the message names."""

UNSOLVED = (DisorderKind.FUTURE_INSTANT, DisorderKind.LOST_DATA, DisorderKind.BEYOND_REPAIR)
"""What keeps a table from being read or written as it should, until somebody does what the message says."""


@dataclass(frozen=True, slots=True)
class Disorder:
    """`what` is an instant, or a path relative to the table."""

    kind: DisorderKind
    what: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """`repaired` was seen to (on a dry run: would be), `left` was not."""

    table: str
    repaired: tuple[Disorder, ...]
    left: tuple[Disorder, ...]
    dry_run: bool = False

    @property
    def unsolved(self) -> tuple[Disorder, ...]:
        """Of what is left that which is not harmless: somebody has to see to it."""
        return tuple(one for one in self.left if one.kind in UNSOLVED)

    @property
    def ok(self) -> bool:
        """Whether nothing is left that somebody has to see to (on a dry run: would be)."""
        return not self.unsolved
