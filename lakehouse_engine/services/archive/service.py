"""`archive`: keeps the active timeline short. Archived instants stay in the table and in its history."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse_engine.commit.concurrency.executors import forget_done
from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.order import Order
from lakehouse_engine.model.services import ArchiveResult
from lakehouse_engine.options import ArchiveOptions, CleanOptions, CompactionOptions
from lakehouse_engine.services.archive.execute import execute_archive, finish_archiving
from lakehouse_engine.services.archive.plan import is_due, plan_archive
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.lock import LOCK_FILE
from lakehouse_engine.timeline.locks.waiting import forget_dead
from lakehouse_engine.view.table_state import TableState

_COMPACTION = CompactionOptions()


def archive(
    storage: Storage,
    options: ArchiveOptions,
    *,
    lock_timeout_ms: int,
    dry_run: bool = False,
    clean: CleanOptions,
    compaction: CompactionOptions = _COMPACTION,
    data: TableState | None = None,
) -> ArchiveResult:
    """Archive instants that `options` do not keep on the active timeline. `dry_run` changes nothing.

    `clean` and `compaction` are the options of those services: what they need stays. `data`: the table whose metadata table this is.
    Finishes an interrupted archiving first. Raises `OptionError` if fewer commits stay than a clean keeps readable, `LockTimeoutError`,
    `TableNotFoundError`.
    """
    options.check_keeps_enough(clean)
    if dry_run:
        planned = plan_archive(TableState.load(storage), options, clean, compaction, data)
        return ArchiveResult(archived=_times(planned.instants), kept=planned.kept, dry_run=True)
    with locked_table(storage, lock_timeout_ms=lock_timeout_ms) as state:
        if finish_archiving(state):
            state = state.refresh()
        forget_dead(storage, LOCK_FILE)
        forget_done(storage, [instant.requested_time for instant in state.timeline.pending()])
        planned = plan_archive(state, options, clean, compaction, data)
        files = execute_archive(state, planned.instants, options) if planned.instants else ()
        return ArchiveResult(archived=_times(planned.instants), files_written=files, kept=planned.kept)


def archive_is_due(
    state: TableState,
    options: ArchiveOptions,
    *,
    clean: CleanOptions,
    compaction: CompactionOptions = _COMPACTION,
    data: TableState | None = None,
) -> bool:
    """True if a write should archive when it is done. Opens few files: replace commits that would go, and savepoints."""
    options.check_keeps_enough(clean)
    return is_due(state, options, clean, compaction, data)


def _times(instants: Sequence[Instant]) -> tuple[str, ...]:
    return tuple(Order.by_request().sorted(instant.requested_time for instant in instants))
