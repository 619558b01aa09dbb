"""Changes of each slice of a merge-on-read table in one commit, and their tasks.

A small base file without logs that takes new records is rewritten with all its changes, as by Hudi's `SparkUpsertDeltaCommitPartitioner` if
the index finds no keys in logs. Other changes are logged. What a log cannot express is a rewrite: the merged slice becomes a new base file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lakehouse_engine.commit.concurrency.pending import check_not_compacting
from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import UnsupportedTableError
from lakehouse_engine.files.row_pool import take_rows
from lakehouse_engine.format.log.positions import NOT_IN_BASE, Positions
from lakehouse_engine.index.bucket import BucketIndex, BucketLayout
from lakehouse_engine.model.files import BaseFile, FileSlice
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.order import Order
from lakehouse_engine.record.merging.mergers import OverwriteWithLatest
from lakehouse_engine.view.slicing import mixes_log_names
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.context import refuse_cdc
from lakehouse_engine.write.locate.buckets import place_in_buckets
from lakehouse_engine.write.locate.numbered import OlderTask, older_numbers
from lakehouse_engine.write.locate.settle import SliceHits
from lakehouse_engine.write.locate.stored_once import repeated
from lakehouse_engine.write.locate.target import Write
from lakehouse_engine.write.plan.assign import SizedFile
from lakehouse_engine.write.plan.buckets import new_bucket
from lakehouse_engine.write.plan.log_target import log_target
from lakehouse_engine.write.plan.mor_combine import CombineTask, combine_slice
from lakehouse_engine.write.plan.partial_rows import absent_columns
from lakehouse_engine.write.plan.placing import NewGroup, Places, new_group_tasks, unplaced
from lakehouse_engine.write.plan.write_plan import WritePlan
from lakehouse_engine.write.source import PatchedSource, Rows
from lakehouse_engine.write.tasks.append import AppendTask, GroupAppend, append_tasks
from lakehouse_engine.write.tasks.base_changes import MergeTask
from lakehouse_engine.write.tasks.base_files import NO_ROWS, Mask
from lakehouse_engine.write.tasks.slice_merge import SliceMergeTask

_SMALL_FILES = 1
"""Small files per partition that take new records in a commit (Hudi `hoodie.merge.small.file.group.candidates.limit`)."""


@dataclass(slots=True)
class SliceChange:
    """Changes of one slice. Rows are numbers of the batch's source.

    `rows[i]` meets the base row at `positions[i]`. `revived` are rows of keys that the slice has no live row of, `unseen` rows to be logged
    of which that is not known. `gone` are base rows to drop, `keys` the record keys of rows to drop, `seqnos` the numbers of those that
    have no key to themselves. `revived_at` and `keys_at` have the base rows that these keys are in, -1 for none, and for keys that were not
    looked for.
    """

    piece: FileSlice
    rows: Rows = field(default_factory=lambda: NO_ROWS)
    positions: Rows = field(default_factory=lambda: NO_ROWS)
    revived: list[Rows] = field(default_factory=list)
    revived_at: list[Rows] = field(default_factory=list)
    unseen: list[Rows] = field(default_factory=list)
    gone: list[Rows] = field(default_factory=list)
    keys: list[pa.Array] = field(default_factory=list)
    keys_at: list[Rows] = field(default_factory=list)
    seqnos: list[pa.Array] = field(default_factory=list)
    inserts: Rows = field(default_factory=lambda: NO_ROWS)
    rewrite: bool = False

    @property
    def is_appended(self) -> bool:
        """True if a log can express it."""
        return not (self.rewrite or len(self.inserts))

    @property
    def only_updates(self) -> bool:
        """True if a log can express it, and all of its rows have keys that the slice has."""
        return self.is_appended and not any(len(rows) for rows in (*self.revived, *self.unseen))

    def update(self, hits: SliceHits, source_rows: Rows) -> None:
        self.rows, self.positions = source_rows[hits.rows], hits.positions

    def delete(self, hits: SliceHits, keys: pa.Array) -> None:
        """`keys` are those of the batch that the hits number."""
        self.gone.append(hits.positions[hits.positions >= 0])
        rows, first = np.unique(hits.rows, return_index=True)
        self.drop_keys(keys.take(pa.array(rows)), hits.positions[first])

    def drop_keys(self, keys: pa.Array, positions: Rows | None = None) -> None:
        """Without `positions` the base rows of the keys are unknown."""
        self.keys.append(keys)
        self.keys_at.append(np.full(len(keys), NOT_IN_BASE, np.int64) if positions is None else positions)

    def revive(self, rows: Rows, positions: Rows | None = None) -> None:
        """Rows of the source; without `positions` no base row has their keys."""
        self.revived.append(rows)
        self.revived_at.append(np.full(len(rows), NOT_IN_BASE, np.int64) if positions is None else positions)

    def logged(self) -> Rows:
        """Every row that is an update or comes back, ascending."""
        return np.unique(np.concatenate([self.rows, *self.revived, *self.unseen]))

    def base_positions(self) -> Positions | None:
        """Base row of each logged row, if known for all of them, and at most one each."""
        known, positions = np.concatenate([self.rows, *self.revived]), np.concatenate([self.positions, *self.revived_at])
        rows, first = np.unique(known, return_index=True)
        if self.piece.base_file is None or any(len(part) for part in self.unseen) or len(rows) != len(known):
            return None
        return positions[first].astype(np.int32)

    def deleted_keys(self) -> tuple[pa.Array, Rows]:
        """Each key once, and the base row that it is in, -1 where that is not known, or there is none."""
        encoded = pa.concat_arrays([pa.array([], pa.string()), *self.keys]).dictionary_encode()
        positions = np.full(len(encoded.dictionary), NOT_IN_BASE, np.int64)
        np.maximum.at(positions, np.asarray(encoded.indices), np.concatenate([NO_ROWS, *self.keys_at]))
        return encoded.dictionary, positions

    def deleted_numbers(self) -> pa.Array:
        return _distinct(self.seqnos)


def _distinct(parts: Sequence[pa.Array]) -> pa.Array:
    return pa.concat_arrays([pa.array([], pa.string()), *parts]).unique()


class DeltaPlan:
    """Collects changes of slices and new groups; numbers the tasks. `moves` counts records that leave one partition for another, `left_out`
    rows of an insert that are not added because their key is stored. `absent` are columns that updates need not have in logs: such rows are
    collected as they were given.
    """

    def __init__(self, write: Write, batch: Batch) -> None:
        assert write.target.logs is not None
        self.write, self.target, self.context, self.files, self.batch = write, write.target, write.context, write.files, batch
        self.logs = write.target.logs
        self.changes: dict[FileGroupId, SliceChange] = {}
        self.creates: list[NewGroup] = []
        self.moves = self.left_out = 0
        self.absent = absent_columns(self.context)

    def change(self, piece: FileSlice) -> SliceChange:
        refuse_cdc(self.context.config)
        return self.changes.setdefault(piece.group, SliceChange(piece, rewrite=self._takes_no_logs(piece)))

    def _takes_no_logs(self, piece: FileSlice) -> bool:
        """Where a compaction is planned, logs go to the slice that it will make, behind all there are."""
        order = Order.by_request(self.context.config.logs_by_writer)
        return piece.group not in self.target.compacting and mixes_log_names(piece, order)

    def drop(self, hits: SliceHits, chosen: Mask, batch: Batch) -> None:
        """Delete the stored rows of the chosen hits. A log deletes by key; if some rows of a key stay, others are deleted by number."""
        if not chosen.any():
            return
        change = self.change(hits.piece)
        torn = chosen & np.isin(hits.rows, hits.rows[hits.alive & ~chosen])
        # If a key is stored more than once, Hudi's readers delete the first row, others all of them.
        change.rewrite |= bool(repeated(hits.rows)[chosen].any())
        change.delete(hits.only(chosen & ~torn), batch.keys)
        if torn.any():
            change.rewrite = True
            change.gone.append(hits.positions[torn & (hits.positions >= 0)])
            if hits.piece.log_files:
                change.seqnos.append(self._numbers(hits.piece, np.unique(hits.rows[torn]), batch))

    def _numbers(self, piece: FileSlice, indices: Rows, batch: Batch) -> pa.Array:
        """Numbers of the stored rows against which batch rows win."""
        if not self.context.config.populates_meta_fields:
            raise UnsupportedTableError(
                "several rows of one key are stored, only some of them are to be deleted, and they have no meta columns to tell them"
                " apart by; compact the table first",
                table=self.context.config.name,
            )
        ordering, rows = self.logs.reader.rules.ordering, batch.rows[indices]
        values = tuple(ordering.values(batch.source.columns(ordering.roots, rows)))
        return older_numbers(OlderTask(self.logs.reader, self.logs.logged(piece), batch.keys.take(pa.array(indices)), values))

    def insert(self, indices: Rows) -> None:
        """New records by partition: to their bucket's group, else to a small file first."""
        index = self.context.index
        if isinstance(index, BucketIndex):
            self._insert_into_buckets(index.layout, indices)
            return
        if self.target.is_part:
            self.creates += unplaced(self.batch, indices)
            return
        placement = self.places.place(self.batch, indices)
        for base, rows in placement.to_files:
            self.change(self._slices(base.partition_path)[base.path]).inserts = rows
        self.creates += placement.to_new

    @property
    def places(self) -> Places:
        """Files that may take new records."""
        return Places(self.files, self._bases, self._open)

    def _insert_into_buckets(self, layout: BucketLayout, indices: Rows) -> None:
        for found in place_in_buckets(layout, self.batch, self.target.view, indices):
            if found.piece is None:
                self.creates.append(new_bucket(found, self.batch))
            elif self.context.single_rows:  # a log would replace all rows of its key
                self.change(found.piece).inserts = self.batch.rows[found.rows]
            else:
                self.change(found.piece).revive(self.batch.rows[found.rows])

    def _slices(self, partition: str) -> dict[str, FileSlice]:
        """Slices with a base file, by its path."""
        return {piece.base_file.path: piece for piece in self.target.view.latest_slices(partition) if piece.base_file is not None}

    def _bases(self, partition: str) -> list[BaseFile]:
        return [piece.base_file for piece in self._slices(partition).values() if piece.base_file is not None]

    def _open(self, sized: Sequence[SizedFile]) -> list[SizedFile]:
        if self.context.config.cdc_enabled or not sized:
            return []
        slices = self._slices(sized[0].base.partition_path)
        small = [file for file in sized if self._takes_inserts(slices[file.base.path])]
        return sorted(small, key=lambda file: file.base.size)[:_SMALL_FILES]

    def _takes_inserts(self, piece: FileSlice) -> bool:
        busy = (piece.partition_path, piece.file_id) in self.target.clustering or piece.group in self.target.compacting
        return not piece.log_files and not busy

    def finish(self, runner: TaskRunner, first_task: int = 0) -> WritePlan:
        """The tasks, numbered from `first_task`.

        Raises as `SliceReader.iter`, and `CommitConflictError` for a slice to be rewritten that a compaction has plans for.
        """
        self._make_whole(runner)
        merges, rewrites, appends = self._split()
        tasks = [self._merge(number, change) for number, change in enumerate(merges, first_task)]
        first = first_task + len(tasks)
        slices = [self._rewrite(number, change) for number, change in enumerate(rewrites, first)]
        first += len(slices)
        creates = new_group_tasks(self.files, self.creates, self.batch.source, first)
        logs = self._append_tasks([self._append(change) for change in appends], first + len(creates), runner.parallelism)
        return WritePlan(tuple(tasks), creates, tuple(logs), tuple(slices), self.moves)

    def _make_whole(self, runner: TaskRunner) -> None:
        """Replace updates of some columns by whole rows, in slices that are rewritten or get other rows too."""
        changes = [change for change in self.changes.values() if self.absent and len(change.rows) and not change.only_updates]
        tasks = [self._combine_task(change) for change in changes]
        made = runner.run(combine_slice, tasks, name="combine")
        if made:
            numbers = np.concatenate([one.rows for one in made])
            order = np.argsort(numbers)
            table = take_rows(pa.concat_tables(one.table for one in made), order)
            self.batch = replace(self.batch, source=PatchedSource(self.batch.source, numbers[order], table))

    def _combine_task(self, change: SliceChange) -> CombineTask:
        rows, reader = np.unique(change.rows), self.logs.reader
        # Rows that lose are not changes.
        wins = np.ones(len(rows), dtype=bool)
        return CombineTask(reader, self.logs.logged(change.piece), self.context.merger, self.batch.source, rows, wins)

    def _split(self) -> tuple[list[SliceChange], list[SliceChange], list[SliceChange]]:
        """Changes that make a new base file version, those that rewrite a slice with logs, and those that are logged."""
        merges: list[SliceChange] = []
        rewrites: list[SliceChange] = []
        appends: list[SliceChange] = []
        for change in self.changes.values():
            if change.is_appended:
                appends.append(change)
                continue
            check_not_compacting(change.piece.group, self.target.compacting)
            (rewrites if change.piece.log_files else merges).append(change)
        return merges, rewrites, appends

    def _merge(self, number: int, change: SliceChange) -> MergeTask:
        assert change.piece.base_file is not None
        merger = self.context.merger
        return MergeTask(
            context=self.files,
            task=number,
            base=change.piece.base_file,
            source=self.batch.source,
            # Combined rows are stored whatever their ordering values are now.
            merger=merger if merger.whole_rows else OverwriteWithLatest(),
            ordering=self.context.ordering,
            marks=self.context.marks,
            positions=change.positions,
            rows=change.rows,
            deletes=np.unique(np.concatenate([NO_ROWS, *change.gone])),
            # Without logs nothing is dead: a key without a live row is new.
            inserts=np.unique(np.concatenate([change.inserts, *change.revived])),
        )

    def _rewrite(self, number: int, change: SliceChange) -> SliceMergeTask:
        return SliceMergeTask(
            context=self.files,
            task=number,
            piece=self.logs.logged(change.piece),
            reader=self.logs.reader,
            source=self.batch.source,
            rows=change.logged(),
            deletes=change.deleted_keys()[0],
            seqnos=change.deleted_numbers(),
            inserts=change.inserts,
        )

    def _append(self, change: SliceChange) -> GroupAppend:
        target = log_target(change.piece, self.target.compacting)
        inserts = sum(len(rows) for rows in change.revived)
        keys, at = change.deleted_keys()
        absent = self.absent if change.only_updates else frozenset()
        append = GroupAppend(change.piece, target, change.logged(), inserts, keys, absent=absent)
        if not self.context.options.record_positions:
            return append
        # A row combined from an incoming and a stored one may rank behind other stored rows of its key.
        return replace(append, positions=change.base_positions(), deleted_at=at, settled=self.context.merger.whole_rows)

    def _append_tasks(self, groups: Sequence[GroupAppend], first: int, parallelism: int) -> list[AppendTask]:
        if not groups:
            return []
        return append_tasks(self.files, groups, self.batch.source, first, parallelism, self.logs.reader.rules)
