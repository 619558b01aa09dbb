"""Table services of the metadata table after a commit of its data table: clean, then compaction, then archiving, each when it is due.

They are those of any table, with the options of the data table's services as Hudi derives them (`HoodieMetadataWriteUtils`), and run under
the data table's lock: nothing writes to the metadata table without it.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.commit.table_clock import wall_time
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.metadata_table.compaction import blocked_by
from lakehouse_engine.metadata_table.table import is_in_use, metadata_state
from lakehouse_engine.metadata_table.written import unmerged
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.options import ArchiveOptions, CleanOptions, CompactionOptions, ServiceOptions
from lakehouse_engine.services.archive import archive, archive_is_due
from lakehouse_engine.services.clean import clean
from lakehouse_engine.services.clean.policies import KEEP_LATEST_BY_HOURS, retention
from lakehouse_engine.services.executor.scheduling import pending_plans
from lakehouse_engine.services.metadata.clock import CLEAN_SUFFIX, named_instants, service_instant
from lakehouse_engine.services.metadata.compaction import compact
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

_LEAST_COMMITS, _MORE_COMMITS = 3, 1.2
"""Commits that a clean of the metadata table keeps readable: at least, and as a multiple of those of the data table."""
_UNTIL_CLEAN = 3
"""Instants after a compaction before a clean, or fewer if compactions are: readers that began before it still read what it replaced."""
_RESUMED = (Action.COMPACTION, Action.CLEAN)


def run_due(data: TableState, options: ServiceOptions, runner: LocalRunner, *, lock_timeout_ms: int) -> None:
    """Run the services of the metadata table that are due; nothing without one in use. File groups are merged by the threads of `runner`.

    Raises `LockTimeoutError`, and what a service raises; each is safe to run again.
    """
    if not is_in_use(data) or not _is_due(data, metadata_state(data), options):
        return
    with locked_table(data.storage, lock_timeout_ms=lock_timeout_ms) as current:
        if is_in_use(current):
            _run(current, options, runner, lock_timeout_ms)


def _is_due(data: TableState, metadata: TableState, options: ServiceOptions) -> bool:
    return bool(
        pending_plans(metadata, Action.COMPACTION)
        or compaction_is_due(metadata, options)
        or _clean_is_due(metadata, options)
        or _archive_is_due(data, metadata, options)
    )


def _run(data: TableState, options: ServiceOptions, runner: LocalRunner, lock_timeout_ms: int) -> None:
    metadata = metadata_state(data)
    busy = _in_the_way(metadata)
    if busy is not None:
        logger.info("the services of the metadata table of %s wait: %s is pending there", data.config.name, busy)
        return
    kept = clean_options(options)
    if _clean_is_due(metadata, options):
        with named_instants(data, metadata, CLEAN_SUFFIX):
            clean(metadata.storage, kept, lock_timeout_ms=lock_timeout_ms)
        metadata = metadata.refresh()
    if pending_plans(metadata, Action.COMPACTION) or compaction_is_due(metadata, options):
        metadata = _compacted(data, metadata, runner, lock_timeout_ms)
    if _archive_is_due(data, metadata, options):
        archiving, compaction = archive_options(options), _compaction_options(options)
        with named_instants(data, metadata, ""):
            archive(metadata.storage, archiving, lock_timeout_ms=lock_timeout_ms, clean=kept, compaction=compaction, data=data)


def _compacted(data: TableState, metadata: TableState, runner: LocalRunner, lock_timeout_ms: int) -> TableState:
    blocking = blocked_by(data, metadata)
    if blocking is not None:
        logger.info("the metadata table of %s is not compacted while %s is pending", data.config.name, blocking)
        return metadata
    done = compact(data, metadata, runner, lock_timeout_ms=lock_timeout_ms)
    if done is not None:
        logger.info("compacted %d file groups of the metadata table of %s", len(list(done.write_stats())), data.config.name)
    return metadata.refresh()


def _in_the_way(metadata: TableState) -> Instant | None:
    """A pending delta commit, rollback or restore, which the writer of the next commit takes back or finishes."""
    return next((one for one in metadata.timeline.pending() if one.action not in _RESUMED), None)


def compaction_is_due(metadata: TableState, options: ServiceOptions) -> bool:
    """True if there are enough delta commits since the last compaction."""
    return len(unmerged(metadata)) >= options.metadata_table.delta_commits


def clean_options(options: ServiceOptions) -> CleanOptions:
    """The data table's policy, keeping more commits. Groups of one partition are replaced one by one, so each is looked at."""
    retained = max(_LEAST_COMMITS, int(_MORE_COMMITS * options.clean.commits_retained))
    return replace(options.clean, commits_retained=retained, incremental=False)


def archive_options(options: ServiceOptions) -> ArchiveOptions:
    """One commit more than the data table, and more than a clean keeps readable."""
    least = max(options.archive.min_commits + 1, clean_options(options).commits_readable + 1)
    return replace(options.archive, min_commits=least, max_commits=max(options.archive.max_commits + 1, least))


def _compaction_options(options: ServiceOptions) -> CompactionOptions:
    return CompactionOptions(delta_commits=options.metadata_table.delta_commits)


def _clean_is_due(metadata: TableState, options: ServiceOptions) -> bool:
    if any(one.action is Action.CLEAN for one in metadata.timeline.pending()):
        return True
    instant = service_instant(metadata, CLEAN_SUFFIX)
    if not options.clean.automatic or (instant and metadata.timeline.contains(instant)):
        return False
    if _since_compaction(metadata) < min(_UNTIL_CLEAN, options.metadata_table.delta_commits):
        return False
    kept = clean_options(options)
    now = wall_time(metadata) if kept.policy == KEEP_LATEST_BY_HOURS else ""
    cleans = [one.requested_time for one in metadata.timeline.completed() if one.action is Action.CLEAN]
    before = _superseded(metadata.timeline.older_than(cleans[-1]), kept, now) if cleans else ""
    return _superseded(metadata.timeline, kept, now) != before


def _superseded(timeline: Timeline, options: CleanOptions, now: str) -> str:
    """The newest compaction whose replaced slices a clean of that timeline deletes; "" if there is none. Opens no file, as only compactions
    make slices.
    """
    kept = retention(timeline, options, now)
    if kept.policy is None:
        return ""
    done = timeline.completed().filter(lambda one: one.action is Action.COMMIT)
    if kept.earliest is not None:
        done = done.older_than(kept.earliest.requested_time)
    last = done.last()
    return last.requested_time if last is not None else ""


def _since_compaction(metadata: TableState) -> int:
    """Completed instants since the last compaction; 0 before the first, which leaves nothing to clean."""
    compactions = [one for one in metadata.timeline.completed() if one.action is Action.COMMIT]
    return len(metadata.timeline.completed().newer_than(compactions[-1].requested_time)) if compactions else 0


def _archive_is_due(data: TableState, metadata: TableState, options: ServiceOptions) -> bool:
    kept, compaction = clean_options(options), _compaction_options(options)
    return options.archive.automatic and archive_is_due(metadata, archive_options(options), clean=kept, compaction=compaction, data=data)
