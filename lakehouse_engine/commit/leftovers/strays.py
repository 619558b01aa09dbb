"""Files that an attempt of a task left which outlived its commit: of completed instants, and named by none.

Readers of this engine pass them over (`view.named`, `read.log_scanner`); others may not know of them, so they are removed by the next write
that meets them, and by `repair`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from lakehouse_engine.commit.leftovers.log_owners import LogOwners, log_owners
from lakehouse_engine.commit.rollback.blocks import ROLLBACK_TOKEN
from lakehouse_engine.errors import FormatError, StoredFileNotFoundError
from lakehouse_engine.model.files import LogFile
from lakehouse_engine.model.logged import ToldLogs
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.view.protected import protected_files
from lakehouse_engine.view.table_state import TableState


def stray_files(state: TableState, partitions: Iterable[str], *, most_logs: int | None = None) -> list[str]:
    """Paths (relative to the table) of strays in these partitions, sorted. Files that a savepoint pins are none.

    Blocks of log files that no commit names are looked through, of `most_logs` of them (None: all).
    """
    chosen = sorted(set(partitions))
    found = [base.path for partition in chosen for base in state.view.strays(partition)]
    # With a damaged commit it is not known what was logged; that of a base file is asked for each by itself. Nor is it in a table that is
    # called copy-on-write: logs that are in it say that its properties are wrong.
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
    """Of the newest slices: logs of older ones go with those, and what archived writes named is not known."""
    slices = [piece for partition in partitions for piece in state.view.latest_slices(partition) if piece.log_files]
    if not slices:
        return
    named = {promise.path for promises in state.manifest.promises(None).values() for promise in promises}
    for piece in slices:
        yield from (log for log in piece.log_files if log.path not in named and log.write_token != ROLLBACK_TOKEN)


def _is_stray(state: TableState, log: LogFile, told: ToldLogs, *, torn: bool) -> bool:
    """Whether nobody has anything in a log file but completed writes that do not name it. `torn`: a file without any block too."""
    try:
        owners = log_owners(state.storage, log)
    except StoredFileNotFoundError:
        return False
    return torn if owners.is_torn else _are_told(owners, told)


def _are_told(owners: LogOwners, told: ToldLogs) -> bool:
    return not owners.takes_back and all(told.tells(writer) for writer in owners.writers)


def _is_quiet(state: TableState) -> bool:
    """Whether nobody is writing. A writer requests its instant before it makes a file, so after a listing this holds for what it shows."""
    now = state.refresh().timeline
    return now == state.timeline and not now.pending().instants
