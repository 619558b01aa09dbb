"""A table under its lock, in order: the start of every action that changes it.

Under the lock, what this engine has pending belongs to a dead process, because a write keeps the lock from before its instant is requested
until it is completed or abandoned. Writers of Hudi take the lock to commit only, so their heartbeats decide (docs/adr/0020), as do those of
this engine's writers in table versions 8 and 9 (docs/adr/0064). Plans of table services are no dead writes: they wait for an executor.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from lakehouse_engine.commit.concurrency.executors import ask_to_be_alone
from lakehouse_engine.commit.concurrency.foreign import live_writes, refused_writes
from lakehouse_engine.commit.concurrency.hudi_fairness import turn_of_hudi
from lakehouse_engine.commit.leftovers.savepoints import put_back_savepoints
from lakehouse_engine.commit.leftovers.unpublished import dead_temporaries, remove_temporaries
from lakehouse_engine.commit.participants import join_all
from lakehouse_engine.commit.restore.execute import resume_restore
from lakehouse_engine.commit.rollback.leftovers import remove_leftovers
from lakehouse_engine.commit.rollback.recover import roll_back_dead_writes
from lakehouse_engine.errors import CommitConflictError
from lakehouse_engine.model.instant import Action
from lakehouse_engine.options import LOCK_TIMEOUT_MS
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import in_object_store
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.heartbeats import Heartbeat
from lakehouse_engine.timeline.lock import TableLock, confirm_lock
from lakehouse_engine.timeline.other_layout import OtherLayout
from lakehouse_engine.timeline.presence import told_if_gone
from lakehouse_engine.view.completed_files import check_completed_files
from lakehouse_engine.view.lost_commits import check_no_commit_is_lost, lost_commits
from lakehouse_engine.view.table_state import TableState

_PAUSE = 0.2
"""Seconds between two checks of Hudi's writers."""


@contextmanager
def locked_table(
    storage: Storage,
    *,
    lock_timeout_ms: int,
    corrupt_writes: bool = False,
    alone_ms: int | None = None,
    among_ours: bool = False,
    polite: bool = False,
    known: TableState | None = None,
    joined: bool = True,
) -> Iterator[TableState]:
    """Lock the table, finish an interrupted restore, take back dead writes, and yield the state after that.

    `corrupt_writes`: let a completed write pass whose file is torn or gone, for an action that may take it back. `alone_ms`: not beside
    writers that make their files without the lock, for whose end it waits so long (in milliseconds) without the lock, which they need to
    commit; `among_ours`: but beside those of this engine. `polite`: let Hudi's have their turn. `known`: the table as it was before; it is
    what comes out where nothing has happened since, with all that was listed and opened for it. `joined`: participants join; not for an
    action that changes only what they keep.

    Raises `TableNotFoundError` before anything is made if there is no table, or it disappears; `LockTimeoutError` with the holder, and
    `CommitConflictError` with the write that did not end in time.
    """
    with told_if_gone(storage):
        yield from _locked(storage, lock_timeout_ms, corrupt_writes, alone_ms, among_ours, polite, known, joined)


def _locked(
    storage: Storage,
    lock_timeout_ms: int,
    corrupt_writes: bool,
    alone_ms: int | None,
    among_ours: bool,
    polite: bool,
    known: TableState | None,
    joined: bool,
) -> Iterator[TableState]:
    config = ConfigStore(storage).read()
    began, held = time.monotonic(), TableLock(storage, lock_timeout_ms).is_held
    # A caller that already holds the lock cannot wait without it: Hudi would never get it.
    deadline, patience = (began, began) if held else (began + (alone_ms or 0) / 1000, began + lock_timeout_ms / 1000)
    is_asked = False
    with ExitStack() as asking:
        while True:
            with TableLock(storage, lock_timeout_ms, known=config):
                state = _recovered(TableState.load(storage) if known is None else known.advance(), corrupt_writes, joined)
                if known is not None and known.is_still(state):
                    state = known
                others = _in_the_way(state, among_ours) if alone_ms is not None else ()
                theirs = turn_of_hudi(state) if polite and time.monotonic() < patience else 0.0
                if not others and not theirs:
                    yield state
                    return
            if others and time.monotonic() >= deadline:
                raise CommitConflictError(
                    f"another writer is at work on this table ({others[0]}), which this must not run beside; it was not done within"
                    f" {(alone_ms or 0) / 1000:g} s. Wait for it, or raise {LOCK_TIMEOUT_MS.key}",
                    instant=others[0].instant_time,
                    table=state.config.name,
                )
            if others and state.format.writers_at_once and not is_asked:
                ask_to_be_alone(storage, asking)
                is_asked = True
            time.sleep(min(theirs, _PAUSE) if theirs else _PAUSE)
            config = ConfigStore(storage).read()


def _in_the_way(state: TableState, among_ours: bool) -> tuple[Heartbeat, ...]:
    live = live_writes(state, without_ours=among_ours and state.format.writers_at_once)
    return (*live, *refused_writes(state))


def check_nobody_committed(state: TableState) -> None:
    """Called before publishing what was made from `state`. If Hudi deleted the lock file, it is taken again, which is safe if nothing was
    completed since.

    Raises `CommitConflictError` naming what was completed, `LockError` if another program holds the lock now.
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


def _recovered(state: TableState, corrupt_writes: bool, joined: bool) -> TableState:
    if state.may_be_moving:
        OtherLayout(state.storage, state.config, state.format).remove()
        state = state.refresh()
    for restore in state.timeline.pending().filter(lambda instant: instant.action is Action.RESTORE):
        state = resume_restore(state, restore)
    state = put_back_savepoints(state)
    lost = lost_commits(state)
    if not corrupt_writes:
        check_completed_files(state)
        check_no_commit_is_lost(state, lost)
    state = roll_back_dead_writes(state, lost)
    remove_leftovers(state)
    if not in_object_store(state.storage):  # where an incomplete object does not exist
        remove_temporaries(state.storage, dead_temporaries(state.storage, state.format.timeline_folder))
    return join_all(state) if joined else state
