"""A slice with log files as Arrow: its base file merged with its logs (hudi-format 7; Hudi `RecordMergingFileIterator`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.read.base_file import concat, projected_schema, read_base_file
from lakehouse_engine.read.log_records import DELETED, LogOutcome, combine_rows, fold_logs
from lakehouse_engine.read.log_scanner import LoggedSlice, LogScope, scan_logs
from lakehouse_engine.read.merge_rules import MergeRules
from lakehouse_engine.storage.base import Storage

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SliceChanges:
    """What logs do to a base file: rows at the positions `removed` (ascending) go, the rows `added` come, new or in their place."""

    removed: Rows
    added: pa.Table


def plain(schema: pa.Schema) -> pa.Schema:
    """The schema with text where the base file reader has dictionaries."""
    return pa.schema([field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field for field in schema])


@dataclass(frozen=True, slots=True)
class SliceReader:
    """Reads slices of one table. `schema` holds its user columns; picklable."""

    storage: Storage
    schema: pa.Schema
    rules: MergeRules
    scope: LogScope

    @property
    def has_meta_columns(self) -> bool:
        return self.rules.key_generator is None

    def read(self, piece: LoggedSlice, columns: Sequence[str]) -> pa.Table:
        """All rows of a slice in the given columns (meta columns may be among them), those of the base file first.

        Raises as `scan_logs`, `fold_logs` and `read_base_file`.
        """
        outcome = self._outcome(piece, columns)
        stored = self._base(piece.slice.base_file, self._stored_names(columns))
        changes = self._merge(stored, outcome, columns)
        kept = np.ones(stored.num_rows, np.bool_)
        kept[changes.removed] = False
        return concat([stored.select(list(columns)).filter(pa.array(kept)), changes.added], self._plain(columns))

    def changes(self, piece: LoggedSlice, columns: Sequence[str]) -> SliceChanges:
        """What the logs of a slice change; of its base file only what the merge needs is read. Raises as `read`."""
        outcome = self._outcome(piece, columns)
        names = self.rules.columns(self.schema, base=True)
        stored = self._base(piece.slice.base_file, names if self.rules.merger.whole_rows else self._stored_names(columns))
        return self._merge(stored, outcome, columns)

    def _outcome(self, piece: LoggedSlice, columns: Sequence[str]) -> LogOutcome:
        return fold_logs(scan_logs(self.storage, piece, self.scope), self._plain(self._names(columns, base=False)), self.rules)

    def _names(self, columns: Sequence[str], *, base: bool) -> list[str]:
        return list(dict.fromkeys([*columns, *self.rules.columns(self.schema, base=base)]))

    def _stored_names(self, columns: Sequence[str]) -> list[str]:
        # Rows that are made of two need the same columns on both sides.
        return self._names(columns, base=self.rules.merger.whole_rows)

    def _plain(self, columns: Sequence[str]) -> pa.Schema:
        return plain(projected_schema(self.schema, columns))

    def _base(self, base: BaseFile | None, columns: Sequence[str]) -> pa.Table:
        wanted = self._plain(columns)
        return wanted.empty_table() if base is None else read_base_file(self.storage, base, self.schema, columns=columns).cast(wanted)

    def _merge(self, stored: pa.Table, outcome: LogOutcome, columns: Sequence[str]) -> SliceChanges:
        found = pc.index_in(self.rules.record_keys(stored), value_set=outcome.keys)
        matched = np.flatnonzero(np.asarray(found.is_valid()))
        codes = np.asarray(found.drop_null()).astype(np.int64)
        rows = outcome.rows[codes]
        deletions = np.asarray(self.rules.deletions(outcome.data))
        removed, replaced = self._pairs(stored, outcome.data, matched, rows, deletions)
        fresh = np.ones(len(outcome.keys), np.bool_)
        fresh[codes] = False
        inserted = outcome.rows[fresh & (outcome.rows >= 0)]
        inserts = outcome.data.take(pa.array(inserted[~deletions[inserted]]))
        names = list(columns)
        return SliceChanges(removed, concat([replaced.select(names), inserts.select(names)], self._plain(columns)))

    def _pairs(
        self, stored: pa.Table, data: pa.Table, matched: Rows, rows: Rows, deletions: npt.NDArray[np.bool_]
    ) -> tuple[Rows, pa.Table]:
        """Positions that change, and the rows that take the place of some of them.

        `matched` are positions of base rows whose key ended as row `rows[i]` of `data`, or DELETED: a deletion takes a base row
        away whatever the ordering values.
        """
        deleted = matched[rows == DELETED]
        positions, rows = matched[rows != DELETED], rows[rows != DELETED]
        before, after = stored.take(pa.array(positions)), data.take(pa.array(rows))
        merger, gone = self.rules.merger, deletions[rows]
        ordering = [[side.column(name).combine_chunks() for name in self._compared()] for side in (before, after)]
        wins, deletes = merger.wins(*ordering), merger.deletes(*ordering)
        all_of_them = np.ones(len(positions), np.bool_)
        kept = ~gone & (all_of_them if wins is None or not merger.whole_rows else wins)
        removed = np.concatenate([deleted, positions[kept], positions[gone & (all_of_them if deletes is None else deletes)]])
        if not merger.whole_rows:
            mask = None if wins is None else wins[kept]
            after = combine_rows(before.select(after.column_names).filter(pa.array(kept)), after.filter(pa.array(kept)), mask, merger)
            return np.sort(removed), after
        return np.sort(removed), after.filter(pa.array(kept))

    def _compared(self) -> tuple[str, ...]:
        return self.rules.ordering if self.rules.merger.compares_ordering else ()
