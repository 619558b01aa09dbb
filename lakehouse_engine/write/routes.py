"""Two routes from a batch to its commit's tasks, with the same result.

Small: the batch's keys are in this process, and tasks get them. Large: they are split into shares, which tasks plan (`write.shares`), and
this process holds none. The weight of the keys decides, by `lakehouse.write.broadcast.max.bytes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakehouse_engine.commit.expected import check_rows_found
from lakehouse_engine.compat import StrEnum
from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import OptionError
from lakehouse_engine.model.keys import PARTITION_PATH, RECORD_KEY
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from lakehouse_engine.options.write import BROADCAST_BYTES, SORT_MODE
from lakehouse_engine.read.complete_slices import check_complete
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.batches import EVERY_ROW, Batches
from lakehouse_engine.write.context import looks_everywhere
from lakehouse_engine.write.locate.kept_deletions import check_none_is_kept
from lakehouse_engine.write.locate.numbered import numbered_rows, unfound
from lakehouse_engine.write.locate.target import Target, Write
from lakehouse_engine.write.plan.buckets import plan_new_buckets
from lakehouse_engine.write.plan.changes import Changes, plan_changes, plan_replacement
from lakehouse_engine.write.plan.placing import living
from lakehouse_engine.write.plan.write_plan import WritePlan, plan_new_groups, run_task
from lakehouse_engine.write.shares.exchange import Exchange
from lakehouse_engine.write.shares.route import Given, RoutedPlan, Shares
from lakehouse_engine.write.shares.routed import run_routed
from lakehouse_engine.write.source import RowSource
from lakehouse_engine.write.tasks.base_files import FileContext, WriteStatus

_SAMPLE = 1000
_BYTES_OF_ROW = 16
"""Bytes per row besides key and partition path during planning: its numbers, and its place."""


class Route(StrEnum):
    """How a write was planned."""

    SMALL = "SMALL"
    LARGE = "LARGE"


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """Tasks of a commit. `partitions` are named by the batch; `dropped` rows shared a key with another row, of the batch or stored."""

    plan: WritePlan | RoutedPlan
    route: Route
    partitions: frozenset[str]
    dropped: int

    @property
    def is_empty(self) -> bool:
        return self.plan.is_empty

    @property
    def moves(self) -> int:
        """Records that change partition."""
        return self.plan.moves

    def profile(self) -> Mapping[str, tuple[HoodieWriteStat, ...]]:
        """As `write.plan.write_plan.profile_of`."""
        return self.plan.profile()

    def run(self, runner: TaskRunner) -> list[WriteStatus]:
        if isinstance(self.plan, RoutedPlan):
            written = runner.run(run_routed, self.plan.tasks, name="write")
        else:
            written = runner.run(run_task, self.plan.tasks, name="write")
        return [status for statuses in written for status in statuses if status.stat]


def plan_write(state: TableState, batches: Batches, files: FileContext, runner: TaskRunner) -> PlannedWrite:
    """Plan a request. Raises as the planners, and as `check_complete` for the partitions of its rows."""
    given, replaced = Given(batches.source(files.instant_time), batches.reduction), batches.replaced()
    if batches.context.soft is not None and batches.request.operation is WriteOperationType.INSERT:
        check_none_is_kept(state, batches.context, given.source)
    planning = _Planning(state, batches, files, runner, given, replaced)
    weight = sum(_weight(source) for source in (given.source, replaced, batches.deleted_keys()) if source is not None)
    if weight > batches.context.options.broadcast_bytes:
        planning.check_unordered(weight)
        return planning.in_shares()
    return planning.at_once()


def _weight(source: RowSource) -> int:
    """Approximate memory of the batch's keys."""
    sample = source.slice(0, _SAMPLE).select([RECORD_KEY, PARTITION_PATH])
    return int(source.num_rows * (sample.nbytes / max(1, sample.num_rows) + _BYTES_OF_ROW))


@dataclass(frozen=True, slots=True)
class _Planning:
    """Start of both routes; see `plan_write`."""

    state: TableState
    batches: Batches
    files: FileContext
    runner: TaskRunner
    given: Given
    replaced: RowSource | None

    def check_unordered(self, weight: int) -> None:
        """Raise `OptionError` where new file groups are to be sorted, which shares by key are not."""
        if self.batches.effect.makes_new_groups and self.batches.context.arrangement.order:
            raise OptionError(
                f"{SORT_MODE.key}={self.batches.context.options.sort_mode} cannot be kept: to find one row of each key, keys of"
                f" {weight} bytes are dealt into shares, which are not sorted. Raise {BROADCAST_BYTES.key} above that, or combine the"
                " rows before the write"
            )

    def in_shares(self) -> PlannedWrite:
        batches, keys = self.batches, self.batches.deleted_keys()
        shares = Shares(
            runner=self.runner,
            exchange=Exchange(self.state.storage, batches.stage.folder()),
            write=self._write(),
            batch=self.given,
            deletions=None if keys is None else Given(keys, batches.deletion),
            replaced=None if self.replaced is None else Given(self.replaced, EVERY_ROW),
            check_found=self._check_found,
        )
        partitions = shares.partitions()
        if not self.batches.effect.makes_new_groups and looks_everywhere(batches.request, batches.context.index):
            check_complete(self.state)
        self._check(partitions)
        plan = shares.plan(partitions)
        return PlannedWrite(plan, Route.LARGE, partitions, plan.duplicates)

    def at_once(self) -> PlannedWrite:
        batch, deletions = self.given.reduction.of(self.given.source), self.batches.deletions()
        named = frozenset(path for one in (batch, deletions) if one is not None for path in one.partitions.dictionary.to_pylist())
        self._check(named)
        left_out = 0
        if self.batches.effect.makes_new_groups:
            layout, kept = self.batches.context.layout, batch
            if self.batches.effect.drops_deletions:
                kept = living(batch, self.batches.context.marks)
            kept = self._arranged(kept)
            plan = plan_new_groups(self.files, kept) if layout is None else plan_new_buckets(self.files, layout, kept)
        else:
            changes = self._changes(batch, deletions)
            plan, left_out = changes.finish(self.runner), changes.left_out
        return PlannedWrite(plan, Route.SMALL, named, batch.duplicates + left_out)

    def _arranged(self, batch: Batch) -> Batch:
        arrangement = self.batches.context.arrangement
        if not arrangement.order:
            return batch
        return batch.part(arrangement.places(batch.source.columns(arrangement.order, batch.rows)))

    def _write(self) -> Write:
        batches, context = self.batches, self.batches.context
        return Write(batches.effect, context, self.files, Target.of(self.state, context))

    def _check(self, partitions: frozenset[str]) -> None:
        """Raise as `check_complete` for the batch's partitions; `prepare` has checked the whole table if rows are looked up everywhere."""
        if not self.batches.effect.makes_new_groups:
            check_complete(self.state, partitions)

    def _check_found(self, missing: int, asked: int) -> None:
        if self.batches.request.missing == "fail":
            check_rows_found(self.state, missing, asked)

    def _changes(self, batch: Batch, deletions: Batch | None) -> Changes:
        write = self._write()
        if self.replaced is None:
            return plan_changes(write, batch, deletions, self.runner)
        numbers = EVERY_ROW.of(self.replaced)
        gone = numbered_rows(write.target, numbers, self.runner)
        self._check_found(unfound(numbers, gone), len(numbers.keys))
        return plan_replacement(write, batch, gone)
