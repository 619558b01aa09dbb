"""Decides which of three reads takes each file and slice of a scan plan, before Spark is asked for any rows.

1. Spark scans base files. Small slices with logs are merged by the driver, and are files of the same scan (`merged_files`).
2. Spark scans the base files of other slices with a filter of the rows that logs replace (`replaced.positions`), and a file of the rows
   that logs add.
3. Executors read files and slices with this engine (`decoding`): those that Spark may not open or would read differently, and slices
   with more logs than the driver takes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lakehouse_engine.model.keys import META_COLUMNS
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.read.scan import ScanPlan


@dataclass(frozen=True, slots=True)
class FramePlan:
    """Two plans that together have each file and slice once.

    Slices of `by_spark` in `small` are merged if their rows turn out to be few and there is room; its other slices are filtered.
    """

    by_spark: ScanPlan
    small: tuple[LoggedSlice, ...]
    by_executors: ScanPlan

    @property
    def needs_executors(self) -> bool:
        return bool(self.by_executors.files or self.by_executors.logged)


def frame_plan(plan: ScanPlan, *, spark_opens: bool, driver_logs: int, small_to: int) -> FramePlan:
    """Divide a plan. `spark_opens`: Spark may open the table's files. `driver_logs`: most bytes of logs that the driver decodes for one
    plan. `small_to`: most bytes of a slice that is merged, 0 if the session takes no files.
    """
    nothing = replace(plan, files=(), logged=())
    if not spark_opens:
        return FramePlan(nothing, (), plan)
    if plan.log_size > driver_logs:
        return FramePlan(replace(plan, logged=()), (), replace(plan, files=()))
    return FramePlan(plan, _small(plan, small_to), nothing)


def _small(plan: ScanPlan, most: int) -> tuple[LoggedSlice, ...]:
    """Slices small enough to merge. None for changes between two commits, as most rows of base files are not among these, and none for
    unchecked files, as merged slices are found by what identifies their checked base file.
    """
    names = {name.lower() for name in (*META_COLUMNS, *plan.schema.names)}
    if not plan.verify or plan.commit_range is not None or len(names) < len(META_COLUMNS) + len(plan.schema):
        return ()
    return tuple(piece for piece in plan.logged if piece.slice.size <= most and not _is_replaced_only(piece, plan))


def _is_replaced_only(piece: LoggedSlice, plan: ScanPlan) -> bool:
    return piece.slice.base_file is not None and piece.slice.base_file.path in plan.replaced_only
