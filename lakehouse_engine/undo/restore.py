"""Restores a table to a savepoint, or to an instant whose files are all there (hudi-format 10.3; Hudi `restoreToSavepoint`).

Everything is checked first (`plan`). The plan is written to the timeline before anything is changed; from then on the next holder of the
table lock carries the restore out: this process or, if it dies, the next writer (`execute`).
"""

from __future__ import annotations

import logging

from lakehouse_engine.commit.concurrency.executors import executors_kept_out
from lakehouse_engine.commit.leftovers.metafiles import put_back_metafiles
from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.commit.restore.execute import begin_restore
from lakehouse_engine.commit.table_clock import accept_future as accept
from lakehouse_engine.model.services import RestoreResult
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.undo.restore_plan import plan_restore
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


def restore(
    storage: Storage,
    *,
    savepoint: str | None = None,
    to: str | None = None,
    cascade: bool = False,
    lock_timeout_ms: int,
    dry_run: bool = False,
    accept_future: bool = False,
) -> RestoreResult:
    """Take back every write after a savepoint (name, instant or "latest") or after the completed write `to`.

    Commits after a savepoint may have been archived, compacted and cleaned meanwhile. `cascade` deletes later savepoints as part of the
    restore. A dry run says which instants, files and rows would go, and changes nothing. `instant` of the result is None if the table is at
    the target already. Finishes an interrupted restore first. `accept_future`: continue from instants that a wrong clock put into the
    future; the restore and later writes come after them.

    Raises, with the table unchanged, `SavepointError` if there is no such savepoint, `RestoreError` if later savepoints would be lost,
    `RollbackError` if a compaction to take back is running, `InstantNotFoundError` if `to` is not a completed write, `InstantCleanedError`
    if its files are gone, `MissingFileError` if a file that a savepoint should have kept is lost, `OptionError` unless exactly one of
    `savepoint` and `to` is given, and `LockTimeoutError` while another writer is at work. Raises `RestoreUnfinishedError`, as readers do
    then, if the restore has begun and the next change of the table must finish it.
    """
    if dry_run:
        return plan_restore(TableState.load(storage), savepoint, to, cascade=cascade).result(None, dry_run=True)
    if accept_future:
        plan_restore(TableState.load(storage), savepoint, to, cascade=cascade)  # a refused restore must not accept instants
        accept(storage, lock_timeout_ms=lock_timeout_ms)
    with locked_table(storage, lock_timeout_ms=lock_timeout_ms, corrupt_writes=True, alone_ms=lock_timeout_ms) as state:
        # The process that finishes this restore finds the partitions of later writes by their metafiles.
        put_back_metafiles(state)
        planned = plan_restore(state, savepoint, to, cascade=cascade)
        if not planned.is_needed:
            return planned.result(None, dry_run=False)
        with executors_kept_out(storage, planned.instants):
            logger.info("restoring %s to %s: %d instants are taken back", state.config.name, planned.target, len(planned.instants))
            time = begin_restore(state, planned.plan())
        return planned.result(time, dry_run=False)
