"""Reads a slice with log files as Arrow: its base file merged with its logs (hudi-format 7; Hudi `RecordMergingFileIterator`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.errors import CorruptLogError
from lakehouse_engine.files.base_file import concat, iter_base_file, projected_schema
from lakehouse_engine.files.base_positions import SlicePositions, slice_positions
from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.files.log_records import DELETED, LogOutcome, combine_rows, deletions_win, fold_logs
from lakehouse_engine.files.log_scanner import LogScope, ScannedLogs, scan_logs
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.row_pool import SpillTo, take_rows
from lakehouse_engine.format.log.positions import NOT_IN_BASE
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import COMMIT_TIME
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.record.matching import matches
from lakehouse_engine.storage.base import Storage

Rows = npt.NDArray[np.int64]

_AT_ONCE = 1 << 17
"""Batch size for rows that only the logs have."""


@dataclass(frozen=True, slots=True)
class SliceChanges:
    """How logs change a base file: rows at the positions `removed` (ascending) go; the rows `added`, new or replacements, come.

    `base_rows` counts the rows of the base file.
    """

    removed: Rows
    added: pa.Table
    base_rows: int = 0


def plain(schema: pa.Schema) -> pa.Schema:
    """The schema with plain text for the base file reader's dictionaries."""
    return pa.schema([field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field for field in schema])


@dataclass(frozen=True, slots=True)
class KnownRows:
    """Positions of base rows (ascending), and for each the number of its key in the logs."""

    positions: Rows
    codes: Rows

    @classmethod
    def of(cls, positions: Rows) -> KnownRows:
        """`positions[i]` is the base row of key i; `NOT_IN_BASE` if it has none."""
        codes = np.flatnonzero(positions != NOT_IN_BASE)
        order = np.argsort(positions[codes])
        return cls(positions[codes][order], codes[order])

    def within(self, begin: int, end: int) -> tuple[Rows, Rows]:
        """Positions and keys from `begin` up to, not including, `end`."""
        low, high = np.searchsorted(self.positions, [begin, end])
        return self.positions[low:high], self.codes[low:high]


class BaseRowsBy(Enum):
    """How to find the base rows that logs replace (docs/adr/0040)."""

    KEYS = auto()
    CHECKED_POSITIONS = auto()
    """By positions if all blocks have them, else by keys. Reads the logs' keys, to detect two keys with the same position."""
    POSITIONS = auto()
    """By positions without reading keys."""


