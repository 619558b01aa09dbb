"""Removes what no pending write needs: heartbeats and marker folders of writers that died (or lost their storage) before requesting their
instant, or after it was committed or rolled back.

A task attempt of a dead driver may have written a data file after the cleanup; its marker shows it.
"""

from __future__ import annotations

import logging

from lakehouse_engine.commit.concurrency.attempts import close_to_attempts, opened_instant
from lakehouse_engine.commit.concurrency.promised import forget_promise
from lakehouse_engine.commit.deletion import delete_files_of
from lakehouse_engine.commit.heartbeat import remove_heartbeat, remove_stale_heartbeats
from lakehouse_engine.commit.leftovers.log_owners import log_owners
from lakehouse_engine.commit.leftovers.strays import stray_files
from lakehouse_engine.commit.rollback.markers import marked_files
from lakehouse_engine.commit.staging import remove_dead_stages
from lakehouse_engine.commit.table_clock import PROBE
from lakehouse_engine.format.file_names import TEMP_FOLDER, is_base_file_name, is_log_file_name, parse_log_file
from lakehouse_engine.storage.paths import parent_of
from lakehouse_engine.timeline.heartbeats import HEARTBEATS
from lakehouse_engine.timeline.locks.settings import lock_options
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


def remove_leftovers(state: TableState) -> None:
    """Remove heartbeats and marker folders of instants that are not pending, marked files outside the table, a clock probe, and staged rows
    of dead writes.

    The table lock is held, and dead writes have been rolled back.
    """
    entries = state.storage.list(TEMP_FOLDER) if state.may_have_folder(TEMP_FOLDER) else []
    folders = [entry for entry in entries if entry.is_directory and entry.name.isdigit()]
    opened = [time for entry in entries if not entry.is_directory and (time := opened_instant(entry.name)) is not None]
    if any(entry.path == PROBE for entry in entries):
        state.storage.delete(PROBE)
    remove_dead_stages(state.storage, entries)
    known = [instant.requested_time for instant in state.timeline.pending()]
    if state.may_have_folder(HEARTBEATS):
        remove_stale_heartbeats(state.storage, known, lock_options(state.config))
    if not folders and not opened:
        return
    # A writer without the lock requests its instant before it makes the folder, so a timeline loaded now has it.
    state = state.refresh()
    pending = {instant.requested_time for instant in state.timeline.pending()}
    for time in dict.fromkeys(opened):
        if time not in pending:
            close_to_attempts(state.storage, time)
            forget_promise(state.storage, time)
            remove_heartbeat(state.storage, time)  # Hudi leaves it when it takes back a write of ours
    for folder in folders:
        if folder.name not in pending:
            logger.info("removing what the finished write %s of %s left in %s", folder.name, state.config.name, folder.path)
            delete_files_of(state.storage, folder.name, _strays(state, folder.name))
            state.storage.delete_tree(folder.path)


def _strays(state: TableState, time: str) -> list[str]:
    """Marked files of an instant that no commit names; for an archived one, those known not to be named."""
    completed = [instant for instant in state.timeline.completed().writes() if instant.requested_time == time]
    if not completed and state.timeline.is_committed(time):
        archived = marked_files(state.storage, time)
        return sorted(set(archived) & set(stray_files(state, (parent_of(path) for path in archived))))
    kept = {stat.path for instant in completed for stat in state.commit_metadata(instant).write_stats()}
    marked = [path for path in marked_files(state.storage, time) if path not in kept]
    return [path for path in marked if _is_stray(state, path, time)]


def _is_stray(state: TableState, path: str, time: str) -> bool:
    """A shared log file stays: uncommitted blocks in it do not count."""
    name = path.rpartition("/")[2]
    if is_base_file_name(name):
        return True
    if not is_log_file_name(name):
        return False
    file = parse_log_file(path.rpartition("/")[0], name)
    return state.storage.head(path) is not None and log_owners(state.storage, file).only(time)
