"""Savepointed commits that archiving passed by, as Hudi's archiver leaves them with `hoodie.archive.beyond.savepoint`.

Readers take everything older than the first commit without a savepoint for committed. A commit that lost its savepoint would become that
first one, and writes between it and the next active commit would vanish. So it is archived before its savepoint is deleted.
"""

from __future__ import annotations

from lakehouse_engine.errors import SavepointError
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.order import is_later
from lakehouse_engine.options import ArchiveOptions
from lakehouse_engine.services.archive.execute import execute_archive
from lakehouse_engine.services.archive.plan import has_replaced_files
from lakehouse_engine.view.table_state import TableState


def archive_passed(state: TableState, instant_time: str) -> bool:
    """Archive the commit of a savepoint that will be deleted, if archiving has passed it by; returns True if it did.

    Call it under the table lock, before the savepoint is deleted. Raises as `check_passed`.
    """
    commit = check_passed(state, instant_time)
    if commit is None:
        return False
    execute_archive(state, [commit], ArchiveOptions(merges=False))
    return True


def check_passed(state: TableState, instant_time: str) -> Instant | None:
    """Commit of a savepoint that archiving has passed by; None if it has not.

    Raises `SavepointError` for a replace commit whose replaced files still exist: once archived, it would no longer hide them.
    """
    commit = next((found for found in state.timeline.completed().writes() if found.requested_time == instant_time), None)
    if commit is None or not is_later(state.proven_since, instant_time):
        return None
    if commit.action is Action.REPLACE_COMMIT and has_replaced_files(state, commit):
        raise SavepointError(
            "commits after this savepoint are archived, and files that its commit replaced are not cleaned yet: they would show again;"
            " delete the savepoints that pin them and clean first",
            instant=instant_time,
            table=state.config.name,
        )
    return commit
