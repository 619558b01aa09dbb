"""Changes of the record index: keys that a commit added, moved or removed, by the files that it wrote.

Rows that were updated where they are keep their entry. Compactions move no row to another file group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.files.mapped import mapped
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.format.file_names import has_bucket, is_base_file_name, parse_base_file, parse_log_file
from lakehouse_engine.format.hfile.cells import Cells
from lakehouse_engine.format.log.blocks import DATA_BLOCKS, BlockType
from lakehouse_engine.format.log.data_block import decode_data_block
from lakehouse_engine.format.log.delete_block import decode_delete_block
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.metadata_table.locations import LOCATIONS, encode_locations
from lakehouse_engine.metadata_table.delta import Change
from lakehouse_engine.metadata_table.upkeep.rows import slice_after, slice_rows
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.files import BaseFile, FileSlice, LogFile
from lakehouse_engine.model.keys import RECORD_KEY, FileGroupId
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from lakehouse_engine.view.table_state import TableState

_KEEP_GROUPS = frozenset({WriteOperationType.COMPACT, WriteOperationType.LOG_COMPACT})
_KEYED = pa.schema([pa.field("key", pa.string()), pa.field("partition_path", pa.string()), pa.field("file_id", pa.string())])


@dataclass(slots=True)
class KeyMoves:
    """Keys that a commit moved, in tables of `key`, `partition_path` and `file_id`, each a string.

    `put`: where keys are now; a key that was updated in a log may be there, too. `gone`: where keys were that were deleted or moved.
    `again`: keys of which a base file has one more than the slice before it.
    """

    put: list[pa.Table] = field(default_factory=lambda: [_KEYED.empty_table()])
    gone: list[pa.Table] = field(default_factory=lambda: [_KEYED.empty_table()])
    again: list[pa.Table] = field(default_factory=lambda: [_KEYED.empty_table()])

    def by_partition(self) -> dict[str, KeyMoves]:
        """Those of each partition that has some, sorted by its path."""
        whole = [pa.concat_tables(part).combine_chunks() for part in (self.put, self.gone, self.again)]
        paths = sorted({path for rows in whole for path in pc.unique(rows.column("partition_path")).to_pylist()})
        return {path: KeyMoves(*([rows.filter(pc.equal(rows.column("partition_path"), path))] for rows in whole)) for path in paths}


def location_change(moves: KeyMoves, millis: int, schema_text: str, within: str | None) -> Change:
    """Change of the record index for a commit. `millis`: its instant, in milliseconds since the epoch. `within`: the partition, if the
    index is partitioned.

    A key that is put and gone was moved; one that is put more than once has its last place.
    """
    put, gone = _last_of_each(pa.concat_tables(moves.put)), pa.concat_tables(moves.gone)
    keys = put.column("key").combine_chunks()
    gone_keys = pc.unique(gone.column("key").combine_chunks())
    gone_keys = gone_keys.filter(pc.invert(pc.is_in(gone_keys, keys)))
    places = [put.column(name).combine_chunks() for name in ("partition_path", "file_id")]
    located = pa.Table.from_arrays([*places, pa.array(np.full(len(keys), millis, np.int64))], schema=LOCATIONS)
    return Change(Cells(keys.cast(pa.binary()), encode_locations(schema_text, located)), gone_keys.cast(pa.binary()), within)


def _last_of_each(rows: pa.Table) -> pa.Table:
    codes = np.asarray(rows.column("key").combine_chunks().dictionary_encode().indices)
    last = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
    last[codes] = np.arange(len(codes))
    return rows if len(last) == len(codes) else rows.take(pa.array(np.sort(last)))


def key_moves(data: TableState, instant_time: str, metadata: HoodieCommitMetadata) -> KeyMoves:
    """Keys that a commit added, moved or removed, read from its files, which exist; `data` is the table before it.

    Raises as `SliceReader.read`, and `FormatError` for a log that does not decode.
    """
    moves = KeyMoves()
    if metadata.operation_type in _KEEP_GROUPS:
        return moves
    rules = MergeRules.of(data.config, table_schema(data))
    for path, stats in metadata.partition_to_write_stats.items():
        before = _slices(data, path, {stat.file_id for stat in stats})
        in_buckets: dict[str, list[HoodieWriteStat]] = {}
        for stat in stats:
            name = (stat.path or "").rpartition("/")[2]
            if is_base_file_name(name):
                base = parse_base_file(path, name, stat.file_size_in_bytes)
                _of_base_file(data, base, stat, before.get(base.file_id), moves)
            elif name and has_bucket(stat.file_id or ""):
                in_buckets.setdefault(stat.file_id or "", []).append(stat)
            elif name and (stat.num_inserts or stat.num_deletes):
                _of_log(data, parse_log_file(path, name), instant_time, stat, rules, moves)
        for file_id, written in in_buckets.items():
            _of_bucket(data, before.get(file_id), slice_after(path, file_id, written, before.get(file_id)), instant_time, moves)
    for path, ids in (metadata.partition_to_replace_file_ids or {}).items():
        moves.gone.append(_stored(data, list(_slices(data, path, set(ids)).values())))
    return moves


def _slices(data: TableState, path: str, ids: set[str | None]) -> dict[str, FileSlice]:
    """Newest slices of some file groups before the commit, by file id."""
    return {piece.file_id: piece for piece in data.view.latest_slices(path) if piece.file_id in ids}


def _of_base_file(data: TableState, base: BaseFile, stat: HoodieWriteStat, before: FileSlice | None, moves: KeyMoves) -> None:
    if before is not None and not (stat.num_inserts or stat.num_deletes):
        return
    now = _stored(data, [FileSlice(FileGroupId(base.partition_path, base.file_id), base.instant_time, base)])
    if before is None:
        moves.put.append(now)
        return
    old = _stored(data, [before])
    put, gone = _compare(old, now, moves)
    if now.num_rows > old.num_rows - gone.num_rows + put.num_rows:
        moves.again.append(_more_often(old, now))


def _more_often(old: pa.Table, now: pa.Table) -> pa.Table:
    """Rows of `now` whose key is among its keys more often than among those of `old`, and among both."""
    counts, before = (pc.value_counts(rows.column("key")) for rows in (now, old))
    known = before.field("counts").take(pc.index_in(counts.field("values"), before.field("values")))
    more = counts.field("values").filter(pc.fill_null(pc.greater(counts.field("counts"), known), False))
    return now.filter(pc.is_in(now.column("key"), more))


def _of_bucket(data: TableState, before: FileSlice | None, after: FileSlice, instant_time: str, moves: KeyMoves) -> None:
    """A write to a bucket's log looks no key up: neither its stat nor its blocks say which rows are new, and which deletions hold."""
    _compare(_stored(data, [] if before is None else [before]), _stored(data, [after], also=instant_time), moves)


