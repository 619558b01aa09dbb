"""Copies a table with its history: the same instants and data files under another directory.

Hudi's data files, logs and instant files are written once, so two tables can share them, and so can their metadata tables.
`hoodie.properties` and definitions of indexes, which may change in place, are copied. Files of running processes (locks, heartbeats,
markers, incomplete instants) are left behind.
"""

from __future__ import annotations

from lakehouse_engine.commit.expected import ExpectedState
from lakehouse_engine.format.file_names import TEMP_FOLDER
from lakehouse_engine.format.metadata_table.definitions import DEFINITIONS_PATH
from lakehouse_engine.metadata_table.table import METADATA_TABLE
from lakehouse_engine.model.instant import Action
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import storage_below
from lakehouse_engine.storage.sharing import copy_file, link_file
from lakehouse_engine.timeline.config_store import PROPERTIES
from lakehouse_engine.timeline.heartbeats import HEARTBEATS
from lakehouse_engine.timeline.lock import LOCK_FILE, TableLock
from lakehouse_engine.view.lost_commits import check_no_commit_is_lost, lost_commits
from lakehouse_engine.view.table_state import TableState

_WRITES = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
_OF_PROCESSES = (TEMP_FOLDER, HEARTBEATS, LOCK_FILE.rpartition("/")[0])
_LEFT = tuple(f"{table}{folder}/" for table in ("", f"{METADATA_TABLE}/") for folder in _OF_PROCESSES)
_CHANGE_IN_PLACE = (f"{METADATA_TABLE}/{PROPERTIES}", DEFINITIONS_PATH)


def copy_table(warehouse: Storage, source: str, target: str, *, lock_timeout_ms: int) -> ExpectedState:
    """Copy the table in directory `source` of the warehouse to `target`; returns the state that its reader will see.

    Holds the table's lock, so that no file is deleted meanwhile. `hoodie.properties` come last: a directory without them is not a table.
    Raises `LockTimeoutError`, and `StoredFileExistsError` if `target` is not empty.
    """
    table = storage_below(warehouse, source)
    with TableLock(table, lock_timeout_ms):
        state = TableState.load(table)
        check_no_commit_is_lost(state, lost_commits(state))
        pending, writing = _pending_files(state), _pending_writes(state)
        for file in warehouse.walk(source):
            path = file.path.removeprefix(f"{source}/")
            if path == PROPERTIES or path in pending or path.startswith(_LEFT):
                continue
            if any(one in path.rpartition("/")[2] for one in writing):
                continue  # a file that is being made
            if path in _CHANGE_IN_PLACE or not link_file(warehouse, file.path, warehouse, f"{target}/{path}"):
                copy_file(warehouse, file.path, warehouse, f"{target}/{path}", size=file.size)
        warehouse.create(f"{target}/{PROPERTIES}", table.read(PROPERTIES))
    return ExpectedState.of(state)


def _pending_writes(state: TableState) -> frozenset[str]:
    """Instants of which files may be made without the table's lock."""
    return frozenset(one.requested_time for one in state.timeline.pending() if one.action in _WRITES)


def _pending_files(state: TableState) -> frozenset[str]:
    """Files of incomplete writes. Pending compactions are copied, because logs belong to slices that a plan began, and so are interrupted
    restores and rollbacks: without them readers would see what they take back.
    """
    pending = {(one.requested_time, one.action) for one in state.timeline.pending() if one.action in _WRITES}
    files = state.active.files()
    return frozenset(file.path for one, file in files.items() if (one.requested_time, one.action) in pending)
