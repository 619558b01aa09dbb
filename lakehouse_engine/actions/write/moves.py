"""Records that are stored under another partition path than they come with: with a global index they move, or are kept from it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.actions.write.context import WriteContext
from lakehouse_engine.actions.write.input import Batch
from lakehouse_engine.actions.write.source import PatchedSource, Rows
from lakehouse_engine.actions.write.tasks import NO_ROWS, FileContext
from lakehouse_engine.index.base import TaggedFile
from lakehouse_engine.model.keys import IS_DELETED, PARTITION_PATH, RECORD_KEY
from lakehouse_engine.read.base_file import read_base_file

Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Moves:
    """Collects the records that leave their partition; `rows` are their indices in the batch.

    Where an incoming row is merged with the stored one (`PartialUpdateAvroPayload`, or an update of some columns), it is merged before
    it is decided where the record belongs, and what is inserted there is the merged row (as Hudi's
    `HoodieIndexUtils.mergeForPartitionUpdatesIfNeeded`). A row whose partition columns are not updated so stays where it is.
    """

    context: WriteContext
    files: FileContext
    batch: Batch
    _rows: list[Rows] = field(default_factory=list)
    _merged: list[pa.Table] = field(default_factory=list)

    @property
    def rows(self) -> Rows:
        return np.unique(np.concatenate(self._rows)) if self._rows else NO_ROWS

    def split(self, tagged: TaggedFile) -> tuple[TaggedFile, TaggedFile]:
        """The hits in one file that are updated there, and those to remove because the record moves. Others lost, and do nothing."""
        here = self._here(tagged)
        if here.all():
            return tagged, _part(tagged, ~here)
        away = _part(tagged, ~here)
        if self.context.merger.whole_rows:
            goes = _part(away, self._wins(away))
            self._rows.append(goes.rows)
            return _part(tagged, here), goes
        merged, belongs_here = self._merge(away)
        here[np.flatnonzero(~here)[belongs_here]] = True
        self._rows.append(away.rows[~belongs_here])
        self._merged.append(merged.filter(pa.array(~belongs_here)))
        return _part(tagged, here), _part(away, ~belongs_here)

    def patched_batch(self) -> Batch:
        """The batch, with merged rows and their partition paths in the place of rows that move."""
        if not self._merged:
            return self.batch
        batch, moved, table = self.batch, np.concatenate(self._rows), pa.concat_tables(self._merged)
        # Of several stored records of one key, the last one found is what the incoming row is merged with.
        moved, first = np.unique(moved[::-1], return_index=True)
        table = table.take(pa.array(len(table) - 1 - first))
        paths = np.asarray(batch.partitions.cast(pa.string()), dtype=object)
        paths[moved] = np.asarray(table.column(PARTITION_PATH), dtype=object)
        numbers = batch.rows[moved]
        order = np.argsort(numbers)
        source = PatchedSource(batch.source, numbers[order], table.take(pa.array(order)))
        return Batch(source, batch.rows, batch.keys, pa.array(paths, pa.string()).dictionary_encode(), batch.duplicates)

    def _here(self, tagged: TaggedFile) -> Mask:
        """Which of the found records come under the partition path that they are stored in, or have to stay there."""
        context, batch = self.context, self.batch
        if not context.is_global or not context.options.update_partition_path:
            return np.ones(len(tagged.rows), dtype=bool)
        here = pc.index_in(pa.array([tagged.base.partition_path]), value_set=batch.partitions.dictionary)[0].as_py()
        codes = batch.partitions.indices.to_numpy(zero_copy_only=False)
        return np.asarray(codes[tagged.rows] == (-1 if here is None else here))

    def _wins(self, away: TaggedFile) -> Mask:
        """Of records that would move, those whose ordering value does not lose against the stored one."""
        names = self.context.ordering_fields if self.context.merger.compares_ordering else ()
        if not names:
            return np.ones(len(away.rows), dtype=bool)
        incoming = self.batch.source.columns(names).take(pa.array(self.batch.rows[away.rows]))
        return self._compared(self._stored(away, names), incoming)

    def _compared(self, stored: pa.Table, incoming: pa.Table) -> Mask:
        names = self.context.ordering_fields if self.context.merger.compares_ordering else ()
        wins = self.context.merger.wins([stored.column(name) for name in names], [incoming.column(name) for name in names])
        return np.ones(stored.num_rows, dtype=bool) if wins is None else wins

    def _merge(self, away: TaggedFile) -> tuple[pa.Table, Mask]:
        """The merged rows with their keys and partition paths, and which of them belong where they are stored.

        Rows marked as deleted are left where they are, to be deleted there.
        """
        rows = self.batch.rows[away.rows]
        order = np.argsort(rows, kind="stable")
        keyed = self.batch.source.take(rows[order]).take(pa.array(np.argsort(order, kind="stable")))
        incoming, stored = keyed.drop_columns([RECORD_KEY, PARTITION_PATH]), self._stored(away, self.files.schema.names)
        merged = self.context.merger.combine(stored, incoming.select(stored.column_names), self._compared(stored, incoming))
        paths = self.context.generator.partition_paths(merged).cast(pa.string())
        belongs = np.array(pc.equal(paths, away.base.partition_path))
        if IS_DELETED in incoming.column_names:
            belongs |= np.asarray(pc.fill_null(incoming.column(IS_DELETED), False), dtype=bool)
        return pa.table([keyed.column(RECORD_KEY), paths, *merged.columns], schema=keyed.schema), belongs

    def _stored(self, away: TaggedFile, names: list[str] | tuple[str, ...]) -> pa.Table:
        return read_base_file(self.files.storage, away.base.path, self.files.schema, columns=names).take(pa.array(away.positions))


def _part(tagged: TaggedFile, chosen: Mask) -> TaggedFile:
    return TaggedFile(tagged.base, tagged.num_rows, tagged.positions[chosen], tagged.rows[chosen])
