"""The work for a file group of a batch that was planned in shares: gather what the shares have for it, then write it as any write does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.locate.target import Write
from lakehouse_engine.write.plan.changes import Changes, no_changes
from lakehouse_engine.write.plan.write_plan import run_task
from lakehouse_engine.write.shares.exchange import Exchange
from lakehouse_engine.write.shares.routing import Kind, Routed, Told, add_changes, new_group
from lakehouse_engine.write.shares.share import Renumbering
from lakehouse_engine.write.source import Rows, RowSource
from lakehouse_engine.write.tasks.base_files import NO_ROWS, FileContext, WriteStatus


@dataclass(frozen=True, slots=True)
class NewRows:
    """New records of a partition (and bucket): row numbers from `low` (inclusive) to `high` (exclusive), about `count`."""

    place: tuple[str, int | None]
    routed: Routed
    low: int
    high: int
    count: int

    def read(self, exchange: Exchange, paths: Sequence[str]) -> Rows:
        rows = Told.read(exchange, paths, self.routed).numbers(Kind.INSERT)
        return np.sort(rows[(rows >= self.low) & (rows < self.high)])


@dataclass(frozen=True, slots=True)
class RoutedSlice:
    """A slice that changes: what shares have for it, and the new records that go to it."""

    piece: FileSlice
    routed: Routed | None
    inserts: NewRows | None = None

    @property
    def rewrite(self) -> bool:
        return self.routed is not None and self.routed.rewrite

    def count(self, *kinds: Kind) -> int:
        return 0 if self.routed is None else sum(self.routed.counts[kind] for kind in kinds)

    @property
    def inserted(self) -> int:
        """New records for its base file."""
        return self.count(Kind.INSERT) + (0 if self.inserts is None else self.inserts.count)

    @property
    def logged(self) -> int:
        """Changed rows for its log, or for a rewrite of the slice with its logs."""
        return self.count(Kind.UPDATE, Kind.REVIVED, Kind.UNSEEN)

    def changed(self, *, is_appended: bool) -> int:
        """Rows that are changed or deleted: by key, or by position if only a base file is rewritten."""
        if is_appended or self.piece.log_files:
            return self.logged + self.count(Kind.KEY, Kind.SEQNO)
        return self.count(Kind.UPDATE, Kind.GONE)


@dataclass(frozen=True, slots=True)
class RoutedWork:
    """What all tasks of a commit share. `source` has the rows of the batch, then the rows made from them; `paths` are the files that each
    share wrote.
    """

    exchange: Exchange
    paths: tuple[str, ...]
    write: Write
    source: RowSource
    numbers: Renumbering


@dataclass(frozen=True, slots=True)
class RoutedTask:
    """Slices and new groups of task number `task` of the commit; several slices only if all are appended to."""

    work: RoutedWork
    files: FileContext
    task: int
    slices: tuple[RoutedSlice, ...] = ()
    created: NewRows | None = None


def run_routed(task: RoutedTask) -> list[WriteStatus]:
    """Write the task's file groups. Raises as the tasks of `write.plan`."""
    work = task.work
    plan = no_changes(replace(work.write, files=task.files), Batch.of_nothing(work.source))
    for one in task.slices:
        _add(plan, work, one)
    if task.created is not None:
        rows = work.numbers(task.created.read(work.exchange, work.paths))
        if len(rows):
            plan.creates.append(new_group(task.created.place, rows))
    tasks = plan.finish(LocalRunner(1), task.task).tasks
    assert len(tasks) <= 1
    return [status for one in tasks for status in run_task(one)]


def _add(plan: Changes, work: RoutedWork, one: RoutedSlice) -> None:
    told = Told.read(work.exchange, work.paths, one.routed)
    inserts = NO_ROWS if one.inserts is None else work.numbers(one.inserts.read(work.exchange, work.paths))
    add_changes(plan, one.piece, told, inserts, work.numbers, rewrite=one.rewrite)
