"""Plans compactions: the slices that need one, as operations of a Hudi plan (hudi-format 10.5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from lakehouse_engine.commit.concurrency.pending import compacting_groups, pending_groups
from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import CompactionError
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.plans import HoodieCompactionOperation, HoodieCompactionPlan
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.options import CompactionOptions
from lakehouse_engine.options.write import MAX_FILE_SIZE
from lakehouse_engine.services.compact.strategies import (
    STRATEGIES,
    TOTAL_IO_MB,
    TOTAL_IO_READ_MB,
    TOTAL_IO_WRITE_MB,
    TOTAL_LOG_FILES,
    TOTAL_LOG_FILES_SIZE,
)
from lakehouse_engine.services.executor.service import Kind
from lakehouse_engine.view.table_state import TableState

COMPACTION = Kind(Action.COMPACTION, WriteOperationType.COMPACT, "compaction", CompactionError)
LOG_COMPACTION = Kind(Action.LOG_COMPACTION, WriteOperationType.LOG_COMPACT, "compaction", CompactionError)
_MEGABYTE = 1024 * 1024


def check_has_logs(state: TableState) -> None:
    """Raise `CompactionError` for a copy-on-write table."""
    if state.config.table_type is not TableType.MERGE_ON_READ:
        raise CompactionError("only merge-on-read tables have logs to compact", table=state.config.name)


def plan_compaction(state: TableState, options: CompactionOptions, *, today: date | None = None) -> HoodieCompactionPlan | None:
    """Plan a compaction of `state`; None if no slice needs one. Raises `OptionError` if the strategy goes by days and a partition is not a
    day.
    """
    candidates = [operation_of(piece) for piece in compactable(state)]
    chosen = STRATEGIES[options.strategy].select(candidates, options, today or datetime.now(UTC).date())
    return HoodieCompactionPlan(operations=tuple(chosen)) if chosen else None


def compactable(state: TableState) -> list[FileSlice]:
    """Live slices with logs that are not in the plan of a pending compaction or clustering."""
    taken = {FileGroupId(*group) for group in pending_groups(state)} | set(compacting_groups(state))
    return [piece for piece in state.view.latest_slices() if piece.log_files and piece.group not in taken]


def operation_of(piece: FileSlice) -> HoodieCompactionOperation:
    """A slice as an operation, with bare file names and the metrics of Hudi's `CompactionStrategy.captureMetrics`."""
    return HoodieCompactionOperation(
        base_instant_time=piece.base_instant,
        file_id=piece.file_id,
        partition_path=piece.partition_path,
        delta_file_paths=tuple(log.name for log in piece.log_files),
        data_file_path=piece.base_file.name if piece.base_file else None,
        metrics=_metrics(piece),
    )


def _metrics(piece: FileSlice) -> dict[str, float]:
    logs = sum(log.size for log in piece.log_files)
    base = piece.base_file.size if piece.base_file else 0
    # Whole megabytes, as Hudi counts them.
    read = (base + logs) // _MEGABYTE
    written = (base if piece.base_file else MAX_FILE_SIZE.default) // _MEGABYTE
    return {
        TOTAL_LOG_FILES: float(len(piece.log_files)),
        TOTAL_LOG_FILES_SIZE: float(logs),
        TOTAL_IO_READ_MB: float(read),
        TOTAL_IO_WRITE_MB: float(written),
        TOTAL_IO_MB: float(read + written),
    }


def read_plan(state: TableState, time: str, action: Action) -> HoodieCompactionPlan:
    """The plan of a pending compaction. Raises `InstantNotFoundError` and `CorruptInstantError`."""
    requested = Instant(time, action, State.REQUESTED)
    return state.active.plan(HoodieCompactionPlan, requested)


def group_of(operation: HoodieCompactionOperation) -> FileGroupId:
    """File group that a planned operation compacts."""
    return FileGroupId(operation.partition_path or "", operation.file_id or "")


def bare_names(paths: Sequence[str] | None) -> tuple[str, ...]:
    """File names in a plan, without the full paths that plans of version 1 have."""
    return tuple(path.rpartition("/")[2] for path in paths or ())
