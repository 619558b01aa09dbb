"""A table under its lock, brought to order: what every action that changes it starts from.

Whoever holds the lock knows that what is pending belongs to a process that died (or to a writer that does not know the lock, see
docs/adr/0005), because a write keeps the lock from before its instant is requested until it is completed or abandoned. Plans of table
services are no dead writes: they wait for whoever runs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lakehouse_engine.commit.metadata_table import drop_metadata_table
from lakehouse_engine.commit.restore.execute import resume_restore
from lakehouse_engine.commit.rollback.leftovers import remove_leftovers
from lakehouse_engine.commit.rollback.recover import roll_back_dead_writes
from lakehouse_engine.commit.unpublished import dead_temporaries, remove_temporaries
from lakehouse_engine.errors import CommitConflictError
from lakehouse_engine.model.instant import Action
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.lock import TableLock, confirm_lock
from lakehouse_engine.view.table_state import TableState, check_completed_files


@contextmanager
def locked_table(storage: Storage, *, lock_timeout_ms: int, corrupt_writes: bool = False) -> Iterator[TableState]:
    """Lock the table, finish a restore that was cut off, take back what dead writers left, and hand out the state after that.

    `corrupt_writes`: let a torn completed write pass, for an action that may take it back. Raises `TableNotFoundError` before anything is
    made where there is no table, and `LockTimeoutError` naming the holder.
    """
    ConfigStore(storage).read()
    with TableLock(storage, lock_timeout_ms):
        yield _recovered(storage, corrupt_writes)


def check_nobody_committed(state: TableState) -> None:
    """To be called before publishing what was made of `state`. A lock file that Hudi deleted is taken again, and nothing is lost as long as
    nothing was completed since.

    Raises `CommitConflictError` naming what was, `LockError` where another program holds the lock now.
    """
    if confirm_lock(state.storage):
        return
    known = {instant.requested_time for instant in state.timeline.completed()}
    others = [instant for instant in state.refresh().timeline.completed() if instant.requested_time not in known]
    if others:
        raise CommitConflictError(
            "the table's lock file was deleted while this write held it, and another writer changed the table; nothing is published, try"
            " again",
            instant=others[-1],
            table=state.config.name,
        )


def _recovered(storage: Storage, corrupt_writes: bool) -> TableState:
    state = TableState.load(storage)
    for restore in state.timeline.pending().filter(lambda instant: instant.action is Action.RESTORE):
        state = resume_restore(state, restore)
    if not corrupt_writes:
        check_completed_files(state)
    state = roll_back_dead_writes(state)
    remove_leftovers(state)
    remove_temporaries(storage, dead_temporaries(storage, state.layout.timeline_folder))
    return drop_metadata_table(state)
