"""Plans log compactions: selects slices with enough log blocks to merge them into one (Hudi `HoodieLogCompactionPlanGenerator`)."""

from __future__ import annotations

from dataclasses import replace

from lakehouse_engine.files.log_scanner import LogScope, scan_logs
from lakehouse_engine.manifest import missing
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.model.plans import HoodieCompactionPlan, HoodieCompactionStrategy
from lakehouse_engine.options import CompactionOptions
from lakehouse_engine.services.compact.plan import compactable, group_of, operation_of, read_plan
from lakehouse_engine.services.executor.scheduling import pending_plans
from lakehouse_engine.view.slicing import mixes_log_names
from lakehouse_engine.view.table_state import TableState

_HELPER = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"
"""Class name by which Hudi tells plans of log compactions from plans of compactions."""


def plan_log_compaction(state: TableState, options: CompactionOptions) -> HoodieCompactionPlan | None:
    """A plan for slices with at least `hoodie.log.compaction.blocks.threshold` blocks that count; None if there are none.

    Reads the headers of blocks in the logs. Raises as `scan_logs`.
    """
    taken = {
        group_of(operation)
        for instant in pending_plans(state, Action.LOG_COMPACTION)
        for operation in read_plan(state, instant.requested_time, Action.LOG_COMPACTION).operations or ()
    }
    slices = [piece for piece in compactable(state) if piece.group not in taken and not mixes_log_names(piece, state.order)]
    many = [piece for piece in logged_slices(state, slices) if _blocks(state, piece) >= options.log_blocks]
    if not many:
        return None
    return HoodieCompactionPlan(
        operations=tuple(operation_of(piece.slice) for piece in many),
        extra_metadata={},
        strategy=HoodieCompactionStrategy(compactor_class_name=_HELPER, strategy_params={}),
        preserve_hoodie_metadata=True,
    )


def logged_slices(state: TableState, slices: list[FileSlice]) -> list[LoggedSlice]:
    """Slices with the records of completed commits about the log files that they have."""
    found = []
    for piece in missing.logged_slices(state.manifest, None, slices):
        paths = {log.path for log in piece.slice.log_files}
        found.append(replace(piece, promises=tuple(promise for promise in piece.promises if promise.path in paths)))
    return found


def _blocks(state: TableState, piece: LoggedSlice) -> int:
    return len(scan_logs(state.storage, piece, LogScope.of(state.timeline)).blocks)
