"""Moves instants to the archived timeline. A crash at any point leaves a table that reads the same; the next archiving finishes:

 0. if another program wrote one of them, records in the table's properties that paths do not prove what rows hold
 1. merges small files of the archive, then writes the instants to a new one, durably (`writers`)
 2. writes a checkpoint of the files that they left, durably
 3. deletes their requested and inflight files, durably before 4
 4. deletes their completed files, oldest first
 5. deletes older checkpoints, and files of the history that were merged into others long enough ago

After 1, instants are on both timelines, which readers of the active one do not notice; the next archiving looks at the newest archive file
and continues with 2. The checkpoint counts for readers once 4 is done. An instant never loses its completed file while it has other files:
it would look like a dead write. Before 1, commits of savepoints are kept aside (`KeptCommits`), so that the table can be restored to them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from lakehouse_engine.commit.checkpoint import keep_savepointed, write_checkpoint
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.order import in_time_order, is_later, latest
from lakehouse_engine.model.table_config import ROWS_KEEP_PARTITIONS_KEY
from lakehouse_engine.options import ArchiveOptions
from lakehouse_engine.read.pruning import has_other_writers, paths_may_tell
from lakehouse_engine.services.archive.writers import archive_writer
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.timeline.checkpoints import SAVEPOINTED, LiveCheckpoints
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.kept import KeptCommits
from lakehouse_engine.timeline.restores import restores
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

_States = dict[tuple[str, str], list[tuple[Instant, StoredFile]]]
"""State files of instants by time and completed action, in order of state."""


def finish_archiving(state: TableState) -> list[Instant]:
    """Remove instants that are archived but that a crash left on the active timeline. The table lock is held."""
    writer = archive_writer(state)
    KeptCommits(state.storage, state.format).forget_all_but(state.timeline.savepointed)
    LiveCheckpoints(state.storage, SAVEPOINTED).forget_all_but(state.timeline.savepointed)
    active = {_key(instant) for instant in state.timeline.completed()}
    both = _without_put_back(state, [instant for instant in writer.left_over() if _key(instant) in active])
    if both:
        logger.info("%d archived instants of %s are on the active timeline still; removing them", len(both), state.config.name)
        files = _state_files(state)
        # Since then, a savepoint may have been made on one of them.
        _keep_aside(state, [files[_key(instant)] for instant in both if _is_savepointed(state, instant)])
        keep_savepointed(state)
        _take_away(state, both, files, state.archived_timeline.newest_number())
    return both


def _without_put_back(state: TableState, both: Sequence[Instant]) -> list[Instant]:
    """Without writes that a restore put back on the active timeline: these stay.

    Such a write goes if a later write goes: then it was archived again since, and the timeline would begin with it, so that none of the
    later ones counted.
    """
    put_back = {record.target for record in restores(state.active, state.timeline)}
    last = latest(instant.requested_time for instant in both if instant.action.is_write)
    return [instant for instant in both if instant.requested_time not in put_back or is_later(last, instant.requested_time)]


def execute_archive(state: TableState, instants: Sequence[Instant], options: ArchiveOptions) -> tuple[str, ...]:
    """Archive completed instants, in that order; returns paths of the written archive files. The table lock is held.

    Raises `CorruptInstantError` for a damaged completed file, before anything is changed.
    """
    files, writer = _state_files(state), archive_writer(state)
    write = writer.read([files[_key(instant)] for instant in instants])
    _keep_aside(state, [files[_key(instant)] for instant in instants if _is_savepointed(state, instant)])
    _remember_other_writers(state, instants)
    keep_savepointed(state)
    written = write(options)
    _take_away(state, instants, files, written.number)
    writer.tidy(written)
    return written.paths


def _remember_other_writers(state: TableState, instants: Sequence[Instant]) -> None:
    """Record in the properties if another program wrote one of them: `read.pruning` looks for writers only on the active timeline."""
    writes = [instant for instant in instants if instant.is_completed and instant.action.is_write]
    if state.config.partition_fields and paths_may_tell(state.config) and has_other_writers(state, writes):
        ConfigStore(state.storage).update({ROWS_KEEP_PARTITIONS_KEY: "true"})


def _take_away(state: TableState, instants: Sequence[Instant], files: _States, archive_number: int) -> None:
    writes = [instant.requested_time for instant in instants if instant.action.is_write]
    checkpoint = write_checkpoint(state, latest(writes), archive_number)
    _remove(state, instants, files)
    LiveCheckpoints(state.storage).forget_before(checkpoint)


def _is_savepointed(state: TableState, instant: Instant) -> bool:
    return instant.action.is_write and instant.requested_time in state.timeline.savepointed


def _keep_aside(state: TableState, commits: Iterable[Sequence[tuple[Instant, StoredFile]]]) -> None:
    """Keep commits aside before they count as archived: a restore needs them whole, and the archive does not keep all their content."""
    kept = KeptCommits(state.storage, state.format)
    for files in commits:
        kept.keep((instant, state.storage.read(file.path)) for instant, file in files if instant.action is not Action.SAVEPOINT)


def _key(instant: Instant) -> tuple[str, str]:
    return instant.requested_time, str(instant.action.completes_as)


def _state_files(state: TableState) -> _States:
    found: _States = {}
    for entry in state.storage.list(state.format.timeline_folder):
        instant = None if entry.is_directory else state.format.parse_file_name(entry.name)
        if instant is not None:
            found.setdefault(_key(instant), []).append((instant, entry))
    return {key: sorted(states, key=lambda pair: pair[0].state.rank) for key, states in found.items()}


def _remove(state: TableState, instants: Sequence[Instant], files: Mapping[tuple[str, str], Sequence[tuple[Instant, StoredFile]]]) -> None:
    timeline = state.active
    oldest_first = in_time_order(instants, lambda instant: instant.requested_time)
    states = [found for instant in oldest_first for found, _ in files.get(_key(instant), ())]
    timeline.delete_all(found for found in states if not found.is_completed)
    timeline.delete_all(found for found in states if found.is_completed)
