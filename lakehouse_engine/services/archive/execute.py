"""Move instants to the archived timeline. A crash anywhere leaves a table that reads the same, and the next archiving finishes:

 0. where another program wrote one of them, the table's properties say from now on that paths are no word on its rows
 1. small files of the archive become one, then the instants are in one more, durable (`writers`)
 2. a checkpoint of the files that they left, durable
 3. their requested and inflight files are deleted, and that is durable before
 4. their completed files are deleted, oldest first
 5. older checkpoints are deleted, and files of the history that are merged into others for long enough

After 1, instants are on both timelines, which no reader of the active one notices; whoever archives next looks at the newest archive
file and goes on with 2. The checkpoint counts for readers once 4 is done. An instant never loses its completed file while it has others:
it would be taken for a dead write. Before 1, commits of savepoints are kept aside (`KeptCommits`), so that the table can be restored to
them.
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
"""State files of instants by time and the action that they complete as, in order of state."""


def finish_archiving(state: TableState) -> list[Instant]:
    """Remove from the active timeline what a crash left there after it was archived. The table lock is held."""
    writer = archive_writer(state)
    KeptCommits(state.storage, state.layout).forget_all_but(state.timeline.savepointed)
    LiveCheckpoints(state.storage, SAVEPOINTED).forget_all_but(state.timeline.savepointed)
    active = {_key(instant) for instant in state.timeline.completed()}
    both = _without_put_back(state, [instant for instant in writer.left_over() if _key(instant) in active])
    if both:
        logger.info("%d archived instants of %s are on the active timeline still; removing them", len(both), state.config.name)
        files = _state_files(state)
        # A savepoint may have been made on one of them since.
        _keep_aside(state, [files[_key(instant)] for instant in both if _is_savepointed(state, instant)])
        keep_savepointed(state)
        _take_away(state, both, files, state.archived_timeline.newest_number())
    return both


def _without_put_back(state: TableState, both: Sequence[Instant]) -> list[Instant]:
    """A restore to an archived write put it back on the active timeline, where it stays. Not so where a later write goes: then it was
    archived again since, and the timeline would begin with it, so that none of the later ones counted any more.
    """
    put_back = {record.target for record in restores(state.active, state.timeline)}
    last = latest(instant.requested_time for instant in both if instant.action.is_write)
    return [instant for instant in both if instant.requested_time not in put_back or is_later(last, instant.requested_time)]


def execute_archive(state: TableState, instants: Sequence[Instant], options: ArchiveOptions) -> tuple[str, ...]:
    """Archive completed instants, in that order; paths of the archive files that were written. The table lock is held.

    Raises `CorruptInstantError` for a completed file that is torn, before anything is changed.
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
    """Readers that go by partition paths ask who wrote, of the active timeline alone (`read.pruning`)."""
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
    """Before anything says that they are archived: a restore needs them whole, and the archive does not keep all that they say."""
    kept = KeptCommits(state.storage, state.layout)
    for files in commits:
        kept.keep((instant, state.storage.read(file.path)) for instant, file in files if instant.action is not Action.SAVEPOINT)


def _key(instant: Instant) -> tuple[str, str]:
    return instant.requested_time, str(instant.action.completes_as)


def _state_files(state: TableState) -> _States:
    found: _States = {}
    for entry in state.storage.list(state.layout.timeline_folder):
        instant = None if entry.is_directory else state.layout.parse_file_name(entry.name)
        if instant is not None:
            found.setdefault(_key(instant), []).append((instant, entry))
    return {key: sorted(states, key=lambda pair: pair[0].state.rank) for key, states in found.items()}


def _remove(state: TableState, instants: Sequence[Instant], files: Mapping[tuple[str, str], Sequence[tuple[Instant, StoredFile]]]) -> None:
    timeline = state.active
    oldest_first = in_time_order(instants, lambda instant: instant.requested_time)
    states = [found for instant in oldest_first for found, _ in files.get(_key(instant), ())]
    timeline.delete_all(found for found in states if not found.is_completed)
    timeline.delete_all(found for found in states if found.is_completed)
