"""Finds the partitions that a clean must look at: those where a write since the last clean left an old version.

The commits name them, so a table that only grows is never listed. A clean looks at all partitions if the commits do not suffice (they were
archived before it ran, or a savepoint that held files is gone).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.file_names import is_log_file_name
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.order import is_later
from lakehouse_engine.model.plans import HoodieCleanMetadata
from lakehouse_engine.options import CleanOptions
from lakehouse_engine.options.services import CLEAN_VERSIONS
from lakehouse_engine.services.clean.policies import KEEP_LATEST_FILE_VERSIONS, Retention
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

SAVEPOINTED = "savepointed_timestamps"
"""Metadata key in plans and results of cleans for the savepoints that they spared (#10651)."""

_NO_COMMIT = (None, "", "null")


@dataclass(frozen=True, slots=True)
class Scope:
    """`touched`: partitions in which a commit since the last clean left an old version. `all_partitions`: True if those do not suffice."""

    touched: frozenset[str]
    all_partitions: bool


def scope_of(state: TableState, options: CleanOptions, kept: Retention) -> Scope:
    """Scope of a clean of `state` now; everything if the result of the last clean is damaged."""
    try:
        last = last_clean(state)
    except FormatError as error:
        logger.warning("what the last clean did is not known, so all partitions are looked at: %s", error)
        last, damaged = None, True
    else:
        damaged = False
    since, is_known = _since(last, options)
    proven = state.proven_since
    writes = state.timeline.completed().writes()
    looked_at = writes if kept.earliest is None else writes.older_than(kept.earliest.requested_time)
    touched: set[str] = set()
    for instant in looked_at:
        if not (is_later(proven, instant.requested_time) or state.order.is_after(since, instant.requested_time)):
            touched.update(_outdated(state.commit_metadata(instant)))
    is_whole = is_known and not is_later(proven, since) and not damaged
    return Scope(frozenset(touched), not is_whole or not options.incremental or (last is not None and _lost_savepoint(state, last)))


def last_clean(state: TableState) -> HoodieCleanMetadata | None:
    """Result of the last completed clean on the active timeline."""
    cleans = [instant for instant in state.timeline.completed() if instant.action is Action.CLEAN]
    return state.active.plan(HoodieCleanMetadata, cleans[-1]) if cleans else None


def _since(last: HoodieCleanMetadata | None, options: CleanOptions) -> tuple[str, bool]:
    """First instant time whose write may have left something, and True if nothing older can have.

    For the policies by time, versions that were replaced before the last clean's `earliestCommitToRetain` are gone; for the policy by
    versions, all that were superfluous at its last commit, if it kept no more versions than this one.
    """
    if last is None:
        return "", True
    if options.policy != KEEP_LATEST_FILE_VERSIONS:
        return last.earliest_commit_to_retain or "", True
    versions = (last.extra_metadata or {}).get(CLEAN_VERSIONS.key) or ""
    is_known = versions.isdigit() and int(versions) <= options.versions_retained
    return last.last_completed_commit_timestamp, is_known


def _outdated(metadata: HoodieCommitMetadata) -> Iterator[str]:
    """Partitions in which the commit made a newer version of a group, or replaced a group."""
    for partition, stats in metadata.partition_to_write_stats.items():
        if any(
            stat.path and stat.prev_commit not in _NO_COMMIT and not is_log_file_name(stat.path.rpartition("/")[2]) for stat in stats
        ):
            yield partition
    yield from (partition for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items() if file_ids)


def _lost_savepoint(state: TableState, last: HoodieCleanMetadata) -> bool:
    known = (last.extra_metadata or {}).get(SAVEPOINTED) or ""
    return any(time.strip() not in state.timeline.savepointed for time in known.split(",") if time.strip())
