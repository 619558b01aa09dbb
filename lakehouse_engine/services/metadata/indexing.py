"""Index builds as a service: planned on the timeline, run beside writers by one executor at a time (docs/adr/0070)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from lakehouse_engine.commit.concurrency.executors import executor_lock, lock_file
from lakehouse_engine.commit.heartbeat import beating
from lakehouse_engine.commit.indexing import complete_build, settle_build
from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.commit.table_clock import table_clock
from lakehouse_engine.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    IndexingError,
    InstantNotFoundError,
    LakehouseError,
    LockTimeoutError,
    MissingFileError,
    StoredFileNotFoundError,
)
from lakehouse_engine.format.metadata_table.definitions import IndexDefinition
from lakehouse_engine.metadata_table.building import beside
from lakehouse_engine.metadata_table.building.build import build, check_nothing_pending, check_partitions
from lakehouse_engine.metadata_table.building.entries import Entries
from lakehouse_engine.metadata_table.building.naming import define_indexes, undefine
from lakehouse_engine.metadata_table.building.plans import (
    build_of,
    is_foreign,
    newest_contiguous,
    partitions_of,
    pending_builds,
    plan_of,
    running,
)
from lakehouse_engine.metadata_table.partitions import FILES, PARTITION_STATS
from lakehouse_engine.metadata_table.table import METADATA_TABLE, is_in_use
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.services.executor.scheduling import request
from lakehouse_engine.services.executor.service import Kind
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import storage_below
from lakehouse_engine.timeline.locks.settings import lock_options
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

_KIND = Kind(Action.INDEXING, WriteOperationType.INDEX, "index build", IndexingError)
_ATTEMPTS = 3
"""Runs that are tried if files that a build reads are cleaned or archived meanwhile."""
_LEAST_PATIENCE_MS = 1_000
_GONE = (StoredFileNotFoundError, MissingFileError, InstantNotFoundError)


def schedule(
    storage: Storage, partitions: Sequence[str], define: Sequence[IndexDefinition], *, lock_timeout_ms: int
) -> tuple[Instant, bool] | None:
    """Plan to build the partitions that are not there, with what they need; returns the pending plan, and whether it is new. None if all
    are there. `define` are their definitions, which are stored.

    Raises, with nothing changed, as `check_partitions`; `CommitConflictError` if another plan has some of the partitions, and while a
    writer of Hudi is at work; `LockTimeoutError`.
    """
    check_partitions(TableState.load(storage), partitions, define)
    with locked_table(storage, lock_timeout_ms=lock_timeout_ms, alone_ms=lock_timeout_ms, among_ours=True) as state:
        missing = _missing(state, check_partitions(state, partitions, define))
        if not missing:
            return None
        known = _known_plan(state, missing)
        if known is not None:
            return known, False
        new = [one for one in define if one.name in missing]
        if new:
            define_indexes(state, new)
            state = state.advance()
        return request(_KIND, state, plan_of(missing, newest_contiguous(state))), True


def check_can_begin(data: TableState) -> None:
    """Raise `CommitConflictError` if a build would have to make the metadata table while an instant is pending."""
    if not is_in_use(data):
        check_nothing_pending(data)


def _missing(state: TableState, wanted: Sequence[str]) -> list[str]:
    there = state.config.metadata_partitions if is_in_use(state) else ()
    return [name for name in wanted if name not in there and name != FILES]


def _known_plan(state: TableState, missing: Sequence[str]) -> Instant | None:
    """The pending plan for just these partitions; None if no plan has any of them. Raises `CommitConflictError` otherwise."""
    plans = {found: partitions_of(state, found) for name in missing if (found := build_of(state, name)) is not None}
    if not plans:
        return None
    found, names = next(iter(plans.items()))
    if set(missing) <= set(names):
        return found
    raise CommitConflictError(
        f"{', '.join(names)} of {state.config.name} is being built by {found}; run that plan first, or drop the index",
        instant=found,
        table=state.config.name,
    )


def planned_build(data: TableState, partition: str) -> Instant | None:
    """The pending plan to build a partition; None without one."""
    return build_of(data, partition)


def planned_builds(data: TableState) -> list[tuple[Instant, tuple[str, ...]]]:
    """Pending builds, oldest first, and the partitions of each."""
    return [(one, partitions_of(data, one)) for one in pending_builds(data)]


def planned_partitions(storage: Storage, planned: Instant) -> tuple[str, ...]:
    """Partitions that a pending plan is to build."""
    return partitions_of(TableState.load(storage), planned)


def run(storage: Storage, instant_time: str, *, lock_timeout_ms: int) -> None:
    """Build what the plan of an instant has, beside writers, and complete it. Nothing if it is completed, or gone.

    Raises `IndexingError` if another program began it, or took back what was built; `LockTimeoutError` if another process runs it, or the
    table is locked when it begins; `CommitConflictError` if there is no metadata table yet and something is pending; `RecordKeyError` if a
    key is in the table twice; and as reading the table. The plan is then as before.
    """
    state = TableState.load(storage)
    planned = _pending(state, instant_time)
    if planned is None:
        return
    _check_not_foreign(state, planned)
    with executor_lock(storage, instant_time, lock_timeout_ms):
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                _run(storage, instant_time, lock_timeout_ms)
                break
            except _GONE as error:
                if attempt == _ATTEMPTS:
                    raise
                logger.warning("%s of %s begins again: what it read is gone (%s)", planned, storage.root, error)
        storage.delete(lock_file(instant_time))


def _pending(state: TableState, instant_time: str) -> Instant | None:
    return next((one for one in pending_builds(state) if one.requested_time == instant_time), None)


def _check_not_foreign(state: TableState, planned: Instant) -> None:
    if is_foreign(state, planned):
        raise IndexingError(
            f"another program began {planned} of {state.config.name}; let it finish, or drop the index with that program",
            instant=planned,
            table=state.config.name,
        )


def _run(storage: Storage, instant_time: str, lock_timeout_ms: int) -> None:
    known = TableState.load(storage)
    planned = _pending(known, instant_time)
    if planned is None:
        return
    # Opens all footers, and so does not wait for the lock. An estimate is enough.
    counts = Entries.counted(known, [name for name in partitions_of(known, planned) if name != PARTITION_STATS])
    begun = _begun(storage, instant_time, counts, lock_timeout_ms, among_ours=is_in_use(known))
    if begun is None:
        return
    try:
        # Hudi 1.x takes back the delta commit of a build without a heartbeat (`getFailedIndexingCommitsToRollbackForMetadataTable`).
        with beating(storage_below(storage, METADATA_TABLE), begun.delta.requested_time, lock_options(known.config)):
            metadata = beside.write(begun)
        with _locked_at_last(storage, begun.instant, lock_timeout_ms) as now:
            beside.finish(begun, metadata, now, table_clock(now))
            complete_build(now, begun.instant)
    except CommitOutcomeUnknownError:
        raise
    except BaseException:
        _settle(storage, instant_time, lock_timeout_ms)
        raise


def _begun(
    storage: Storage, instant_time: str, counts: dict[str, int], lock_timeout_ms: int, *, among_ours: bool
) -> beside.Build | None:
    """The build that has begun; None if there is nothing to build beside writers any more, and the instant is completed."""
    with locked_table(storage, lock_timeout_ms=lock_timeout_ms, alone_ms=lock_timeout_ms, among_ours=among_ours) as state:
        found = _pending(state, instant_time)
        if found is not None and found.state is State.INFLIGHT:
            state = settle_build(state, found)
            found = _pending(state, instant_time)
        if found is None:
            return None
        if not is_in_use(state):
            state = build(state, [FILES], table_clock(state))
        missing = _missing(state, [name for name in counts if name not in state.config.metadata_partitions])
        if missing:
            return beside.begin(state, found, {name: counts[name] for name in missing})
        content = running((), newest_contiguous(state), instant_time)
        complete_build(state, state.active.to_inflight(found, content))
        return None


@contextmanager
def _locked_at_last(storage: Storage, instant: Instant, lock_timeout_ms: int) -> Iterator[TableState]:
    """Lock the table, however long others hold it: the build may have taken hours, and they will finish."""
    with ExitStack() as lock:
        while True:
            try:
                state = lock.enter_context(locked_table(storage, lock_timeout_ms=max(lock_timeout_ms, _LEAST_PATIENCE_MS)))
                break
            except LockTimeoutError as error:
                logger.warning("%s is written, and waits on for the lock to be completed: %s", instant, error)
        yield state


def _settle(storage: Storage, instant_time: str, lock_timeout_ms: int) -> None:
    try:
        with locked_table(storage, lock_timeout_ms=lock_timeout_ms) as state:
            found = _pending(state, instant_time)
            if found is not None and found.state is State.INFLIGHT:
                settle_build(state, found)
    except LakehouseError as error:
        # The caller must see the failure that led here; the next write settles it.
        logger.warning("the index build %s could not be taken back (%s); the next write does", instant_time, error)


def unschedule(storage: Storage, instant_time: str, *, lock_timeout_ms: int, kept: Collection[str] = ()) -> None:
    """Take a plan that does not run from the timeline, and the definitions of what it was to build, except those `kept`.

    Raises `LockTimeoutError` if a process runs it, and `IndexingError` if another program does.
    """
    with ExitStack() as locks:
        state = locks.enter_context(locked_table(storage, lock_timeout_ms=lock_timeout_ms))
        found = _pending(state, instant_time)
        if found is None:
            return
        _check_not_foreign(state, found)
        locks.enter_context(executor_lock(storage, instant_time, 0))
        planned = partitions_of(state, found)
        if found.state is State.INFLIGHT:
            state = settle_build(state, found)
        left = [name for name in planned if name not in (*state.config.metadata_partitions, *kept)]
        undefine(state, left)
        if _pending(state, instant_time) is not None:
            state.active.delete_pending(found.at(State.REQUESTED))
        storage.delete(lock_file(instant_time))
