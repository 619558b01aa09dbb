"""Adapts a scheduled compaction to the table as it is when it is run."""

from __future__ import annotations

import logging
from dataclasses import replace

from lakehouse_engine.files.base_file import missing_file
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.order import is_later
from lakehouse_engine.model.plans import HoodieCompactionOperation, HoodieCompactionPlan
from lakehouse_engine.services.compact.plan import bare_names, group_of, operation_of
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


def fitting_plan(state: TableState, time: str, plan: HoodieCompactionPlan) -> HoodieCompactionPlan:
    """The plan as it must be carried out now: each group's slice before `time`, with all its logs.

    It usually equals the stored plan. It differs for plans of version 1, which have full paths, if files are gone, and if a program that
    does not use the lock logged to the old slice meanwhile. Groups stay in the plan, as logs may be named after it, except those that were
    replaced and cleaned. Raises `MissingFileError` if a group that must exist is gone.
    """
    replaced = state.view.replaced_as_of()
    operations = []
    for operation in plan.operations or ():
        piece = slice_before(state, operation, time)
        if piece is not None:
            operations.append(_fitting(operation, piece))
        elif group_of(operation) not in replaced:
            partition, name = operation.partition_path or "", operation.data_file_path or (operation.delta_file_paths or ("",))[0]
            raise missing_file(f"{partition}/{name.rpartition('/')[2]}", "a pending compaction needs it")
    return HoodieCompactionPlan(
        operations=tuple(operations),
        extra_metadata=plan.extra_metadata,
        strategy=plan.strategy,
        preserve_hoodie_metadata=plan.preserve_hoodie_metadata,
        missing_schedule_partitions=plan.missing_schedule_partitions,
    )


def slice_before(state: TableState, operation: HoodieCompactionOperation, time: str) -> FileSlice | None:
    """The newest slice of the operation's group that began before `time`, without logs that take effect after a compaction of that time."""
    found = state.view.file_group(group_of(operation))
    piece = next((piece for piece in found.slices if is_later(time, piece.base_instant)), None) if found is not None else None
    if piece is None or not state.format.logs_by_writer:
        return piece
    return replace(piece, log_files=tuple(log for log in piece.log_files if is_later(time, state.order.moment(log.instant_time))))


def _fitting(operation: HoodieCompactionOperation, piece: FileSlice) -> HoodieCompactionOperation:
    logs = {log.name for log in piece.log_files}
    base = piece.base_file.name if piece.base_file else None
    named = bare_names([operation.data_file_path] if operation.data_file_path else [])
    if set(bare_names(operation.delta_file_paths)) == logs and named == ((base,) if base else ()):
        full = any("/" in path for path in (*(operation.delta_file_paths or ()), operation.data_file_path or ""))
        return operation_of(piece) if full else operation
    logger.warning("the slice of file group %s is not as the compaction planned it; its plan is made anew", piece.group)
    return operation_of(piece)