def _compare(old: pa.Table, now: pa.Table, moves: KeyMoves) -> tuple[pa.Table, pa.Table]:
    """What is put and gone between two readings of a file group."""
    put = now.filter(pc.invert(pc.is_in(now.column("key"), old.column("key").combine_chunks())))
    gone = old.filter(pc.invert(pc.is_in(old.column("key"), now.column("key").combine_chunks())))
    moves.put.append(put)
    moves.gone.append(gone)
    return put, gone


def _stored(data: TableState, slices: Sequence[FileSlice], also: str | None = None) -> pa.Table:
    found = [_KEYED.empty_table()]
    for piece in slices:
        keys = slice_rows(data, piece, [RECORD_KEY], also).column(RECORD_KEY).combine_chunks()
        found.append(_keyed(keys, piece.partition_path, piece.file_id))
    return pa.concat_tables(found)


def _keyed(keys: pa.Array, path: str, file_id: str) -> pa.Table:
    count = len(keys)
    return pa.Table.from_arrays([keys.cast(pa.string()), pa.repeat(path, count), pa.repeat(file_id, count)], schema=_KEYED)


def _of_log(data: TableState, log: LogFile, instant_time: str, stat: HoodieWriteStat, rules: MergeRules, moves: KeyMoves) -> None:
    """Rows and deletions of a new log file. Updated rows among new ones are put again, which changes nothing."""
    for keys, is_gone in _logged(data, log, instant_time, rules):
        rows = _keyed(keys, log.partition_path, log.file_id)
        if is_gone:
            moves.gone.append(rows)
        elif stat.num_inserts:
            moves.put.append(rows)


def _logged(data: TableState, log: LogFile, instant_time: str, rules: MergeRules) -> Iterator[tuple[pa.Array, bool]]:
    """Keys in the blocks of a log file, and whether they are deleted."""
    for block in read_blocks(mapped(data.storage, log.path)):
        if block.instant_time != instant_time:
            continue
        if block.type is BlockType.DELETE:
            yield decode_delete_block(block).keys, True
        elif block.type in DATA_BLOCKS:
            rows = decode_data_block(block, partial=True)
            marked = pa.array(rules.deletions(rows))
            keys = rules.record_keys(rows).cast(pa.string())
            yield keys.filter(pc.invert(marked)), False
            yield keys.filter(marked), True
