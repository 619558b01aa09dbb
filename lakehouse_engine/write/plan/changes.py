"""Calls the planner of the table's type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.effect import INSERTS
from lakehouse_engine.write.locate.numbered import FoundNumbers
from lakehouse_engine.write.locate.target import Write
from lakehouse_engine.write.plan import cow as plan_cow
from lakehouse_engine.write.plan import mor as plan_mor
from lakehouse_engine.write.plan.cow import CowPlan
from lakehouse_engine.write.plan.insert_policy import rows_to_insert
from lakehouse_engine.write.plan.mor_changes import DeltaPlan

Changes = CowPlan | DeltaPlan


def no_changes(write: Write, batch: Batch) -> Changes:
    """A plan that collects changes."""
    return DeltaPlan(write, batch) if write.context.merges_on_read else CowPlan(write, batch)


def plan_changes(write: Write, batch: Batch, deletions: Batch | None, runner: TaskRunner) -> Changes:
    """Changes of an insert (of `rows_to_insert`), upsert (with optional keys to delete) or delete. Raises as the planners."""
    planner, operation = _planner(write), write.effect.operation
    if operation is WriteOperationType.DELETE:
        changes: Changes = planner.plan_deletes(write, batch, runner)
    elif operation in INSERTS:
        added = rows_to_insert(write, batch, runner) if operation is WriteOperationType.INSERT else batch
        changes = planner.plan_inserts(write, added, runner)
        changes.left_out = len(batch.rows) - len(added.rows)
    else:
        changes = planner.plan_upsert(write, batch, deletions, runner)
    return changes


def plan_replacement(write: Write, batch: Batch, gone: Sequence[FoundNumbers]) -> Changes:
    """Stored rows are deleted by position; every row of the batch is new. Raises as the planners."""
    changes: Changes = _planner(write).plan_replacement(write, batch, gone)
    return changes


def _planner(write: Write) -> Any:
    return plan_mor if write.context.merges_on_read else plan_cow
