"""Folds the blocks of a slice's logs into one outcome per key: a row or a deletion (hudi-format 7).

Between records of logs, Hudi 0.15 compares ordering values whatever the payload class (`HoodieMergedLogRecordScanner`, `preCombine`): the
higher one stays, of equals the later. A deletion with an ordering value yields to an earlier record with a higher one; without one it
always applies. Anything that comes after a deletion replaces it. In tables that Hudi 1.x merges by event time, a deletion with an ordering
value is compared like a row, with what comes after it and with the base row (`BufferedRecordMergerFactory.EventTimeRecordMerger`).

A row with only some of the columns takes the others from the row that it is combined with, whichever of the two is newer
(`SparkRecordMergingUtils.mergePartialRecords`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.errors import CorruptLogError, FormatError, UnsupportedTableError
from lakehouse_engine.files.absent_columns import AbsentColumns
from lakehouse_engine.files.base_file import project
from lakehouse_engine.files.base_positions import SlicePositions
from lakehouse_engine.files.log_scanner import ScannedBlock
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.projection import match_name
from lakehouse_engine.files.row_pool import RowPool, SpillTo, take_rows
from lakehouse_engine.format.log.blocks import BlockType, LogBlock
from lakehouse_engine.format.log.data_block import decode_data_block
from lakehouse_engine.format.log.delete_block import DeleteRecords, decode_delete_block
from lakehouse_engine.model.keys import META_COLUMNS
from lakehouse_engine.record.merging.mergers import choose
from lakehouse_engine.record.merging.ordering import ranks

NO_ROW = -1
DELETED = -2

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LogOutcome:
    """Final state of each key: `rows[i]` is the row of `data` that key i ended as, or DELETED. `keys` are distinct; None if rows were told
    apart by position. `records` counts rows of the blocks.

    `deleted_at` has the stored ordering value of the deletion that key i ended as, a struct of values if there are several ordering fields;
    null for rows, and for deletions that always apply. `positions` has the base file's row of key i (-1: none), if the blocks have
    positions. `absent` says which columns the rows of `data` lack, if any.
    """

    keys: pa.Array | None
    rows: Rows
    data: pa.Table
    records: int = 0
    deleted_at: pa.Array | None = None
    positions: Rows | None = None
    absent: AbsentColumns | None = None

    @property
    def deletes_whatever_is_stored(self) -> bool:
        """True if no key ended as a deletion with an ordering value, which the base row's could outrank."""
        return self.deleted_at is None or self.deleted_at.null_count == len(self.deleted_at)

    @property
    def known_keys(self) -> pa.Array:
        """`keys`, for callers that had them read."""
        assert self.keys is not None
        return self.keys

    def deletions(self, codes: Rows) -> pa.Array:
        """`deleted_at` of the keys numbered `codes`."""
        return pa.nulls(len(codes), pa.int64()) if self.deleted_at is None else self.deleted_at.take(pa.array(codes))


@dataclass(frozen=True, slots=True)
class _Events:
    """Records and deletions in log order. `rows` numbers rows of `data`, DELETED for a deletion; `codes` number the keys."""

    codes: Rows
    rows: Rows
    ranks: Rows
    always: npt.NDArray[np.bool_]


