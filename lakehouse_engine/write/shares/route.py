"""Plans a batch in shares: deal the rows, deal what is stored, plan each share, place new records, route changes to file groups.

Every step is a call of the task runner over files in the table's temporary folder. The leading process holds counts, file names, partition
paths and, in columns, what each share has for which file group; no key or row of the batch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakehouse_engine.engine import TaskRunner, shared_out
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import FILE_NAME, FileGroupId
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.batches import Reduction
from lakehouse_engine.write.locate.numbered import named_slices
from lakehouse_engine.write.locate.target import KnownSlices, Target, Write
from lakehouse_engine.write.plan.changes import no_changes
from lakehouse_engine.write.plan.log_target import log_target
from lakehouse_engine.write.plan.placing import SAMPLE, encoded_size
from lakehouse_engine.write.plan.write_plan import Planned, profile_of
from lakehouse_engine.write.shares.dealing import Dealing
from lakehouse_engine.write.shares.exchange import Exchange
from lakehouse_engine.write.shares.routed import NewRows, RoutedSlice, RoutedTask, RoutedWork
from lakehouse_engine.write.shares.routing import Kind, Routed, by_place, cut_points
from lakehouse_engine.write.shares.share import Dealt, DealtNumbers, PlannedShare, Renumbering, ShareTask, ShareWork, plan_share
from lakehouse_engine.write.shares.split import files_of, partitions_of, shared_source, split
from lakehouse_engine.write.shares.stored import NumbersTask, StoredSlice, StoredTask, deal_numbers, deal_stored
from lakehouse_engine.write.source import JoinedSource, RowSource, StagedFile, StagedSource
from lakehouse_engine.write.tasks.append import balanced, load_of, slots_for

_ROWS_OF_SHARE = 250_000
"""Rows of a batch in a share: with what is stored of their keys, some hundred megabytes."""
_STORED_BYTES_OF_SHARE = 512 * 1024 * 1024
"""Bytes of base files whose keys are in a share."""
_MOST_SHARES = 4096
_EVERYTHING = 1 << 62


@dataclass(frozen=True, slots=True)
class Given:
    """Rows given to a write, and which of them count."""

    source: RowSource
    reduction: Reduction


@dataclass(frozen=True, slots=True)
class RoutedPlan:
    """Tasks of a commit, for `run_routed`. Like `write.plan.write_plan.WritePlan`, but rows are named by files; `duplicates` as in `Batch`.
    """

    tasks: list[RoutedTask]
    planned: Mapping[str, tuple[HoodieWriteStat, ...]]
    moves: int
    duplicates: int

    @property
    def is_empty(self) -> bool:
        return not self.tasks

    def profile(self) -> dict[str, tuple[HoodieWriteStat, ...]]:
        return dict(self.planned)


def _any_found(missing: int, asked: int) -> None:
    """Accept any number of missing rows."""


@dataclass(slots=True)
class Shares:
    """A write planned in shares: call `partitions` first, then `plan`.

    `replaced` has the numbers (`_hoodie_commit_seqno`) of stored rows to drop; then no key is looked up. `check_found` gets the count of
    those that are no longer stored, and the count of all.
    """

    runner: TaskRunner
    exchange: Exchange
    write: Write
    batch: Given
    deletions: Given | None
    replaced: Given | None = None
    check_found: Callable[[int, int], None] = _any_found
    _dealing: Dealing = field(default_factory=lambda: Dealing(1))

    def partitions(self) -> frozenset[str]:
        """Partition paths of the given rows."""
        self.batch = replace(self.batch, source=shared_source(self.runner, self.exchange, self.batch.source))
        found = partitions_of(self.runner, self.batch.source)
        if self.deletions is not None:
            self.deletions = replace(self.deletions, source=shared_source(self.runner, self.exchange, self.deletions.source))
            found |= partitions_of(self.runner, self.deletions.source)
        if self.replaced is not None:
            self.replaced = replace(self.replaced, source=shared_source(self.runner, self.exchange, self.replaced.source))
        return found

    def plan(self, partitions: frozenset[str]) -> RoutedPlan:
        """Tasks of the commit. Raises as `split_rows` and the planners."""
        slices = self._slices(partitions)
        if self.replaced is not None:
            return self._replacement(self.replaced, slices)
        work = self._work(slices)
        return self._routed(work.write, self._planned(work))

    def _replacement(self, replaced: Given, slices: Sequence[FileSlice]) -> RoutedPlan:
        """Plan with replaced rows. Rows that are not in the files that they name are looked for in all files."""
        everywhere = self.write.target.view.latest_slices()
        named = everywhere
        if FILE_NAME in replaced.source.column_names:
            named = named_slices(everywhere, files_of(self.runner, replaced.source))
        work = self._work(slices)
        rows = self._dealt(replaced, Dealing(work.shares))
        planned = self._planned(replace(work, numbers=self._numbers(rows, named)))
        if len(named) < len(everywhere) and any(share.unseen for share in planned):
            planned = self._planned(replace(work, numbers=self._numbers(rows, everywhere)))
        self.check_found(sum(share.unseen for share in planned), replaced.source.num_rows)
        return self._routed(work.write, planned)

    def _numbers(self, rows: Dealt, slices: Sequence[FileSlice]) -> DealtNumbers:
        target, dealing = self._known(slices).target, Dealing(self._dealing.count)
        reader = None if target.logs is None else target.logs.reader
        tasks = [NumbersTask(self.exchange, target.storage, pieces, reader, dealing) for pieces in self._together(target, slices)]
        return DealtNumbers(rows, tuple(slices), tuple(itertools.chain.from_iterable(self.runner.run(deal_numbers, tasks, name="keys"))))

    def _planned(self, work: ShareWork) -> list[PlannedShare]:
        return self.runner.run(plan_share, [ShareTask(work, number) for number in range(work.shares)], name="plan")

    def _work(self, slices: Sequence[FileSlice]) -> ShareWork:
        """What the shares are planned from: the dealt rows, and the table reduced to those slices."""
        self._dealing = Dealing(self._count(slices), self.write.context.layout)
        write = self._known(slices)
        stored = self._stored(write.target, slices)
        return ShareWork(
            exchange=self.exchange,
            write=write,
            slices=tuple(slices),
            stored=stored,
            batch=self._dealt(self.batch),
            deletions=None if self.deletions is None else self._dealt(self.deletions),
            shares=self._dealing.count,
        )

    def _dealt(self, given: Given, dealing: Dealing | None = None) -> Dealt:
        files = split(self.runner, self.exchange, given.source, self._narrow(given.source), dealing or self._dealing)
        return Dealt(given.source, tuple(files), given.reduction)

    def _count(self, slices: Sequence[FileSlice]) -> int:
        """Number of shares, by the rows of the batch and the stored bytes where their keys may be."""
        rows = sum(one.source.num_rows for one in (self.batch, self.deletions, self.replaced) if one is not None)
        stored = sum(piece.base_file.size for piece in slices if piece.base_file is not None) if self._looks_up else 0
        wanted = max(2 * self.runner.parallelism, -(-rows // _ROWS_OF_SHARE), -(-stored // _STORED_BYTES_OF_SHARE))
        return min(wanted, _MOST_SHARES)

    def _narrow(self, source: RowSource) -> list[str]:
        """Columns that planning compares."""
        names = [*self.write.context.ordering.roots, *self.write.context.marks.columns(list(source.column_names))]
        if self.write.target.logs is not None:
            rules = self.write.target.logs.reader.rules
            names += [*rules.ordering.roots, *rules.marks.columns(list(source.column_names))]
        return [name for name in dict.fromkeys(names) if name in source.column_names]

    @property
    def _looks_up(self) -> bool:
        """True if keys are compared with stored ones. In a table with buckets each share looks into their files itself."""
        return self.write.effect.compares and self.write.context.layout is None

    def _slices(self, partitions: frozenset[str]) -> list[FileSlice]:
        """Slices that planning needs, by partition."""
        if self.write.effect.makes_new_groups or not (self._looks_up or self.write.context.layout is not None):
            return []
        if self.write.context.is_global:
            return self.write.target.view.latest_slices()
        return [piece for path in sorted(partitions) for piece in self.write.target.view.latest_slices(path)]

    def _known(self, slices: Sequence[FileSlice]) -> Write:
        """The write to send to tasks, with the table reduced to those slices."""
        logs = self.write.target.logs
        return self.write.to(view=KnownSlices.of(slices), logs=None if logs is None else logs.of_slices(slices))

    def _stored(self, target: Target, slices: Sequence[FileSlice]) -> tuple[StoredSlice, ...] | None:
        if not self._looks_up:
            return None
        logs = target.logs
        reader, keys = (None if logs is None else logs.reader), self.write.context.stored_keys
        together = self._together(target, slices)
        tasks = [StoredTask(self.exchange, target.storage, pieces, keys, reader, self._dealing) for pieces in together]
        return tuple(itertools.chain.from_iterable(self.runner.run(deal_stored, tasks, name="keys")))

    def _together(self, target: Target, slices: Sequence[FileSlice]) -> list[tuple[LoggedSlice, ...]]:
        """Slices grouped for one file each: every share reads its part of all files."""
        return shared_out([_logged(target, piece) for piece in slices], self.runner)

    # tasks

    def _routed(self, write: Write, planned: Sequence[PlannedShare]) -> RoutedPlan:
        slices, created = self._places(by_place([share.routed for share in planned]))
        source, numbers = self._with_patches([share.patches for share in planned])
        paths = tuple(share.routed.path for share in planned)
        work = RoutedWork(self.exchange, paths, self._touched(write, slices), source, numbers)
        alone = [one for one in slices if not self._is_appended(one)]
        logged = [one for one in slices if self._is_appended(one)]
        tasks = [RoutedTask(work, self.write.files, number, (one,)) for number, one in enumerate(alone)]
        tasks += [RoutedTask(work, self.write.files, number, (), rows) for number, rows in enumerate(created, len(tasks))]
        tasks += self._appends(work, logged, len(tasks))
        inserts = [(rows.place[0], rows.count) for rows in created] + [(one.piece.partition_path, one.inserted) for one in alone]
        profile = profile_of(inserts, [self._planned_change(one) for one in (*alone, *logged)])
        return RoutedPlan(tasks, profile, sum(share.moves for share in planned), sum(share.duplicates for share in planned))

    def _touched(self, write: Write, slices: Sequence[RoutedSlice]) -> Write:
        """The write with the slices to be changed: new records may go to slices that planning did not need."""
        logs = self.write.target.logs
        return write if logs is None else write.to(logs=logs.of_slices([one.piece for one in slices]))

    def _planned_change(self, one: RoutedSlice) -> Planned:
        piece = one.piece
        is_appended = self._is_appended(one)
        instant = log_target(piece, self.write.target.compacting) if is_appended else piece.base_instant
        return Planned(piece.partition_path, piece.file_id, instant, one.changed(is_appended=is_appended))

    def _is_appended(self, one: RoutedSlice) -> bool:
        return self.write.context.merges_on_read and not (one.rewrite or one.inserted)

    def _appends(self, work: RoutedWork, slices: Sequence[RoutedSlice], first: int) -> Iterator[RoutedTask]:
        if not slices:
            return
        loads = [load_of(one.logged, one.count(Kind.KEY)) for one in slices]
        options = self.write.files.options
        memory = max(1, options.task_max_size_mb // slots_for(len(slices), self.runner.parallelism))
        files = replace(self.write.files, options=replace(options, task_max_size_mb=memory))
        for number, chosen in enumerate(balanced(loads, self.runner.parallelism), first):
            yield RoutedTask(work, files, number, tuple(slices[one] for one in chosen))

    def _places(self, told: Sequence[Routed]) -> tuple[list[RoutedSlice], list[NewRows]]:
        """Changed slices, and new groups. New records go to small files first."""
        changed = {routed.place: routed for routed in told if isinstance(routed.place, FileGroupId)}
        takes: dict[FileGroupId, NewRows] = {}
        created: list[NewRows] = []
        for routed in told:
            if isinstance(routed.place, FileGroupId):
                continue
            if routed.place[1] is not None:
                created.append(NewRows(routed.place, _sent(routed), 0, _EVERYTHING, routed.counts[Kind.INSERT]))
                continue
            groups, new = self._assigned(routed.place, routed)
            takes |= groups
            created += new
        pieces = self._pieces({*changed, *takes})
        return [RoutedSlice(pieces[group], changed.get(group), takes.get(group)) for group in pieces], created

    def _assigned(self, place: tuple[str, int | None], routed: Routed) -> tuple[dict[FileGroupId, NewRows], list[NewRows]]:
        """Divides the new records of a partition, in the order of the batch: those for small files, and those for each new group."""
        batch = Batch.of_nothing(self.batch.source)
        write = self.write.to(view=KnownSlices({})) if self.write.effect.makes_new_groups else self.write
        places = no_changes(write, batch).places
        assignment = places.assign(place[0], range(routed.counts[Kind.INSERT]), lambda: encoded_size(self.batch.source.slice(0, SAMPLE)))
        ranges = [ranks for _, ranks in assignment.to_files] + list(assignment.to_new)
        cuts = [0, *cut_points(routed.blocks, [ranks.start for ranks in ranges[1:]]), _EVERYTHING]
        sent, bounds = _sent(routed), zip(ranges, itertools.pairwise(cuts), strict=True)
        parts = [NewRows(place, sent, low, high, len(ranks)) for ranks, (low, high) in bounds]
        known = len(assignment.to_files)
        bases = [FileGroupId(base.partition_path, base.file_id) for base, _ in assignment.to_files]
        return dict(zip(bases, parts[:known], strict=True)), parts[known:]

    def _pieces(self, groups: set[FileGroupId]) -> dict[FileGroupId, FileSlice]:
        """Slices of some groups, by partition and file id."""
        partitions = sorted({group.partition_path for group in groups})
        slices = (piece for path in partitions for piece in self.write.target.view.latest_slices(path))
        return {piece.group: piece for piece in slices if piece.group in groups}

    def _with_patches(self, patches: Sequence[StagedFile | None]) -> tuple[RowSource, Renumbering]:
        source, files = self.batch.source, [file for file in patches if file is not None]
        counts = [0 if file is None else file.num_rows for file in patches]
        starts = tuple(source.num_rows + before for before in itertools.accumulate(counts[:-1], initial=0))
        if not files:
            return source, Renumbering()
        staged = StagedSource(self.exchange.storage, tuple(files), source.slice(0, 0).schema)
        return JoinedSource(source, staged), Renumbering(starts)


def _sent(routed: Routed) -> Routed:
    """Without `blocks`, which only placing needs."""
    return replace(routed, blocks={})


def _logged(target: Target, piece: FileSlice) -> LoggedSlice:
    return LoggedSlice(piece) if target.logs is None else target.logs.logged(piece)
