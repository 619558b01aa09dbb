"""Runs table services after a commit: those that the options ask for, when they are due.

The commit stands whatever happens: the failure of a service is reported in the result and the log, and the next commit tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from lakehouse_engine.engine import LocalRunner, TaskRunner, local_runner
from lakehouse_engine.errors import ClusteringError, CommitConflictError, CompactionError, LakehouseError, LockTimeoutError
from lakehouse_engine.metadata_table.building.build import check_nothing_pending
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.options import ClusteringOptions, CompactionOptions, ServiceOptions, WriteOptions
from lakehouse_engine.services import cluster
from lakehouse_engine.services.archive import archive, archive_is_due
from lakehouse_engine.services.clean import clean, clean_is_due
from lakehouse_engine.services.compact import is_due, run, schedule, schedule_and_run
from lakehouse_engine.services.executor.scheduling import pending_plans
from lakehouse_engine.services.metadata import building
from lakehouse_engine.services.metadata.automatic import build_record_index
from lakehouse_engine.services.metadata.upkeep import run_due
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

_Service = Callable[[TableState], bool]
"""Runs on the current table; True if the table may have changed."""


def after_commit(
    storage: Storage, options: ServiceOptions, write_options: WriteOptions, runner: TaskRunner, *, builds_index: bool = False
) -> tuple[str, ...]:
    """Run the services that are due; returns a message for each failure. The caller does not hold the table lock; each service takes it.
    `builds_index`: the write found that a record index pays (`index.choice`).
    """
    compaction, clustering = options.compaction, options.clustering
    wanted: list[tuple[str, bool, _Service]] = [
        ("log compaction", compaction.log_inline, lambda state: _compact_logs(state, compaction, write_options, runner)),
        ("compaction", compaction.inline or compaction.schedule_inline, lambda state: _compact(state, compaction, write_options, runner)),
        ("clustering", clustering.inline or clustering.schedule_inline, lambda state: _cluster(state, clustering, write_options, runner)),
        ("clean", options.clean.automatic, lambda state: _clean(state, options, write_options)),
        ("dropping of the metadata table", options.metadata_table.is_dropped, lambda state: _drop_metadata_table(state, write_options)),
        (
            "building of the metadata table",
            bool(options.metadata_table.partitions),
            lambda state: _build_metadata_table(state, options.metadata_table.partitions, write_options),
        ),
        (
            "building of the record index",
            builds_index,
            lambda state: build_record_index(state, lock_timeout_ms=write_options.lock_timeout_ms),
        ),
        ("services of the metadata table", True, lambda state: _metadata(state, options, write_options, runner)),
        ("archiving", options.archive.automatic, lambda state: _archive(state, options, write_options)),
    ]
    failures, state = [], None
    for name, is_wanted, service in wanted:
        if is_wanted:
            failure, state = _failure(name, storage, service, state)
            failures.append(failure)
    return tuple(message for message in failures if message is not None)


def _failure(name: str, storage: Storage, service: _Service, state: TableState | None) -> tuple[str | None, TableState | None]:
    """Run a service on `state` (None: on the current table). Returns a message if it failed, and the state if it is still current."""
    try:
        known = TableState.load(storage) if state is None else state
        return None, None if service(known) else known
    except Exception as error:
        unexpected = not isinstance(error, LakehouseError)
        logger.warning("the write of %s is committed, but the %s after it failed: %s", storage.root, name, error, exc_info=unexpected)
        return f"the {name} after the commit failed: {error}", None


def _compact(state: TableState, options: CompactionOptions, write_options: WriteOptions, runner: TaskRunner) -> bool:
    """Like Hudi's inline compaction: first pending ones, then a new one if the trigger says so."""
    if state.config.table_type is not TableType.MERGE_ON_READ:
        return False
    storage, timeout = state.storage, write_options.lock_timeout_ms
    pending = pending_plans(state, Action.COMPACTION) if options.inline else []
    for instant in pending:
        _run_pending(state, instant, options, write_options, runner)
    if not is_due(state, options):
        return bool(pending)
    try:
        if options.inline:
            schedule_and_run(storage, options, write_options, runner, lock_timeout_ms=timeout, when_due=True)
        else:
            schedule(storage, options, lock_timeout_ms=timeout, when_due=True)
    except CommitConflictError as error:
        logger.info("no compaction of %s is planned now: %s", state.config.name, error)
    return True


def _run_pending(
    state: TableState, instant: Instant, options: CompactionOptions, write_options: WriteOptions, runner: TaskRunner
) -> None:
    timeout = write_options.lock_timeout_ms
    try:
        run(state.storage, options, write_options, runner, instant=instant.requested_time, lock_timeout_ms=timeout, wait=False)
    except (LockTimeoutError, CompactionError) as error:
        logger.info("%s of %s is left to whoever runs it: %s", instant, state.config.name, error)


