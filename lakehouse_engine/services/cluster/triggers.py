"""Decides when a clustering is due (Hudi `ClusteringPlanActionExecutor`)."""

from __future__ import annotations

from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.write_stats import REWRITES, WriteOperationType
from lakehouse_engine.options import ClusteringOptions
from lakehouse_engine.view.plans import is_plan, may_cluster
from lakehouse_engine.view.table_state import TableState


def is_due(state: TableState, options: ClusteringOptions) -> bool:
    """True if enough writes of rows were completed since a clustering was last planned."""
    return commits_since(state) >= options.commits


def commits_since(state: TableState) -> int:
    """Completed writes of rows on the active timeline after the last clustering, completed or planned."""
    count = 0
    for instant in reversed(list(state.timeline.writes())):
        if _is_clustering(state, instant):
            break
        count += _writes_rows(state, instant)
    return count


def _is_clustering(state: TableState, instant: Instant) -> bool:
    if not may_cluster(instant):
        return False
    if instant.is_completed:
        return state.commit_metadata(instant).operation_type is WriteOperationType.CLUSTER
    return is_plan(state, instant)


def _writes_rows(state: TableState, instant: Instant) -> bool:
    return instant.is_completed and state.commit_metadata(instant).operation_type not in REWRITES
