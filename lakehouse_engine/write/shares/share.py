"""Plans one share of a batch, as a batch of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import DuplicateKeyError
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.batches import Reduction
from lakehouse_engine.write.locate.buckets import rows_by_bucket
from lakehouse_engine.write.locate.numbered import FoundNumbers, unfound
from lakehouse_engine.write.locate.target import Write
from lakehouse_engine.write.plan.buckets import new_bucket
from lakehouse_engine.write.plan.changes import Changes, no_changes, plan_changes, plan_replacement
from lakehouse_engine.write.plan.placing import living, unplaced
from lakehouse_engine.write.shares.exchange import Exchange, SplitFile
from lakehouse_engine.write.shares.located import LocatedShare, located_numbers
from lakehouse_engine.write.shares.routing import RoutedShare, route
from lakehouse_engine.write.shares.split import share_source
from lakehouse_engine.write.shares.stored import StoredSlice
from lakehouse_engine.write.source import PatchedSource, Rows, RowSource, StagedFile
from lakehouse_engine.write.tasks.base_files import NO_ROWS

_PATCH_BITS = 40


@dataclass(frozen=True, slots=True)
class Dealt:
    """A batch dealt into shares, and which of its rows count."""

    source: RowSource
    files: tuple[SplitFile, ...]
    reduction: Reduction

    def share(self, exchange: Exchange, number: int) -> Batch:
        """The batch of one share. Raises as `Reduction.of`."""
        source = share_source(self.source, [exchange.read_part(file, number) for file in self.files])
        return self.reduction.of(source, source.rows)


@dataclass(frozen=True, slots=True)
class DealtNumbers:
    """Stored rows to drop by their numbers, and the numbers of the rows of `slices`, both dealt: `stored[i]` are those of `slices[i]`."""

    rows: Dealt
    slices: tuple[FileSlice, ...]
    stored: tuple[SplitFile, ...]

    def find(self, exchange: Exchange, number: int) -> tuple[list[FoundNumbers], int]:
        """Where the rows of a share are stored, and how many of them are not."""
        numbers = self.rows.share(exchange, number)
        found = located_numbers(exchange, number, self.slices, self.stored, numbers)
        return found, unfound(numbers, found)


@dataclass(frozen=True, slots=True)
class ShareWork:
    """What the planning of all shares has in common.

    `stored[i]` are the dealt keys of `slices[i]`; None if no keys are looked up. `numbers`: rows of the batch replace the stored rows of
    those numbers, and are not compared with what is stored.
    """

    exchange: Exchange
    write: Write
    slices: tuple[FileSlice, ...]
    stored: tuple[StoredSlice, ...] | None
    batch: Dealt
    deletions: Dealt | None
    shares: int
    numbers: DealtNumbers | None = None


@dataclass(frozen=True, slots=True)
class ShareTask:
    """Plan share `number`."""

    work: ShareWork
    number: int


@dataclass(frozen=True, slots=True)
class PlannedShare:
    """What a share changes. `patches` has the rows made during planning; `duplicates` and `moves` are those of a batch and a plan.

    `unseen` counts rows to drop by number that none of the searched slices has.
    """

    routed: RoutedShare
    duplicates: int
    moves: int
    patches: StagedFile | None = None
    unseen: int = 0


def plan_share(task: ShareTask) -> PlannedShare:
    """Plan one share. Raises as the planners, and `DuplicateKeyError`."""
    work = task.work
    try:
        batch = work.batch.share(work.exchange, task.number)
    except DuplicateKeyError as error:
        raise DuplicateKeyError(f"in one of {work.shares} parts of the batch, {error.message}") from error
    gone, unseen = ([], 0) if work.numbers is None else work.numbers.find(work.exchange, task.number)
    plan = _planned(work, task.number, batch, gone)
    patched, file = _patches(work, plan.batch.source)

    def numbers(rows: Rows) -> Rows:
        return _renumbered(rows, patched, task.number)

    return PlannedShare(route(work.exchange, plan, numbers), batch.duplicates + plan.left_out, plan.moves, file, unseen)


def _planned(work: ShareWork, number: int, batch: Batch, gone: Sequence[FoundNumbers]) -> Changes:
    write = work.write
    if write.effect.makes_new_groups:
        return _all_new(write, batch)
    if work.numbers is not None:
        return plan_replacement(write.to(is_part=True), batch, gone)
    located = None
    if work.stored is not None:
        rules = None if write.target.logs is None else write.target.logs.reader.rules
        is_global = write.context.is_global
        located = LocatedShare.read(work.exchange, number, work.slices, work.stored, is_global=is_global, rules=rules)
    deletions = None if work.deletions is None else work.deletions.share(work.exchange, number)
    return plan_changes(write.to(located=located, is_part=True), batch, deletions, LocalRunner())


def _all_new(write: Write, batch: Batch) -> Changes:
    """Plan a new file group for every row, whatever is stored."""
    if write.effect.drops_deletions:
        batch = living(batch, write.context.marks)
    plan, layout = no_changes(write, batch), write.context.layout
    if layout is None:
        plan.creates += unplaced(batch, np.arange(len(batch.rows), dtype=np.int64))
    else:
        plan.creates += [new_bucket(found, batch) for found in rows_by_bucket(layout, batch, None)]
    return plan


def _patches(work: ShareWork, source: RowSource) -> tuple[Rows, StagedFile | None]:
    """Numbers of the batch's rows that planning changed, and a file of those rows."""
    patched = _patched(source)
    if not len(patched):
        return patched, None
    return patched, work.exchange.stage("patches", source.take(patched))


def _patched(source: RowSource) -> Rows:
    return np.union1d(_patched(source.source), source.rows).astype(np.int64) if isinstance(source, PatchedSource) else NO_ROWS


def _renumbered(rows: Rows, patched: Rows, share: int) -> Rows:
    """Row numbers with those of patched rows replaced by numbers outside the batch, until the counts of all shares are known
    (`Renumbering`).
    """
    if not len(patched) or not len(rows):
        return rows
    at = np.minimum(np.searchsorted(patched, rows), len(patched) - 1)
    return np.where(patched[at] == rows, ((share + 1) << _PATCH_BITS) + at, rows).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Renumbering:
    """Maps numbers of patched rows to row numbers in a source that begins with the batch: `starts[i]` is where those of share i begin."""

    starts: tuple[int, ...] = field(default=())

    def __call__(self, rows: Rows) -> Rows:
        share = rows >> _PATCH_BITS
        if not share.any():
            return rows
        starts = np.array([0, *self.starts], np.int64)
        return np.asarray(np.where(share > 0, starts[share] + (rows & ((1 << _PATCH_BITS) - 1)), rows))
