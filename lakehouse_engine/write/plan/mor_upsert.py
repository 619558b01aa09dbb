"""Upsert of a merge-on-read table: from hits to changes of slices.

For every stored key it is known whether it lives and whether the incoming row wins (`settle`), so only rows that count are logged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import DuplicateKeyError
from lakehouse_engine.model.keys import PARTITION_PATH, RECORD_KEY
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.locate.settle import SliceHits
from lakehouse_engine.write.locate.stored_once import repeated
from lakehouse_engine.write.plan.mor_changes import DeltaPlan
from lakehouse_engine.write.plan.mor_combine import Combined, CombineTask, combine_slice
from lakehouse_engine.write.plan.partial_rows import takes_no_row_back
from lakehouse_engine.write.source import PatchedSource
from lakehouse_engine.write.tasks.base_files import NO_ROWS, Mask


class Upsert:
    """Steps of one upsert; `update` comes before `insert`.

    `_settled` are batch rows that need no insert, because their key is stored and stays, `_moved` those whose key is deleted in one
    partition and inserted in another.
    """

    def __init__(self, plan: DeltaPlan, runner: TaskRunner, hits: Sequence[SliceHits]) -> None:
        self._plan, self._runner, self._hits = plan, runner, hits
        self._marked = marked_rows(plan)
        self._settled = np.zeros(len(plan.batch.rows), dtype=bool)
        self._moved = np.zeros(len(plan.batch.rows), dtype=bool)

    def update(self) -> None:
        """Change what is stored."""
        merger = self._plan.context.merger
        touched = [self._touched(hits) for hits in self._hits]
        here = [self._here(hits) for hits in self._hits]
        if self._plan.absent:
            # They update no partition column, and the plan makes whole rows where needed.
            here = [np.ones(len(hits.rows), dtype=bool) for hits in self._hits]
            self._check_stored_once(self._chosen(touched))
        elif not merger.whole_rows:
            self._combine(touched, here)
        for hits, changed, stays in zip(self._hits, touched, here, strict=True):
            self._change(hits, changed, stays)

    def insert(self) -> int:
        """Add what is not stored; returns the number of records that changed partition."""
        wanted = ~self._settled & ~self._marked
        moved = int((self._moved & wanted).sum())
        for hits in self._hits:
            self._revive(hits, wanted)
        self._plan.insert(np.flatnonzero(wanted).astype(np.int64))
        return moved

    def _touched(self, hits: SliceHits) -> Mask:
        """Stored rows that change: a losing row changes nothing, unless it fills the winner's nulls."""
        changes = hits.wins | self._plan.context.merger.losers_matter
        return np.asarray(hits.alive & np.where(self._marked[hits.rows], hits.deletes, changes))

    def _here(self, hits: SliceHits) -> Mask:
        """Rows that belong to the partition in which their keys are stored, or must stay there."""
        context = self._plan.context
        if not context.is_global or not context.options.update_partition_path:
            return np.ones(len(hits.rows), dtype=bool)
        return self._in_partition(hits)

    def _in_partition(self, hits: SliceHits) -> Mask:
        """Rows that come under the slice's partition path."""
        partitions = self._plan.batch.partitions
        here = pc.index_in(pa.array([hits.piece.partition_path]), value_set=partitions.dictionary)[0].as_py()
        codes = partitions.indices.to_numpy(zero_copy_only=False)
        return np.asarray(codes[hits.rows] == (-1 if here is None else here))

    def _change(self, hits: SliceHits, touched: Mask, here: Mask) -> None:
        marked = self._marked[hits.rows]
        updates, goes = touched & here & ~marked, touched & ~here & ~marked
        if updates.any():
            change = self._plan.change(hits.piece)
            change.update(hits.only(updates), self._plan.batch.rows)
            # Readers differ on a logged row with several stored ones, and on doubtful ones.
            unsaid = hits.doubtful | repeated(hits.rows)
            change.rewrite |= self._plan.context.unsaid_by_logs or bool(unsaid[updates].any())
        self._plan.drop(hits, goes | (touched & marked), self._plan.batch)
        self._moved[hits.rows[goes]] = True
        # A record that stays somewhere, or loses there, is not inserted elsewhere, even if a second record of its key is stored.
        self._settled[np.setdiff1d(hits.rows[hits.alive], hits.rows[goes])] = True

    def _revive(self, hits: SliceHits, wanted: Mask) -> None:
        """Records whose key is dead in a slice of their partition come back there: every index still finds its base row."""
        dead = ~hits.alive
        if dead.any():
            dead &= wanted[hits.rows] & self._in_partition(hits)
        if dead.any():
            rows, first = np.unique(hits.rows[dead], return_index=True)
            change = self._plan.change(hits.piece)
            change.revive(self._plan.batch.rows[rows], hits.positions[dead][first])
            change.rewrite |= not hits.wins[dead].all() or takes_no_row_back(self._plan.context, hits.piece)
            wanted[rows] = False

    # combined rows

    def _combine(self, touched: Sequence[Mask], here: list[Mask]) -> None:
        """Replace incoming rows by combined ones, which determine their own partition: a row whose partition columns are not updated stays
        (like Hudi's `HoodieIndexUtils.mergeForPartitionUpdatesIfNeeded`).
        """
        chosen = self._chosen(touched)
        self._check_stored_once(chosen)
        tasks = [self._combine_task(hits, rows) for hits, rows in zip(self._hits, chosen, strict=True) if rows.any()]
        combined = iter(self._runner.run(combine_slice, tasks, name="combine"))
        patches: list[Combined] = []
        for number, (hits, rows) in enumerate(zip(self._hits, chosen, strict=True)):
            if rows.any():
                patch, belongs = self._placed(hits, next(combined), stays=bool(here[number][rows].all()))
                patches.append(patch)
                stays = np.isin(self._plan.batch.rows[hits.rows], patch.rows[belongs])
                here[number] = here[number] | (stays & rows) | self._marked[hits.rows]
        if patches:
            self._plan.batch = _patched(self._plan.batch, patches)

    def _chosen(self, touched: Sequence[Mask]) -> list[Mask]:
        """Hits without rows marked as deletions."""
        return [changed & ~self._marked[hits.rows] for hits, changed in zip(self._hits, touched, strict=True)]

    def _check_stored_once(self, chosen: Sequence[Mask]) -> None:
        """A log replaces all rows of a key by one, even several for which an incoming row gives different results."""
        rows = [hits.rows[some] for hits, some in zip(self._hits, chosen, strict=True)]
        numbers, counts = np.unique(np.concatenate([NO_ROWS, *rows]), return_counts=True)
        if (counts > 1).any():
            key = self._plan.batch.keys[int(numbers[counts > 1][0])].as_py()
            raise DuplicateKeyError(
                f"the key {key!r} is stored more than once, and what is written of it here would be made of each of these rows: the log of"
                " a merge-on-read table has one row a key. Write whole rows of it, or delete the key before",
                table=self._plan.context.config.name,
            )

    def _combine_task(self, hits: SliceHits, chosen: Mask) -> CombineTask:
        plan, (rows, first) = self._plan, np.unique(hits.rows[chosen], return_index=True)
        return CombineTask(
            reader=plan.logs.reader,
            piece=plan.logs.logged(hits.piece),
            merger=plan.context.merger,
            source=plan.batch.source,
            rows=plan.batch.rows[rows],
            wins=hits.wins[chosen][first],
        )

    def _placed(self, hits: SliceHits, combined: Combined, *, stays: bool) -> tuple[Combined, Mask]:
        """Rows under the partition paths that they belong to, and which of them belong where they are stored."""
        table = combined.table
        paths = pa.array([hits.piece.partition_path], pa.string()).take(pa.array(np.zeros(table.num_rows, np.int64)))
        if not stays:
            paths = self._plan.context.generator.partition_paths(table.drop_columns([RECORD_KEY, PARTITION_PATH])).cast(pa.string())
        placed = table.set_column(table.schema.get_field_index(PARTITION_PATH), table.schema.field(PARTITION_PATH), paths)
        return Combined(combined.rows, placed), np.asarray(pc.equal(paths, hits.piece.partition_path))


def marked_rows(plan: DeltaPlan) -> Mask:
    """Batch rows marked as deletions, by `_hoodie_is_deleted` or the table's payload."""
    rules, batch = plan.logs.reader.rules, plan.batch
    names = rules.marks.columns(list(batch.source.column_names)) if len(batch.rows) else []
    if not names:
        return np.zeros(len(batch.rows), dtype=bool)
    return rules.deletions(batch.source.columns(names, batch.rows))


def _patched(batch: Batch, patches: Sequence[Combined]) -> Batch:
    """The batch with these rows replaced; of several for one row the last."""
    numbers = np.concatenate([patch.rows for patch in patches])
    rows, last = np.unique(numbers[::-1], return_index=True)
    table = pa.concat_tables([patch.table for patch in patches]).take(pa.array(len(numbers) - 1 - last))
    replaced = np.isin(batch.rows, rows)
    paths = pc.replace_with_mask(batch.partitions.cast(pa.string()), pa.array(replaced), table.column(PARTITION_PATH).combine_chunks())
    source = PatchedSource(batch.source, rows, table)
    return Batch(source, batch.rows, batch.keys, paths.dictionary_encode(), batch.duplicates)