def fold_logs(
    blocks: Sequence[ScannedBlock],
    wanted: pa.Schema,
    rules: MergeRules,
    spill: SpillTo | None = None,
    *,
    keys: pa.Array | None = None,
    positions: SlicePositions | None = None,
) -> LogOutcome:
    """Fold the blocks into one outcome per key.

    `wanted` has the columns to keep, including those that `rules` need. With `spill`, rows above its limit go to files; keys and ordering
    values stay in memory. With `keys`, rows of other keys may be left out. `positions` are those of all records of the blocks; if they tell
    records apart, no key is read.

    Raises `CorruptLogError` if a block does not decode or has a different number of positions than records, `UnsupportedTableError` if its
    rows lack a column needed for merging, and as `decode_data_block` for a block that is refused.
    """
    rules = rules.met_by(scanned.block for scanned in blocks)
    pool, decoded, compared = RowPool(wanted, spill), [], {name.lower() for name in rules.columns(wanted, base=False)}
    lacking = []
    for scanned in blocks:
        part, absent = _decode(scanned, wanted, rules)
        if isinstance(part, pa.Table):
            if keys is not None:
                part = part.filter(pc.is_in(rules.record_keys(part), value_set=keys))
            pool.add(part)
            lacking.append((absent, part.num_rows))
            part = part.select([name for name in part.column_names if name.lower() in compared])
        decoded.append(part)
    if positions is not None:
        _check_counts(blocks, decoded, positions)
    codes, found, at = _told_apart(decoded, rules, positions)
    ordering = _ordering(decoded, wanted, rules)
    ranked = ranks(rules.ordering.comparable(ordering), len(codes))
    events = _Events(codes, _rows(decoded), ranked, _always(decoded, wanted, rules))
    records = sum(part.num_rows for part in decoded if isinstance(part, pa.Table))
    mixing = _Mixing(pool, rules, AbsentColumns.of(lacking))
    rows, last = _fold(events, mixing)
    deleted_at = _deleted_at(ordering, events, rows, last) if ordering else None
    return LogOutcome(found, rows, pool.table(), records, deleted_at, at, mixing.absent)


def deletions_win(rules: MergeRules, base: Sequence[pa.Array], deleted_at: pa.Array) -> npt.NDArray[np.bool_]:
    """True for each pair whose deletion removes its base row; `base` holds the base rows' ordering values.

    For `rules` that weigh deletions; `deleted_at` as in `LogOutcome`.
    """
    won = rules.merger.deletes(base, values_of_fields(deleted_at))
    return np.asarray(deleted_at.is_null()) | (True if won is None else won)


def values_of_fields(deleted_at: pa.Array) -> list[pa.Array]:
    """Values of each ordering field; `deleted_at` as in `LogOutcome`."""
    return deleted_at.flatten() if pat.is_struct(deleted_at.type) else [deleted_at]


def _decode(scanned: ScannedBlock, wanted: pa.Schema, rules: MergeRules) -> tuple[pa.Table | DeleteRecords, frozenset[str]]:
    """Rows or deletions of the block, and the columns that its rows lack."""
    block = scanned.block
    if block.type is BlockType.DELETE:
        with _decoding(block, scanned.path):
            return decode_delete_block(block), frozenset()
    rows, names = block_rows(block, scanned.path, wanted)
    return rows, _absent(scanned, wanted, names, rules) if block.is_partial else frozenset()


def block_rows(block: LogBlock, path: str, wanted: pa.Schema) -> tuple[pa.Table, list[str | None]]:
    """Rows of a data block in the columns `wanted`, and the stored name of each; a column that the block lacks is null, its name None.

    `path` is the log file's. Raises `CorruptLogError` if the block does not decode, and as `decode_data_block` if it is refused.
    """
    with _decoding(block, path):
        raw = decode_data_block(block, {field.name.lower() for field in wanted}, partial=True)
    stored = raw.column_names  # Arrow builds this list at each access
    indices = [match_name(stored, field.name, path) for field in wanted]
    names = [None if index is None else stored[index] for index in indices]
    return project(raw, wanted, names, path), names


@contextmanager
def _decoding(block: LogBlock, path: str) -> Iterator[None]:
    try:
        yield
    except (FormatError, pa.ArrowException) as error:
        raise CorruptLogError(
            f"a block at byte {block.offset} of the log file {path!r}, written by {block.instant_time}, does not decode: {error}",
            path=path,
            instant=block.instant_time,
            offset=block.offset,
        ) from error


def _absent(scanned: ScannedBlock, wanted: pa.Schema, names: Sequence[str | None], rules: MergeRules) -> frozenset[str]:
    absent = frozenset(field.name for field, name in zip(wanted, names, strict=True) if name is None)
    for name in rules.decisive(wanted):
        if name in absent:
            raise UnsupportedTableError(
                f"a block of the log file {scanned.path!r}, written by {scanned.block.instant_time}, has some columns of its rows, and not"
                f" {name!r}, by which rows are merged; compact the table with Hudi, or restore it to before that commit",
                path=scanned.path,
                instant=scanned.block.instant_time,
                column=name,
            )
    return absent.difference(META_COLUMNS)


def _keys(part: pa.Table | DeleteRecords, rules: MergeRules) -> pa.Array:
    return part.keys if isinstance(part, DeleteRecords) else rules.record_keys(part)


