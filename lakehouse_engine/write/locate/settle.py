"""Where keys of a batch are stored in slices with logs, and what happens to the stored rows.

An index finds keys in base files. The logs on top may have deleted a key (it is dead, although its base row exists), may be the only place
of a key, or may have a newer ordering value. So it is known before logging whether a row wins, and a log holds only rows that count for
every reader, whatever its merge order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.files.base_file import projected_schema
from lakehouse_engine.files.log_records import DELETED, NO_ROW, deletions_win, fold_logs, values_of_fields
from lakehouse_engine.files.log_scanner import scan_logs
from lakehouse_engine.files.slice_reader import SliceReader, plain
from lakehouse_engine.format.log.positions import NOT_IN_BASE
from lakehouse_engine.index.base import TaggedFile
from lakehouse_engine.index.record_level import not_in_slice
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.record.merging.mergers import RecordMerger
from lakehouse_engine.record.merging.ordering import incoming_wins
from lakehouse_engine.record.merging.ordering_fields import OrderingFields
from lakehouse_engine.write.locate.stored_values import stored_values
from lakehouse_engine.write.source import Rows
from lakehouse_engine.write.tasks.base_files import Mask

_Values = Callable[[Mask], list[pa.Array]]


@dataclass(frozen=True, slots=True)
class SliceHits:
    """Rows of a batch whose keys a slice has, each with one stored row.

    `rows` are batch row numbers, `positions` base file rows (`NOT_IN_BASE` for keys only in logs; else ascending). `alive`: the key is
    still stored. `wins`: the incoming row replaces the stored one; for a dead key, logging the row revives exactly that row. `deletes`: an
    incoming deletion removes the stored row. `doubtful`: readers disagree on the winner (see `below_zero`).
    """

    piece: FileSlice
    positions: Rows
    rows: Rows
    alive: Mask
    wins: Mask
    deletes: Mask
    doubtful: Mask

    @classmethod
    def of_tagged(cls, piece: FileSlice, tagged: TaggedFile) -> SliceHits:
        """Hits in a base file without relevant logs."""
        everything = np.ones(len(tagged.rows), dtype=bool)
        return cls(piece, tagged.positions, tagged.rows, everything, everything, everything, ~everything)

    def only(self, chosen: Mask) -> SliceHits:
        masks = (mask[chosen] for mask in (self.alive, self.wins, self.deletes, self.doubtful))
        return SliceHits(self.piece, self.positions[chosen], self.rows[chosen], *masks)


class StoredSide(Protocol):
    """Known facts about the stored rows of a slice whose files need not be read for it."""

    def logs(self, keys: pa.Array) -> KeyLogs:
        """What its logs say about each key."""
        ...

    def base(self, ordering: OrderingFields, positions: Rows) -> list[pa.Array]:
        """Ordering values of rows of its base file."""
        ...


@dataclass(frozen=True, slots=True)
class SettleTask:
    """Compare keys of a batch with one slice.

    `keys[i]` is the key of batch row `rows[i]` (None: row i), and `ordering` has its ordering values (empty if they do not count); `merger`
    decides between them and stored rows. Base rows at `positions` (ascending) have the keys `found`. With `fold`, the slice's logs are
    read, unless `side` has their content. `indexed_in` is the name of a table whose index says that the slice has every key. `planned` is
    the part of the slice that a pending compaction will merge, where ordering values count against it.
    """

    reader: SliceReader
    piece: LoggedSlice
    keys: pa.Array
    rows: Rows | None
    ordering: tuple[pa.Array, ...]
    positions: Rows
    found: Rows
    merger: RecordMerger
    fold: bool
    side: StoredSide | None = None
    indexed_in: str | None = None
    planned: LoggedSlice | None = None


def settle(task: SettleTask) -> SliceHits:
    """Raises as `scan_logs` and `fold_logs`, and `RecordIndexError` for a key that an index wrongly says to be in the slice."""
    logs = KeyLogs.read(task)
    in_base = np.zeros(len(task.keys), dtype=bool)
    in_base[task.found] = True
    if task.indexed_in is not None:
        missing = np.flatnonzero(~in_base & (logs.rows == NO_ROW))
        if len(missing):
            raise not_in_slice(task.indexed_in, task.keys[int(missing[0])].as_py(), task.piece.slice)
    added = np.flatnonzero(logs.alive & ~in_base).astype(np.int64)
    keys = np.concatenate([task.found, added])
    positions = np.concatenate([task.positions, np.full(len(added), NOT_IN_BASE, np.int64)])
    rows = keys if task.rows is None else task.rows[keys]
    return SliceHits(task.piece.slice, positions, rows, *_Settling(task, logs, keys, positions).outcome())


def below_zero(ordering: Sequence[pa.Array]) -> Mask:
    """Rows with an ordering value that hudi-rs treats as less than none: it counts null as 0, where Hudi lets any value win.

    Days and times count from 1970.
    """
    below = np.zeros(len(ordering[0]), dtype=bool) if ordering else np.zeros(0, dtype=bool)
    for column in ordering:
        kind = column.type
        if pat.is_date(kind) or pat.is_timestamp(kind):
            column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        if pat.is_integer(column.type):
            below |= np.asarray(pc.fill_null(pc.less(column, 0), False))
    return below


@dataclass(frozen=True, slots=True)
class KeyLogs:
    """What the logs say about each key of a task: row `rows[i]` of `data`, DELETED, or NO_ROW if they lack it.

    `deleted_at` has for each key what `LogOutcome` has for those that it knows.
    """

    rows: Rows
    data: pa.Table
    deletions: Mask
    deleted_at: pa.Array

    @classmethod
    def read(cls, task: SettleTask) -> KeyLogs:
        if not task.fold:
            none = pa.nulls(len(task.keys))
            return cls(np.full(len(task.keys), NO_ROW, np.int64), pa.table({}), np.empty(0, dtype=bool), none)
        if task.side is not None:
            return task.side.logs(task.keys)
        return cls.folded(task.reader, task.piece, task.keys)

    @classmethod
    def folded(cls, reader: SliceReader, piece: LoggedSlice, keys: pa.Array) -> KeyLogs:
        """What the logs of a slice say about `keys`."""
        wanted = plain(projected_schema(reader.schema, reader.rules.columns(reader.schema, base=False)))
        outcome = fold_logs(scan_logs(reader.storage, piece, reader.scope).blocks, wanted, reader.rules, keys=keys)
        rows = np.full(len(keys), NO_ROW, np.int64)
        at = pc.index_in(keys, value_set=outcome.known_keys)
        rows[np.asarray(at.is_valid())] = outcome.rows[np.asarray(at.drop_null()).astype(np.int64)]
        deleted_at = pa.nulls(len(keys)) if outcome.deleted_at is None else outcome.deleted_at.take(at)
        return cls(rows, outcome.data, reader.rules.deletions(outcome.data), deleted_at)

    @property
    def alive(self) -> Mask:
        """Keys of which they have a row."""
        has = self.rows >= 0
        has[has] = ~self.deletions[self.rows[has]]
        return has

    def values(self, rows: Rows, ordering: OrderingFields) -> list[pa.Array]:
        return ordering.values(self.data.select(ordering.roots).take(pa.array(rows)))


@dataclass(frozen=True, slots=True)
class _Settling:
    """Pairs of an incoming row (with key `keys[i]`) and the stored one: base row `positions[i]`, a row of the logs, or both."""

    task: SettleTask
    logs: KeyLogs
    keys: Rows
    positions: Rows

    def outcome(self) -> tuple[Mask, Mask, Mask, Mask]:
        """`alive`, `wins`, `deletes` and `doubtful` of `SliceHits`."""
        rules = self.task.reader.rules
        logged = self.logs.rows[self.keys]
        in_base, in_logs = self.positions >= 0, logged >= 0
        marked = np.zeros(len(self.keys), dtype=bool)
        marked[in_logs] = self.logs.deletions[logged[in_logs]]
        alive = (in_base & (logged == NO_ROW)) | (in_logs & ~marked) | self._kept(logged, marked) | self._outlived(logged)
        # A row logged for a dead key meets the base row again: a partial update would be mixed with it.
        wins = alive | rules.merger.whole_rows
        if rules.ordering and self.task.ordering:
            return self._compared(logged, marked, alive, wins)
        return alive, wins, np.ones(len(self.keys), dtype=bool), np.zeros(len(self.keys), dtype=bool)

    def _kept(self, logged: Rows, marked: Mask) -> Mask:
        """Base rows that a marked log row does not delete, because its ordering value is lower."""
        both = marked & (self.positions >= 0)
        kept = np.zeros(len(self.keys), dtype=bool)
        if both.any():
            gone = self.task.reader.rules.merger.deletes(self._base(both), self._log(logged, both))
            kept[both] = False if gone is None else ~gone
        return kept

    def _outlived(self, logged: Rows) -> Mask:
        """Base rows that a log deletion does not remove, because its ordering value is lower."""
        both, rules = (logged == DELETED) & (self.positions >= 0), self.task.reader.rules
        kept = np.zeros(len(self.keys), dtype=bool)
        if rules.weighs_deletions and both.any():
            kept[both] = ~deletions_win(rules, self._base(both), self._deleted_at(both))
        return kept

    def _compared(self, logged: Rows, marked: Mask, alive: Mask, wins: Mask) -> tuple[Mask, Mask, Mask, Mask]:
        merger, deletes = self.task.reader.rules.merger, np.ones(len(self.keys), dtype=bool)
        doubtful = np.zeros(len(self.keys), dtype=bool)
        in_base, in_logs = self.positions >= 0, logged >= 0
        newer = in_logs & ~marked
        both = newer & in_base
        if both.any():
            log_wins = merger.wins(self._base(both), self._log(logged, both))
            newer[both] = True if log_wins is None else log_wins
        if merger.compares_ordering:
            self._decide(wins, deletes, in_base & ~newer, self._base)
            self._decide(wins, deletes, newer, lambda chosen: self._log(logged, chosen))
            below = below_zero(self._incoming(np.ones(len(self.keys), dtype=bool)))
            self._doubt(doubtful, below & in_base & ~newer, self._base)
            self._doubt(doubtful, below & newer, lambda chosen: self._log(logged, chosen))
        # Among logs ordering counts whatever the merger says, against an existing row or one marked as deletion.
        self._yield_to_logs(wins, deletes, in_logs & (newer | ~alive), logged)
        self._yield_to_deletions(wins, (logged == DELETED) & ~alive)
        if self.task.planned is not None:
            self._yield_to_planned(wins, self.task.planned, wins & ~alive)
        return alive, wins, deletes, doubtful

    def _decide(self, wins: Mask, deletes: Mask, chosen: Mask, stored: _Values) -> None:
        if chosen.any():
            merger, old, new = self.task.merger, stored(chosen), self._incoming(chosen)
            won, gone = merger.wins(old, new), merger.deletes(old, new)
            wins[chosen] &= True if won is None else won
            deletes[chosen] &= True if gone is None else gone

    def _doubt(self, doubtful: Mask, chosen: Mask, stored: _Values) -> None:
        if chosen.any():
            for column in stored(chosen):
                doubtful[chosen] |= np.asarray(column.is_null())

    def _yield_to_logs(self, wins: Mask, deletes: Mask, chosen: Mask, logged: Rows) -> None:
        if chosen.any():
            equals = not self.task.merger.earliest_of_equals
            won = incoming_wins(self._log(logged, chosen), self._incoming(chosen), equals=equals)
            wins[chosen] &= won
            if self.task.reader.rules.merger.whole_rows:
                deletes[chosen] &= won

    def _yield_to_deletions(self, wins: Mask, chosen: Mask) -> None:
        if self.task.reader.rules.weighs_deletions and chosen.any():
            deleted_at = self._deleted_at(chosen)
            wins[chosen] &= incoming_wins(values_of_fields(deleted_at), self._incoming(chosen)) | np.asarray(deleted_at.is_null())

    def _yield_to_planned(self, wins: Mask, planned: LoggedSlice, chosen: Mask) -> None:
        """A deletion above a pending compaction keeps no row from its base file: one that comes back, above both, meets it there."""
        if chosen.any():
            reader = self.task.reader
            logs = KeyLogs.folded(reader, planned, self.task.keys.take(pa.array(self.keys[chosen])))
            there = np.zeros(len(self.keys), dtype=bool)
            there[np.flatnonzero(chosen)[logs.alive]] = True
            won = self.task.merger.wins(logs.values(logs.rows[logs.alive], reader.rules.ordering), self._incoming(there))
            wins[there] &= True if won is None else won

    def _deleted_at(self, chosen: Mask) -> pa.Array:
        return self.logs.deleted_at.take(pa.array(self.keys[chosen]))

    def _incoming(self, chosen: Mask) -> list[pa.Array]:
        return [column.take(pa.array(self.keys[chosen])) for column in self.task.ordering]

    def _log(self, logged: Rows, chosen: Mask) -> list[pa.Array]:
        return self.logs.values(logged[chosen], self.task.reader.rules.ordering)

    def _base(self, chosen: Mask) -> list[pa.Array]:
        reader, base = self.task.reader, self.task.piece.slice.base_file
        ordering = reader.rules.ordering
        if base is None or not (ordering and reader.rules.merger.compares_ordering):
            return []
        if self.task.side is not None:
            return self.task.side.base(ordering, self.positions[chosen])
        return ordering.values(stored_values(reader.storage, base, reader.schema, ordering.roots, self.positions[chosen]))
