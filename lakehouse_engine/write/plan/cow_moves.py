"""Records stored under another partition path than they come with: with a global index they move, or are kept from moving."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.files.base_file import read_base_file
from lakehouse_engine.index.base import TaggedFile
from lakehouse_engine.model.keys import PARTITION_PATH, RECORD_KEY
from lakehouse_engine.record.merging.ordering_fields import NO_ORDERING
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.context import WriteContext
from lakehouse_engine.write.locate.target import Write
from lakehouse_engine.write.source import PatchedSource, Rows
from lakehouse_engine.write.tasks.base_files import NO_ROWS, FileContext

Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Moves:
    """Collects records that leave their partition; `rows` are their batch indices.

    If incoming rows are combined with stored ones (`PartialUpdateAvroPayload`, or an update of some columns), that happens first, and the
    combined row determines the partition and is inserted there (like Hudi's `HoodieIndexUtils.mergeForPartitionUpdatesIfNeeded`). A row
    whose partition columns are not updated thus stays.
    """

    write: Write
    batch: Batch
    _rows: list[Rows] = field(default_factory=list)
    _merged: list[pa.Table] = field(default_factory=list)
    _coded: tuple[dict[str, int], npt.NDArray[Any]] | None = None
    """Codes of partition paths, and those of the batch's rows."""

    @property
    def context(self) -> WriteContext:
        return self.write.context

    @property
    def rows(self) -> Rows:
        return np.unique(np.concatenate(self._rows)) if self._rows else NO_ROWS

    def split(self, tagged: TaggedFile) -> tuple[TaggedFile, TaggedFile]:
        """Hits in one file that are updated there, and those removed because the record moves. Others have lost, and do nothing."""
        here = self._here(tagged)
        if here.all():
            return tagged, part_of(tagged, ~here)
        away = part_of(tagged, ~here)
        if self.context.merger.whole_rows:
            goes = part_of(away, winners(self.write, self.batch, away) | self._late_deletions(away))
            self._rows.append(goes.rows)
            return part_of(tagged, here), goes
        merged, belongs_here = self._merge(away)
        here[np.flatnonzero(~here)[belongs_here]] = True
        self._rows.append(away.rows[~belongs_here])
        self._merged.append(merged.filter(pa.array(~belongs_here)))
        return part_of(tagged, here), part_of(away, ~belongs_here)

    def patched_batch(self) -> Batch:
        """The batch with combined rows and their partition paths replacing rows that move."""
        if not self._merged:
            return self.batch
        batch, moved, table = self.batch, np.concatenate(self._rows), pa.concat_tables(self._merged)
        # Among several stored records of one key, the incoming row is combined with the last one found.
        moved, first = np.unique(moved[::-1], return_index=True)
        table = table.take(pa.array(len(table) - 1 - first))
        paths = np.asarray(batch.partitions.cast(pa.string()), dtype=object)
        paths[moved] = np.asarray(table.column(PARTITION_PATH), dtype=object)
        numbers = batch.rows[moved]
        order = np.argsort(numbers)
        source = PatchedSource(batch.source, numbers[order], table.take(pa.array(order)))
        return Batch(source, batch.rows, batch.keys, pa.array(paths, pa.string()).dictionary_encode(), batch.duplicates)

    def _here(self, tagged: TaggedFile) -> Mask:
        """Found records that belong to the partition in which they are stored, or must stay there."""
        context, batch = self.context, self.batch
        if not context.is_global or not context.options.update_partition_path:
            return np.ones(len(tagged.rows), dtype=bool)
        if self._coded is None:
            paths = batch.partitions.dictionary.to_pylist()
            self._coded = {path: code for code, path in enumerate(paths)}, batch.partitions.indices.to_numpy(zero_copy_only=False)
        numbers, codes = self._coded
        return np.asarray(codes[tagged.rows] == numbers.get(tagged.base.partition_path, -1))

    def _late_deletions(self, away: TaggedFile) -> Mask:
        """Rows marked as deleted that delete rows against which they lose."""
        context, batch, rows = self.context, self.batch, self.batch.rows[away.rows]
        names = context.marks.columns(list(batch.source.column_names))
        marked = context.marks.of(batch.source.columns(names, rows)) if names else np.zeros(len(rows), dtype=bool)
        ordering = _ordering(self.write, batch, away) if marked.any() else None
        deletes = None if ordering is None else context.merger.deletes(*ordering)
        return marked if deletes is None else marked & deletes

    def _merge(self, away: TaggedFile) -> tuple[pa.Table, Mask]:
        """Combined rows with keys and partition paths, and which of them belong where they are stored.

        Rows marked as deleted stay where they are, to be deleted there.
        """
        rows = self.batch.rows[away.rows]
        order = np.argsort(rows, kind="stable")
        keyed = self.batch.source.take(rows[order]).take(pa.array(np.argsort(order, kind="stable")))
        incoming, stored = keyed.drop_columns([RECORD_KEY, PARTITION_PATH]), _stored(self.write.files, away, self.write.files.schema.names)
        merged = self.context.merger.combine(stored, incoming.select(stored.column_names), _compared(self.context, stored, incoming))
        paths = self.context.generator.partition_paths(merged).cast(pa.string())
        belongs = np.array(pc.equal(paths, away.base.partition_path))
        belongs |= self.context.marks.of(incoming)
        return pa.table([keyed.column(RECORD_KEY), paths, *merged.columns], schema=keyed.schema), belongs


def winners(write: Write, batch: Batch, tagged: TaggedFile) -> Mask:
    """Found records whose incoming ordering value does not lose.

    All of them if ordering does not count, or the batch has keys only.
    """
    ordering = _ordering(write, batch, tagged)
    wins = None if ordering is None else write.context.merger.wins(*ordering)
    return np.ones(len(tagged.rows), dtype=bool) if wins is None else wins


def _ordering(write: Write, batch: Batch, tagged: TaggedFile) -> tuple[Sequence[pa.Array], Sequence[pa.Array]] | None:
    """Ordering values of found records, and of the rows that found them. None if they do not count, or the batch has keys only."""
    context = write.context
    names = context.ordering.roots if context.merger.compares_ordering else []
    if not names or not set(names) <= set(batch.source.column_names):
        return None
    incoming = batch.source.columns(names, batch.rows[tagged.rows])
    return context.ordering.values(_stored(write.files, tagged, names)), context.ordering.values(incoming)


def _compared(context: WriteContext, stored: pa.Table, incoming: pa.Table) -> Mask:
    compared = context.ordering if context.merger.compares_ordering else NO_ORDERING
    wins = context.merger.wins(compared.values(stored), compared.values(incoming))
    return np.ones(stored.num_rows, dtype=bool) if wins is None else wins


def _stored(files: FileContext, tagged: TaggedFile, names: Sequence[str]) -> pa.Table:
    return read_base_file(files.storage, tagged.base, files.schema, columns=names).take(pa.array(tagged.positions))


def part_of(tagged: TaggedFile, chosen: Mask) -> TaggedFile:
    """The tagged file with only the chosen rows."""
    return TaggedFile(tagged.base, tagged.num_rows, tagged.positions[chosen], tagged.rows[chosen])