def _check_counts(blocks: Sequence[ScannedBlock], decoded: Sequence[pa.Table | DeleteRecords], positions: SlicePositions) -> None:
    for scanned, part, at in zip(blocks, decoded, positions.blocks, strict=True):
        count = len(part) if isinstance(part, DeleteRecords) else part.num_rows
        if count != len(at):
            block = scanned.block
            raise CorruptLogError(
                f"a block at byte {block.offset} of the log file {scanned.path!r}, written by {block.instant_time}, has {count} records,"
                f" and positions of {len(at)}; restore the file from a backup, or restore the table to a savepoint",
                path=scanned.path,
                instant=block.instant_time,
                offset=block.offset,
            )


def _told_apart(
    decoded: Sequence[pa.Table | DeleteRecords], rules: MergeRules, positions: SlicePositions | None
) -> tuple[Rows, pa.Array | None, Rows | None]:
    """Key number of every row and deletion, in order of first appearance; the keys, and their positions, if known."""
    if positions is not None and positions.alone is not None:
        return positions.alone.codes, None, positions.alone.positions
    encoded = _flat([_keys(part, rules) for part in decoded]).dictionary_encode(null_encoding="encode")
    codes = np.asarray(encoded.indices).astype(np.int64)
    return codes, encoded.dictionary, None if positions is None else positions.of_keys(codes, len(encoded.dictionary))


def _rows(decoded: Sequence[pa.Table | DeleteRecords]) -> Rows:
    parts, done = [np.empty(0, np.int64)], 0
    for part in decoded:
        if isinstance(part, DeleteRecords):
            parts.append(np.full(len(part), DELETED, np.int64))
        else:
            parts.append(np.arange(done, done + part.num_rows))
            done += part.num_rows
    return np.concatenate(parts)


def _ordering(decoded: Sequence[pa.Table | DeleteRecords], wanted: pa.Schema, rules: MergeRules) -> list[pa.Array]:
    """Stored ordering values of records and deletions together, one array per field."""
    kinds = rules.ordering.types(wanted)
    stored = [part.orderings(kinds) if isinstance(part, DeleteRecords) else rules.ordering.stored(part) for part in decoded]
    return [_flat([values[number] for values in stored], kind) for number, kind in enumerate(kinds)]


def _always(decoded: Sequence[pa.Table | DeleteRecords], wanted: pa.Schema, rules: MergeRules) -> npt.NDArray[np.bool_]:
    """True for deletions that apply whatever they meet, including those without a value for each ordering field."""
    kinds = rules.ordering.types(wanted)
    parts = [np.empty(0, np.bool_)]
    for part in decoded:
        if not isinstance(part, DeleteRecords):
            parts.append(np.zeros(part.num_rows, np.bool_))
        elif len(kinds) != 1:
            parts.append(~part.has_each(kinds))
        elif rules.weighs_deletions:
            # A value of another type than the field's cannot be compared.
            parts.append(part.always() | np.asarray(part.ordering(kinds[0]).is_null()))
        else:
            parts.append(part.always())
    return np.concatenate(parts)


def _flat(parts: Sequence[pa.Array | pa.ChunkedArray], kind: pa.DataType | None = None) -> pa.Array:
    chunks = [chunk for part in parts for chunk in (part.chunks if isinstance(part, pa.ChunkedArray) else [part])]
    return pa.concat_arrays(chunks) if chunks else pa.array([], kind or pa.string())


def _fold(events: _Events, mixing: _Mixing) -> tuple[Rows, Rows]:
    """Final state of every key, and the event that set it. Processes the first events of all keys together, then the second, and so on."""
    rules, merger, turns = mixing.rules, mixing.rules.merger, _turns(events.codes)
    last = turns[0].copy()  # the first event of a key has nothing to compare with
    state, held_ranks = events.rows[last], events.ranks[last]
    for at in turns[1:]:
        codes, rows, offered = events.codes[at], events.rows[at], events.ranks[at]
        held = state[codes] >= 0
        deletes = rows == DELETED
        if rules.weighs_deletions:
            gone, for_good = state[codes] == DELETED, events.always[last[codes]]
            held |= gone & ~for_good
        older = held & (held_ranks[codes] > offered) & ~events.always[at]
        if rules.weighs_deletions:
            older |= gone & for_good & deletes
        if merger.earliest_of_equals:
            older |= held & ~deletes & (held_ranks[codes] == offered)
        pairs = (state[codes] >= 0) & ~deletes
        if rules.mixes_logs and bool(pairs.any()):
            rows[pairs] = mixing.combined(state[codes[pairs]], rows[pairs], ~older[pairs])
            offered = np.where(pairs & older, held_ranks[codes], offered)
            older &= ~pairs
        changed = codes[~older]
        state[changed], held_ranks[changed], last[changed] = rows[~older], offered[~older], at[~older]
    return state, last


