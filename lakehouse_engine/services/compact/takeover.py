"""Begin a scheduled compaction: one executor at a time, from a plan that fits the table as it is.

An executor of this engine holds a lock that the kernel takes from it when it dies. Hudi's executors have none: a compaction that is
inflight and never had our lock is left alone for `compaction.timeout.seconds`, then taken over.
"""

from __future__ import annotations

import logging

from lakehouse_engine.commit.beside.executors import lock_file
from lakehouse_engine.commit.publish import take_back_files
from lakehouse_engine.commit.ruling_out import is_closed
from lakehouse_engine.errors import CompactionError
from lakehouse_engine.files.base_file import missing_file
from lakehouse_engine.format.file_names import marker_folder
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Instant, State
from lakehouse_engine.model.plans import HoodieCompactionOperation, HoodieCompactionPlan
from lakehouse_engine.options import CompactionOptions
from lakehouse_engine.options.services import COMPACTION_TIMEOUT_SECONDS
from lakehouse_engine.services.compact.plan import bare_names, group_of, operation_of
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.heartbeats import HEARTBEATS
from lakehouse_engine.timeline.locks.probe import storage_now_ms
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


def check_not_foreign(state: TableState, instant: Instant, options: CompactionOptions) -> None:
    """Raise `CompactionError` while another program may be running the compaction. Asked before its lock is made."""
    if instant.state is not State.INFLIGHT or state.storage.head(lock_file(instant.requested_time)) is not None:
        return
    inflight = state.storage.head(f"{state.layout.timeline_folder}/{state.layout.file_name(instant)}")
    marks = state.storage.walk(marker_folder(instant.requested_time))
    active = [entry.modified_ms for entry in (inflight, *marks) if entry is not None]
    # Not by this machine's clock: what is running would be taken over, and its files go, where that is ahead.
    age = (storage_now_ms(state.storage, HEARTBEATS) - max(active, default=0)) / 1000
    if age < options.timeout_seconds:
        raise CompactionError(
            f"another program began this compaction {age:.0f} s ago and may still run it; it is taken over after"
            f" {COMPACTION_TIMEOUT_SECONDS.key}={options.timeout_seconds}",
            instant=instant,
            table=state.config.name,
        )


def take_back(state: TableState, instant: Instant, *, of_dead: bool = False) -> None:
    """Make a pending compaction as it was when it was scheduled: what its executor wrote goes, its plan stays.

    The table lock is held. May be done any number of times. What was completed is not taken back. `of_dead`: what another run left, whose
    commit may come yet: then its files stay until it is completed (`publish`).
    """
    time, storage = instant.requested_time, state.storage
    if state.timeline.completed().writes().contains(time):
        return
    inflight = Instant(time, instant.action, State.INFLIGHT)
    may_come = of_dead and state.timeline.find(time) == inflight and is_closed(state, inflight)
    ActiveTimeline(storage, state.layout).delete(inflight)
    if may_come:
        return
    take_back_files(storage, time)
    storage.delete_tree(marker_folder(time))


def fitting_plan(state: TableState, time: str, plan: HoodieCompactionPlan) -> HoodieCompactionPlan:
    """The plan as it must be carried out now: each group's slice before `time`, with all its logs.

    Usually that is what the plan says. It is not for plans of version 1, which have full paths, where files are gone, and where
    a program that does not know the lock logged to the old slice meanwhile. Groups stay in the plan, for logs may be named after it; but
    those that were replaced and cleaned. Raises `MissingFileError` where a group that must be there is gone.
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
    """The newest slice of the operation's group that began before `time`."""
    found = state.view.file_group(group_of(operation))
    return next((piece for piece in found.slices if piece.base_instant < time), None) if found is not None else None


def _fitting(operation: HoodieCompactionOperation, piece: FileSlice) -> HoodieCompactionOperation:
    logs = {log.name for log in piece.log_files}
    base = piece.base_file.name if piece.base_file else None
    named = bare_names([operation.data_file_path] if operation.data_file_path else [])
    if set(bare_names(operation.delta_file_paths)) == logs and named == ((base,) if base else ()):
        full = any("/" in path for path in (*(operation.delta_file_paths or ()), operation.data_file_path or ""))
        return operation_of(piece) if full else operation
    logger.warning("the slice of file group %s is not as the compaction planned it; its plan is made anew", piece.group)
    return operation_of(piece)