def _compact_logs(state: TableState, options: CompactionOptions, write_options: WriteOptions, runner: TaskRunner) -> bool:
    if state.config.table_type is not TableType.MERGE_ON_READ:
        return False
    storage, timeout = state.storage, write_options.lock_timeout_ms
    waiting = [instant.requested_time for instant in pending_plans(state, Action.LOG_COMPACTION)]
    for time in waiting:
        _run_logs(state, time, options, write_options, runner)
    try:
        planned = schedule(storage, options, lock_timeout_ms=timeout, log_compaction=True, when_due=True)
    except CommitConflictError as error:
        logger.info("no log compaction of %s is planned now: %s", state.config.name, error)
        return True
    if planned.instant is not None:
        _run_logs(state, planned.instant, options, write_options, runner)
    return True


def _run_logs(state: TableState, time: str, options: CompactionOptions, write_options: WriteOptions, runner: TaskRunner) -> None:
    timeout = write_options.lock_timeout_ms
    try:
        run(state.storage, options, write_options, runner, instant=time, lock_timeout_ms=timeout, log_compaction=True, wait=False)
    except (CommitConflictError, CompactionError) as error:
        # Another process has run it meanwhile, or planned another, or a program without the lock is writing, or a writer of Hudi.
        logger.info("log compaction %s of %s is left to whoever runs it: %s", time, state.config.name, error)


def _cluster(state: TableState, options: ClusteringOptions, write_options: WriteOptions, runner: TaskRunner) -> bool:
    """Like Hudi's inline clustering: first pending ones, then a new one if enough was committed."""
    storage, timeout = state.storage, write_options.lock_timeout_ms
    pending = pending_plans(state, state.format.clustering_action) if options.inline else []
    for instant in pending:
        _run_clustering(state, instant, options, write_options, runner)
    if not cluster.is_due(state, options):
        return bool(pending)
    try:
        if options.inline:
            cluster.schedule_and_run(storage, options, write_options, runner, lock_timeout_ms=timeout, when_due=True)
        else:
            cluster.schedule(storage, options, write_options, lock_timeout_ms=timeout, when_due=True)
    except CommitConflictError as error:
        logger.info("no clustering of %s is planned now: %s", state.config.name, error)
    return True


def _run_clustering(
    state: TableState, instant: Instant, options: ClusteringOptions, write_options: WriteOptions, runner: TaskRunner
) -> None:
    timeout = write_options.lock_timeout_ms
    try:
        cluster.run(state.storage, options, write_options, runner, instant=instant.requested_time, lock_timeout_ms=timeout, wait=False)
    except (LockTimeoutError, ClusteringError) as error:
        logger.info("%s of %s is left to whoever runs it: %s", instant, state.config.name, error)


def _clean(state: TableState, options: ServiceOptions, write_options: WriteOptions) -> bool:
    is_due_now = clean_is_due(state, options.clean)
    if is_due_now:
        clean(state.storage, options.clean, lock_timeout_ms=write_options.lock_timeout_ms)
    return is_due_now


def _drop_metadata_table(state: TableState, write_options: WriteOptions) -> bool:
    if not state.config.metadata_partitions:
        return False
    building.drop(state.storage, lock_timeout_ms=write_options.lock_timeout_ms)
    return True


def _build_metadata_table(state: TableState, wanted: Sequence[str], write_options: WriteOptions) -> bool:
    """Build those of the partitions that the metadata table lacks, once the table has files and nothing is pending."""
    missing = [name for name in wanted if name not in state.config.metadata_partitions]
    if not missing or not state.live_partitions():
        return False
    try:
        check_nothing_pending(state)
        building.build(state.storage, missing, lock_timeout_ms=write_options.lock_timeout_ms)
    except CommitConflictError as error:
        logger.info("the metadata table of %s is not built now: %s", state.config.name, error)
    return True


def _metadata(state: TableState, options: ServiceOptions, write_options: WriteOptions, runner: TaskRunner) -> bool:
    """Before archiving, which does not pass what the metadata table has in logs only. Does not change the table itself."""
    here = runner if isinstance(runner, LocalRunner) else local_runner({})
    run_due(state, options, here, lock_timeout_ms=write_options.lock_timeout_ms)
    return False


def _archive(state: TableState, options: ServiceOptions, write_options: WriteOptions) -> bool:
    is_due_now = archive_is_due(state, options.archive, clean=options.clean, compaction=options.compaction)
    if is_due_now:
        timeout = write_options.lock_timeout_ms
        archive(state.storage, options.archive, lock_timeout_ms=timeout, clean=options.clean, compaction=options.compaction)
    return is_due_now
