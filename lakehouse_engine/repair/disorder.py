"""What can be out of order on a table, and a repair's report."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse_engine.compat import StrEnum


class DisorderKind(StrEnum):
    """Kind of something that `repair` finds."""

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
"""Kinds that a repair handles. The rest is harmless, belongs to a running process, or waits for what its message says."""

UNSOLVED = (DisorderKind.FUTURE_INSTANT, DisorderKind.LOST_DATA, DisorderKind.BEYOND_REPAIR)
"""Kinds that prevent reading or writing until a person does what the message says."""


@dataclass(frozen=True, slots=True)
class Disorder:
    """`what` is an instant, or a path relative to the table."""

    kind: DisorderKind
    what: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """`repaired` was handled (in a dry run: would be), `left` was not."""

    table: str
    repaired: tuple[Disorder, ...]
    left: tuple[Disorder, ...]
    dry_run: bool = False

    @property
    def unsolved(self) -> tuple[Disorder, ...]:
        """Remaining findings that a person has to act on."""
        return tuple(one for one in self.left if one.kind in UNSOLVED)

    @property
    def ok(self) -> bool:
        """True if no finding remains for a person (in a dry run: would remain)."""
        return not self.unsolved