@dataclass(frozen=True, slots=True)
class SliceReader:
    """Reads slices of one table. `schema` holds its user columns; `verify` checks checksums. Picklable."""

    storage: Storage
    schema: pa.Schema
    rules: MergeRules
    scope: LogScope
    verify: bool = True
    base_rows: BaseRowsBy = BaseRowsBy.KEYS

    @property
    def has_meta_columns(self) -> bool:
        return self.rules.key_generator is None

    @property
    def counted(self) -> list[str]:
        """A column to read if none is requested, because rows without columns cannot be counted."""
        return self.rules.columns(self.schema, base=True)[:1]

    def read(self, piece: LoggedSlice, columns: Sequence[str]) -> pa.Table:
        """All rows of a slice in the given columns (which may include meta columns), those of the base file first.

        Raises as `scan_logs`, `fold_logs` and `read_base_file`.
        """
        return concat(list(self.iter(piece, columns)), self._plain(columns))

    def iter(self, piece: LoggedSlice, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Like `read`, but yields one table per row group of the base file, then the rows that only the logs have."""
        merge = self.merge(piece, columns)
        yield from self._base_rows(piece, columns, merge)
        yield self._picked(columns, merge.inserts())

    def stream(self, piece: LoggedSlice, columns: Sequence[str], spill: SpillTo | None = None) -> Iterator[pa.Table]:
        """Like `iter`, but yields the rows that only the logs have in batches, if there are any.

        With `spill`, rows of the logs above its limit are kept in files meanwhile.
        """
        merge = self.merge(piece, columns, spill)
        yield from self._base_rows(piece, columns, merge)
        numbers = np.sort(merge.insert_numbers())
        for start in range(0, len(numbers), _AT_ONCE):
            yield self._picked(columns, take_rows(merge.outcome.data, numbers[start : start + _AT_ONCE]))

    def _base_rows(self, piece: LoggedSlice, columns: Sequence[str], merge: SliceMerge) -> Iterator[pa.Table]:
        before = 0
        for stored in self._stored(piece.slice.base_file, self._stored_names(columns, merge)):
            removed, replaced = merge.settled_pairs(before, stored.num_rows) if merge.settled else merge.pairs(stored, before)
            before += stored.num_rows
            kept = np.ones(stored.num_rows, np.bool_)
            kept[removed] = False
            yield self._picked(columns, stored.filter(pa.array(kept)) if len(removed) else stored, replaced)

    def _picked(self, columns: Sequence[str], *parts: pa.Table) -> pa.Table:
        return concat([part.select(list(columns)) for part in parts], self._plain(columns))

    def changes(self, piece: LoggedSlice, columns: Sequence[str]) -> SliceChanges:
        """Changes that the logs of a slice make; reads only what the merge needs of its base file. Raises as `read`."""
        merge = self.merge(piece, columns)
        if not merge.rules.whole_rows:
            return self._combined_changes(piece, merge, columns)
        removed, kept, base_rows = self._whole_changes(piece.slice.base_file, merge)
        return SliceChanges(removed, take_rows(merge.outcome.data.select(list(columns)), kept), base_rows)

    def _whole_changes(self, base: BaseFile | None, merge: SliceMerge) -> tuple[Rows, Rows, int]:
        """Positions of removed base rows, ascending; numbers of all added rows of the logs; and the base file's number of rows."""
        removed, kept, before = [np.empty(0, np.int64)], [], 0
        if merge.settled and base is not None:
            before = FOOTERS.read(self.storage, base, verify=self.verify).num_rows
            removed, kept = ([rows] for rows in merge.settled_numbers(0, before))
        else:
            for stored in self._stored(base, self._stored_names([], merge)):
                met = merge.met(stored, before)
                removed.append(met.removed + before)
                kept.append(met.rows)
                before += stored.num_rows
        return np.concatenate(removed), np.concatenate([*kept, merge.insert_numbers()]), before

    def _combined_changes(self, piece: LoggedSlice, merge: SliceMerge, columns: Sequence[str]) -> SliceChanges:
        """`changes` for merges that combine rows."""
        positions, added, before = [np.empty(0, np.int64)], [], 0
        for stored in self._stored(piece.slice.base_file, self._stored_names(columns, merge)):
            removed, replaced = merge.pairs(stored, before)
            positions.append(removed + before)
            added.append(replaced)
            before += stored.num_rows
        rows = [table.select(list(columns)) for table in (*added, merge.inserts())]
        return SliceChanges(np.concatenate(positions), concat(rows, self._plain(columns)), before)

    def merge(self, piece: LoggedSlice, columns: Sequence[str], spill: SpillTo | None = None) -> SliceMerge:
        """Merge of the slice's logs, in the given columns and those that the merge needs. Raises as `scan_logs` and `fold_logs`."""
        scanned = scan_logs(self.storage, piece, self.scope, verify=self.verify)
        rules = self.rules.met_by(found.block for found in scanned.blocks)
        positions = self._positions(piece.slice.base_file, scanned, rules)
        keys = positions is None or positions.alone is None
        wanted = self._names(columns, base=False, keys=keys) or [COMMIT_TIME]  # to count rows by
        outcome = fold_logs(scanned.blocks, self._plain(wanted), rules, spill, positions=positions)
        deletions = self.rules.deletions(outcome.data)
        known = None if outcome.positions is None else KnownRows.of(outcome.positions)
        settled = positions is not None and positions.settled and not deletions.any() and outcome.deletes_whatever_is_stored
        return SliceMerge(rules, outcome, deletions, np.ones(len(outcome.rows), np.bool_), scanned, known, settled)

    def _positions(self, base: BaseFile | None, scanned: ScannedLogs, rules: MergeRules) -> SlicePositions | None:
        found = None if self.base_rows is BaseRowsBy.KEYS else slice_positions(scanned.blocks, base, rules, self.schema)
        if found is None or base is None or self.base_rows is BaseRowsBy.CHECKED_POSITIONS or not self.has_meta_columns:
            return found
        return found.without_keys(FOOTERS.read(self.storage, base, verify=self.verify).num_rows)

    def _names(self, columns: Sequence[str], *, base: bool, keys: bool = True) -> list[str]:
        return list(dict.fromkeys([*columns, *self.rules.columns(self.schema, base=base, keys=keys)]))

    def _stored_names(self, columns: Sequence[str], merge: SliceMerge) -> list[str]:
        if merge.settled and columns:
            return list(columns)
        if not merge.rules.whole_rows:  # combining needs the same columns on both sides
            return list(merge.outcome.data.column_names)
        return self._names(columns, base=True, keys=merge.known is None) or self.counted

    def _plain(self, columns: Sequence[str]) -> pa.Schema:
        return plain(projected_schema(self.schema, columns))

    def _stored(self, base: BaseFile | None, columns: Sequence[str]) -> Iterator[pa.Table]:
        if base is not None:
            wanted = self._plain(columns)
            for table in iter_base_file(self.storage, base, self.schema, columns=columns, verify=self.verify):
                yield table.cast(wanted)


@dataclass(frozen=True, slots=True)
class Met:
    """Base rows that the logs change. `removed` has all their positions, ascending.

    For those that a row of the logs changes: their `places`, the numbers of these `rows`, and whether they win (None: all do).
    """

    removed: Rows
    places: Rows
    rows: Rows
    wins: npt.NDArray[np.bool_] | None

    @property
    def gone(self) -> Rows:
        """Positions of base rows that nothing replaces."""
        return np.setdiff1d(self.removed, self.places, assume_unique=True)


@dataclass(frozen=True, slots=True)
class SliceMerge:
    """Outcome of a slice's logs, applied to the rows of its base file part by part.

    `deletions` is True for rows of the logs that are deletions, `fresh` for keys that no base row had so far. `scanned` has the blocks.
    `known`: positions of the base rows that the logs change. `settled`: all of these go, so they need not be read.
    """

    rules: MergeRules
    outcome: LogOutcome
    deletions: npt.NDArray[np.bool_]
    fresh: npt.NDArray[np.bool_]
    scanned: ScannedLogs
    known: KnownRows | None = None
    settled: bool = False

    def settled_pairs(self, before: int, count: int) -> tuple[Rows, pa.Table]:
        """`pairs` for `count` base rows after the first `before`, if all known ones go: reads none of them."""
        removed, rows = self.settled_numbers(before, count)
        return removed, take_rows(self.outcome.data, rows)

    def settled_numbers(self, before: int, count: int) -> tuple[Rows, Rows]:
        """As `settled_pairs`, but with row numbers of the logs."""
        positions, codes = self._known_within(before, count)
        rows = self.outcome.rows[codes]
        return positions, rows[rows >= 0]

    def _known_within(self, before: int, count: int) -> tuple[Rows, Rows]:
        """Known rows among the `count` base rows after the first `before`, and their keys' numbers; marks these keys as not fresh."""
        assert self.known is not None
        positions, codes = self.known.within(before, before + count)
        self.fresh[codes] = False
        return positions - before, codes

    def pairs(self, stored: pa.Table, before: int) -> tuple[Rows, pa.Table]:
        """Positions in `stored` of base rows that change, ascending, and the rows that replace some of them.

        The base file has `before` rows before `stored`. If a key is stored more than once, all its rows change, as in a compaction, unless
        the logs have positions.
        """
        met = self.met(stored, before)
        return met.removed, self.replacing(stored, met)

    def replacing(self, stored: pa.Table, met: Met) -> pa.Table:
        """Rows that replace the base rows in `met`. To combine rows, `stored` must have all columns."""
        after = take_rows(self.outcome.data, met.rows)
        if self.rules.whole_rows:
            return after
        absent = None if self.outcome.absent is None else self.outcome.absent.take(met.rows)
        before = take_rows(stored, met.places).select(after.column_names)
        return combine_rows(before, after, met.wins, self.rules, offered_absent=absent)

    def met(self, stored: pa.Table, before: int = 0) -> Met:
        """Base rows that change, as in `pairs`. `stored` has at least the columns that the merge needs."""
        if self.known is not None:
            matched, codes = self._known_within(before, stored.num_rows)
        else:
            matched, codes = matches(self.rules.record_keys(stored), self.outcome.known_keys)
            self.fresh[codes] = False
        rows = self.outcome.rows[codes]
        deleted = rows == DELETED
        gone, positions, offered, wins = self._decided(stored, matched[~deleted], rows[~deleted])
        removed = np.sort(np.concatenate([self._deleted(stored, matched[deleted], codes[deleted]), gone]))
        return Met(removed, positions, offered, wins)

    def _deleted(self, stored: pa.Table, positions: Rows, codes: Rows) -> Rows:
        """The `positions` whose base rows are removed by the deletions that the keys `codes` ended as."""
        if not self.rules.weighs_deletions or not len(positions):
            return positions
        base = self.rules.ordering.values(take_rows(stored.select(self.rules.ordering.roots), positions))
        return positions[deletions_win(self.rules, base, self.outcome.deletions(codes))]

    def inserts(self) -> pa.Table:
        """Rows of keys that no base row has."""
        return take_rows(self.outcome.data, self.insert_numbers())

    def insert_numbers(self) -> Rows:
        """Their row numbers in the logs, once `pairs` has seen every base row.

        Raises `CorruptLogError` if the logs replace a row that the base file does not have, or one row for two keys.
        """
        if self.known is not None:
            self._check(self.known)
        rows = self.outcome.rows[self.fresh & (self.outcome.rows >= 0)]
        return rows[~self.deletions[rows]]

    def _check(self, known: KnownRows) -> None:
        wrong = self.fresh[known.codes]
        wrong[1:] |= known.positions[1:] == known.positions[:-1]
        if wrong.any():
            path = self.scanned.blocks[0].path
            raise CorruptLogError(
                f"the log file {path!r}, or one of its slice, says that it replaces row {known.positions[wrong][0]} of its base file, which"
                " has fewer rows, or holds one key there, not two; restore the files from a backup, or restore the table to a savepoint",
                path=path,
            )

    def _decided(self, stored: pa.Table, positions: Rows, rows: Rows) -> tuple[Rows, Rows, Rows, npt.NDArray[np.bool_] | None]:
        """Parts of `Met` for base rows at `positions`, whose keys ended as the rows `rows` of the logs; the first part, which rows change,
        is unordered.
        """
        merger, gone, roots = self.rules.merger, self.deletions[rows], self.rules.ordering.roots
        sides = ((stored, positions), (self.outcome.data, rows)) if merger.compares_ordering and roots else ()
        ordering = [self.rules.ordering.values(take_rows(side.select(roots), at)) for side, at in sides] or [[], []]
        wins, deletes = merger.wins(*ordering), merger.deletes(*ordering)
        everything = np.ones(len(positions), np.bool_)
        kept = ~gone & (everything if wins is None or merger.losers_matter else wins)
        changed = np.concatenate([positions[kept], positions[gone & (everything if deletes is None else deletes)]])
        return changed, positions[kept], rows[kept], None if wins is None else wins[kept]
