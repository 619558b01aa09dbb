"""The checkpoint of live files, for a table that others archived, or that lost it."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse_engine.commit.checkpoint import lacks_checkpoint, renew_checkpoint
from lakehouse_engine.repair.damage import damaged_states
from lakehouse_engine.repair.disorder import Disorder, DisorderKind
from lakehouse_engine.timeline.checkpoints import LIVE
from lakehouse_engine.view.lost_commits import lost_commits
from lakehouse_engine.view.table_state import TableState


def missing_checkpoint(state: TableState) -> Iterator[Disorder]:
    """Finding, if reads lack a complete checkpoint."""
    if not lacks_checkpoint(state):
        return
    message = "no checkpoint says which files archived writes left, so that the archive is read for it"
    if _is_blocked(state):
        yield Disorder(DisorderKind.BEYOND_REPAIR, LIVE, f"{message}: one is written once the damaged commits are in order")
    else:
        yield Disorder(DisorderKind.NO_CHECKPOINT, LIVE, f"{message}: one is written")


def make_checkpoint(state: TableState) -> None:
    """Write it if it is missing and can be made. The table lock is held."""
    if lacks_checkpoint(state) and not _is_blocked(state):
        renew_checkpoint(state)


def _is_blocked(state: TableState) -> bool:
    states = damaged_states(state.active)
    return bool(lost_commits(state)) or any(damage.instant.is_completed and damage.instant.action.is_write for damage in states)
