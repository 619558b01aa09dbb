"""What a write changes: the planners of both kinds of tables behind one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.batches import INSERTS
from lakehouse_engine.write.context import WriteContext
from lakehouse_engine.write.locate.numbered import FoundNumbers
from lakehouse_engine.write.locate.target import Target
from lakehouse_engine.write.plan import cow as plan_cow
from lakehouse_engine.write.plan import mor as plan_mor
from lakehouse_engine.write.plan.cow import CowPlan
from lakehouse_engine.write.plan.insert_policy import rows_to_insert
from lakehouse_engine.write.plan.mor_changes import DeltaPlan
from lakehouse_engine.write.tasks.base_files import FileContext

Changes = CowPlan | DeltaPlan


def no_changes(target: Target, context: WriteContext, files: FileContext, batch: Batch) -> Changes:
    """A plan to which changes are added."""
    return DeltaPlan(target, context, files, batch) if context.merges_on_read else CowPlan(target, context, files, batch)


def plan_changes(
    operation: WriteOperationType,
    target: Target,
    context: WriteContext,
    files: FileContext,
    batch: Batch,
    deletions: Batch | None,
    runner: TaskRunner,
) -> Changes:
    """The changes of an insert (of `rows_to_insert`), upsert (with keys to delete, where there are some) or delete. Raises as they do."""
    planner: Any = plan_mor if context.merges_on_read else plan_cow
    if operation is WriteOperationType.DELETE:
        changes: Changes = planner.plan_deletes(target, context, files, batch, runner)
    elif operation in INSERTS:
        added = rows_to_insert(target, context, batch, runner) if operation is WriteOperationType.INSERT else batch
        changes = planner.plan_inserts(target, context, files, added, runner)
        changes.left_out = len(batch.rows) - len(added.rows)
    else:
        changes = planner.plan_upsert(target, context, files, batch, deletions, runner)
    return changes


def plan_replacement(target: Target, context: WriteContext, files: FileContext, batch: Batch, gone: Sequence[FoundNumbers]) -> Changes:
    """Stored rows go, by where they were found; every row of the batch is new. Raises as the planners."""
    planner: Any = plan_mor if context.merges_on_read else plan_cow
    changes: Changes = planner.plan_replacement(target, context, files, batch, gone)
    return changes