def _deleted_at(ordering: Sequence[pa.Array], events: _Events, rows: Rows, last: Rows) -> pa.Array:
    """`deleted_at` of `LogOutcome`."""
    names = [str(number) for number in range(len(ordering))]
    values = ordering[0] if len(ordering) == 1 else pa.StructArray.from_arrays(ordering, names)
    if not len(values):
        return values
    nowhere = (rows != DELETED) | events.always[last]
    return pa.nulls(len(rows), values.type) if nowhere.all() else values.take(pa.array(last, mask=nowhere))


def _turns(codes: Rows) -> list[Rows]:
    """Event numbers, split into turns: no turn has a key twice, and each key's events stay in order.

    `codes` number the keys by first appearance, so that in the first turn key i is at place i.
    """
    if not len(codes):
        return [codes]
    first = np.ones(len(codes), np.bool_)
    first[1:] = codes[1:] > np.maximum.accumulate(codes)[:-1]
    # Sorts only repeated keys, usually few.
    again = np.flatnonzero(~first)
    order = np.argsort(codes[again], kind="stable")
    ordered = codes[again][order]
    begins = np.ones(len(again), np.bool_)
    begins[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(begins)
    turn = np.empty(len(again), np.int64)
    turn[order] = np.arange(len(again)) - np.repeat(starts, np.diff(np.append(starts, len(again))))
    by_turn = again[np.argsort(turn, kind="stable")]
    return [np.flatnonzero(first), *(np.split(by_turn, np.cumsum(np.bincount(turn))[:-1]) if len(again) else ())]


@dataclass(slots=True)
class _Mixing:
    """Combines rows of the pool; the results are appended to it. `absent` says which columns its rows lack."""

    pool: RowPool
    rules: MergeRules
    absent: AbsentColumns | None

    def combined(self, older: Rows, newer: Rows, wins: npt.NDArray[np.bool_]) -> Rows:
        """Row numbers of the combined pairs; `wins` is True where the later row counts as the newer one."""
        data = self.pool.table()
        stored, offered = (None if self.absent is None else self.absent.take(rows) for rows in (older, newer))
        made = combine_rows(take_rows(data, older), take_rows(data, newer), wins, self.rules, stored, offered)
        self.pool.add(made)
        if self.absent is not None and stored is not None and offered is not None:
            self.absent = self.absent.followed_by(stored.in_both(offered))
        return np.arange(data.num_rows, data.num_rows + len(older))


def combine_rows(
    stored: pa.Table,
    offered: pa.Table,
    wins: npt.NDArray[np.bool_] | None,
    rules: MergeRules,
    stored_absent: AbsentColumns | None = None,
    offered_absent: AbsentColumns | None = None,
) -> pa.Table:
    """Combine pairs of rows; each side takes the columns it lacks from the other.

    Meta columns are those of the later row, whichever has the higher ordering value, or of the newer row if the merger says so.
    """
    base = stored if stored_absent is None else stored_absent.filled(stored, offered)
    incoming = offered if offered_absent is None else offered_absent.filled(offered, stored)
    user = [name for name in stored.column_names if name not in META_COLUMNS]
    meta = [name for name in stored.column_names if name in META_COLUMNS]
    merged = rules.merger.combine(base.select(user), incoming.select(user), wins)
    stamped = choose(stored.select(meta), offered.select(meta), wins if rules.merger.meta_of_newer else None)
    columns = [(merged if name in merged.column_names else stamped).column(name) for name in stored.column_names]
    return pa.Table.from_arrays(columns, schema=stored.schema)
