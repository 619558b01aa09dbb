"""Reads a scan plan as an Arrow table, without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.engine import LocalRunner, TaskRunner
from lakehouse_engine.files.base_file import MetaColumns, concat, iter_base_file, projected_schema
from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.files.row_pool import SpillTo
from lakehouse_engine.files.slice_reader import SliceReader, plain
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.instant import InstantRange
from lakehouse_engine.model.keys import COMMIT_TIME
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.read.row_filter import RowFilter
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.read.statistics import matching_row_groups
from lakehouse_engine.storage.base import Storage


@dataclass(frozen=True, slots=True)
class ReadTask:
    """One base file of a plan. `columns` may name meta columns."""

    storage: Storage
    file: BaseFile
    schema: pa.Schema
    columns: tuple[str, ...]
    commit_range: InstantRange | None
    verify: bool = True
    wanted: RowFilter | None = None


def read_arrow(
    plan: ScanPlan, *, columns: Sequence[str] | None = None, meta_columns: MetaColumns = False, runner: TaskRunner | None = None
) -> pa.Table:
    """Rows of a plan, file after file in the plan's order, then slice after slice.

    `columns` picks user columns (None: all; it may also name meta columns); `meta_columns=True` puts the five meta columns in front.
    `runner` reads files and slices, one task each (None: one after the other in this process). If the plan wants only some rows, row groups
    of files without logs are skipped if their statistics rule them out. Raises as `read_base_file` and `SliceReader.read`, and
    `OptionError` if a filter cannot be computed.
    """
    wanted = plain(projected_schema(plan.shown, columns, meta_columns))
    tables = (runner or LocalRunner()).run(read_task, plan_tasks(plan, wanted.names), name="read")
    return concat(tables, wanted)


def iter_arrow(plan: ScanPlan, *, columns: Sequence[str] | None = None, meta_columns: MetaColumns = False) -> Iterator[pa.Table]:
    """Like `read_arrow`, but lazily yields one table per row group, and one for the rows that only the logs of a slice have."""
    wanted = plain(projected_schema(plan.shown, columns, meta_columns))
    for task in plan_tasks(plan, wanted.names):
        yield from iter_task(task)


@dataclass(frozen=True, slots=True)
class SliceTask:
    """One slice of a plan, with logs."""

    reader: SliceReader
    piece: LoggedSlice
    columns: tuple[str, ...]
    commit_range: InstantRange | None
    wanted: RowFilter | None = None


def read_task(task: ReadTask | SliceTask) -> pa.Table:
    """All rows of one file or slice that belong to the plan."""
    return read_slice(task) if isinstance(task, SliceTask) else read_file(task)


def iter_task(task: ReadTask | SliceTask, spill: SpillTo | None = None) -> Iterator[pa.Table]:
    """Like `read_task`, part by part; log rows above the limit of `spill` are kept in files meanwhile."""
    return _slice_parts(task, spill) if isinstance(task, SliceTask) else _row_groups(task)


def plan_tasks(plan: ScanPlan, columns: Sequence[str], *, files: bool = True) -> list[ReadTask | SliceTask]:
    """Tasks that read the plan, one for each file (if `files`) and slice. `columns` are spelled as in the table."""
    return [*(_tasks(plan, columns) if files else ()), *_slice_tasks(plan, columns)]


def read_slice(task: SliceTask) -> pa.Table:
    """All rows of one slice that belong to the plan."""
    return concat(list(_slice_parts(task)), plain(projected_schema(task.reader.schema, task.columns)))


def _slice_parts(task: SliceTask, spill: SpillTo | None = None) -> Iterator[pa.Table]:
    # An unwanted row of the base file may be replaced by a wanted one and vice versa, so only merged rows are filtered.
    for part in task.reader.stream(task.piece, _needed(task), spill):
        yield _picked(part if task.commit_range is None else part.filter(within(task.commit_range)), task)


def _needed(task: ReadTask | SliceTask) -> tuple[str, ...]:
    """Columns of the result, and those that decide which rows belong to it."""
    window = () if task.commit_range is None else (COMMIT_TIME,)
    return tuple(dict.fromkeys((*task.columns, *window, *(() if task.wanted is None else task.wanted.columns))))


def _picked(table: pa.Table, task: ReadTask | SliceTask) -> pa.Table:
    if task.wanted is not None:
        table = task.wanted.rows(table)
    return table if table.column_names == list(task.columns) else table.select(list(task.columns))


def read_file(task: ReadTask) -> pa.Table:
    """All rows of one file that belong to the plan."""
    return concat(list(_row_groups(task)), plain(projected_schema(task.schema, task.columns)))


def _tasks(plan: ScanPlan, columns: Sequence[str]) -> list[ReadTask]:
    names = tuple(columns)
    return [ReadTask(plan.storage, file, plan.schema, names, plan.commit_range, plan.verify, plan.wanted) for file in plan.files]


def _slice_tasks(plan: ScanPlan, columns: Sequence[str]) -> list[SliceTask]:
    if plan.reader is None:
        return []
    return [SliceTask(plan.reader, piece, tuple(columns), plan.commit_range, plan.wanted) for piece in plan.logged]


def _row_groups(task: ReadTask) -> Iterator[pa.Table]:
    columns = _needed(task)
    wanted = plain(projected_schema(task.schema, columns))
    filters = None if task.commit_range is None else within(task.commit_range)
    groups = None
    if task.wanted is not None:
        footer = FOOTERS.read(task.storage, task.file, verify=task.verify)
        groups = matching_row_groups(footer, task.wanted, task.file.path)
    for table in iter_base_file(
        task.storage, task.file, task.schema, columns=columns, filters=filters, row_groups=groups, verify=task.verify
    ):
        yield _picked(table.cast(wanted) if columns else table, task)


def within(window: InstantRange) -> pc.Expression:
    """True for rows whose commit time is in the window."""
    stored = pc.field(COMMIT_TIME)
    only = window.times
    if only is not None:
        inside = stored.isin(pa.array(sorted(only), pa.string()))
        if window.start is None:
            return inside
        return inside | ((stored < window.start) & within(InstantRange(window.begin, window.end)))
    inside = stored.is_valid()
    if window.begin is not None:
        inside &= stored > window.begin
    if window.end is not None:
        inside &= stored <= window.end
    return inside
