"""Files of completed instants that no commit names: a task attempt outlived its commit.

This engine's readers skip them (`view.named`, `read.log_scanner`). Other readers may not, so the next write that meets them, or `repair`,
removes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from lakehouse_engine.commit.leftovers.log_owners import LogOwners, find_log_owners
from lakehouse_engine.commit.rollback.blocks import ROLLBACK_TOKEN
from lakehouse_engine.errors import FormatError
from lakehouse_engine.model.files import LogFile
from lakehouse_engine.model.logged import ToldLogs
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.view.protected import protected_files
from lakehouse_engine.view.table_state import TableState


def stray_files(state: TableState, partitions: Iterable[str], *, most_logs: int | None = None) -> list[str]:
    """Sorted paths (relative to the table) of strays in these partitions, except pinned files.

    Looks into the blocks of at most `most_logs` log files that no commit names (None: all).
    """
    chosen = sorted(set(partitions))
    found = [base.path for partition in chosen for base in state.view.strays(partition)]
    # With a damaged commit, what was logged is unknown; base files are checked one by one. In a copy-on-write table, logs mean that its
    # properties are wrong.
    with suppress(FormatError):
        if state.config.table_type is TableType.MERGE_ON_READ:
            found += _stray_logs(state, list(islice(_unnamed_logs(state, chosen), most_logs)))
    return sorted(set(found) - protected_files(state).keys()) if found else []


def _stray_logs(state: TableState, unnamed: Sequence[LogFile]) -> list[str]:
    if not unnamed:
        return []
    told, quiet = state.manifest.told(None), _is_quiet(state)
    return [log.path for log in unnamed if _is_stray(state, log, told, torn=quiet)]


def _unnamed_logs(state: TableState, partitions: Iterable[str]) -> Iterator[LogFile]:
    """Only newest slices: logs of older ones are deleted with those, and what archived writes named is unknown."""
    slices = [piece for partition in partitions for piece in state.view.latest_slices(partition) if piece.log_files]
    if not slices:
        return
    named = {promise.path for promises in state.manifest.promises(None).values() for promise in promises}
    for piece in slices:
        yield from (log for log in piece.log_files if log.path not in named and log.write_token != ROLLBACK_TOKEN)


def _is_stray(state: TableState, log: LogFile, told: ToldLogs, *, torn: bool) -> bool:
    """True if only completed writes that do not name it have blocks in a log file. `torn`: also a file without any block."""
    owners = find_log_owners(state.storage, log)
    if owners is None:
        return False
    return torn if owners.is_torn else _are_told(owners, told)


def _are_told(owners: LogOwners, told: ToldLogs) -> bool:
    return not owners.takes_back and all(told.tells(writer) for writer in owners.writers)


def _is_quiet(state: TableState) -> bool:
    """True if no write is pending. Writers request their instant before they make files, so this holds for what a listing shows."""
    now = state.refresh().timeline
    return now == state.timeline and not now.pending().instants
