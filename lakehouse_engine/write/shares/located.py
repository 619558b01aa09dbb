"""Finds where the keys of one share are stored, and what is known of the stored rows. Implements `locate.target.Located`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.files.log_records import NO_ROW
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.index.base import Found, TaggedFile
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.record.matching import matches
from lakehouse_engine.record.merging.ordering_fields import OrderingFields
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.locate.numbered import FoundNumbers
from lakehouse_engine.write.locate.settle import KeyLogs
from lakehouse_engine.write.shares.exchange import Exchange, SplitFile
from lakehouse_engine.write.shares.stored import AT, DELETED_AT, KEY, STATE, StoredSlice
from lakehouse_engine.write.source import Rows
from lakehouse_engine.write.tasks.base_files import NO_ROWS


@dataclass(frozen=True, slots=True)
class StoredShare:
    """Keys of a share that one slice stores. Implements `settle.StoredSide`."""

    piece: FileSlice
    base_rows: int
    in_base: pa.Table | None
    in_logs: pa.Table | None
    rules: MergeRules | None

    def logs(self, keys: pa.Array) -> KeyLogs:
        rows = np.full(len(keys), NO_ROW, np.int64)
        if self.in_logs is None or self.rules is None:
            return KeyLogs(rows, pa.table({}), np.empty(0, dtype=bool), pa.nulls(len(keys)))
        at = pc.index_in(keys, value_set=self.in_logs.column(KEY))
        found = np.asarray(at.drop_null()).astype(np.int64)
        states = np.asarray(self.in_logs.column(STATE)).astype(np.int64)[found]
        # Here, row numbers of logs count in the whole table of logged keys, in which deletions have none.
        rows[np.asarray(at.is_valid())] = np.where(states >= 0, found, states)
        data = self.in_logs.drop_columns([KEY, STATE, DELETED_AT])
        deleted_at = self.in_logs.column(DELETED_AT).combine_chunks()
        flat = pa.concat_arrays(deleted_at.chunks) if isinstance(deleted_at, pa.ChunkedArray) else deleted_at
        return KeyLogs(rows, data, self.rules.deletions(data), flat.take(at))

    def base(self, ordering: OrderingFields, positions: Rows) -> list[pa.Array]:
        assert self.in_base is not None
        known = np.asarray(self.in_base.column(AT)).astype(np.int64)
        return ordering.values(self.in_base.select(ordering.roots).take(pa.array(np.searchsorted(known, positions))))


@dataclass(frozen=True, slots=True)
class LocatedShare:
    """The slices of a table, each with the keys of one share that it stores."""

    is_global: bool
    shares: dict[FileGroupId, StoredShare]

    @classmethod
    def read(
        cls,
        exchange: Exchange,
        share: int,
        slices: Sequence[FileSlice],
        stored: Sequence[StoredSlice],
        *,
        is_global: bool,
        rules: MergeRules | None,
    ) -> LocatedShare:
        """Read the share's part of the dealt keys; `stored[i]` are those of `slices[i]`."""
        shares = {}
        for piece, dealt in zip(slices, stored, strict=True):
            base, logs = (None if file is None else exchange.read_part(file, share) for file in (dealt.base, dealt.logs))
            if base is not None or logs is not None:
                shares[piece.group] = StoredShare(piece, dealt.base_rows, base, logs, rules)
        return cls(is_global, shares)

    def side(self, piece: FileSlice) -> StoredShare:
        return self.shares[piece.group]

    def find(self, batch: Batch) -> Found:
        """Where the batch's keys are stored. Looks through all slices of a partition at once, or of the table if its keys are unique in it.
        """
        tagged: list[TaggedFile] = []
        places: list[tuple[FileSlice, Rows | None]] = []
        if self.is_global:
            _ask(tagged, places, batch.keys, None, list(self.shares.values()))
            return Found(tagged, places)
        by_partition: dict[str, list[StoredShare]] = {}
        for one in self.shares.values():
            by_partition.setdefault(one.piece.partition_path, []).append(one)
        for partition, rows in batch.rows_by_partition().items():
            if partition in by_partition:
                _ask(tagged, places, batch.keys.take(pa.array(rows)), rows, by_partition[partition])
        return Found(tagged, places)


def located_numbers(
    exchange: Exchange, share: int, slices: Sequence[FileSlice], dealt: Sequence[SplitFile], numbers: Batch
) -> list[FoundNumbers]:
    """Numbers of a share by the slice that stores them; `dealt[i]` are the dealt numbers of `slices[i]`."""
    read = [(piece, exchange.read_part(file, share)) for piece, file in zip(slices, dealt, strict=True)]
    stored = [(piece, table) for piece, table in read if table is not None]
    hits = _hits(numbers.keys, None, [table for _, table in stored])
    return [
        FoundNumbers(piece, np.asarray(table.column(AT)).astype(np.int64)[at], numbers.keys.take(pa.array(rows)))
        for (piece, table), (at, rows) in zip(stored, hits, strict=True)
        if len(at)
    ]


def _ask(
    tagged: list[TaggedFile],
    places: list[tuple[FileSlice, Rows | None]],
    keys: pa.Array,
    rows: Rows | None,
    slices: Sequence[StoredShare],
) -> None:
    """Add which slices have which of the keys (of the batch's `rows`; None for all)."""
    in_bases = _hits(keys, rows, [one.in_base for one in slices])
    in_logs = _hits(keys, rows, [one.in_logs for one in slices])
    for one, (at, hits), (_, logged) in zip(slices, in_bases, in_logs, strict=True):
        if not len(hits) and not len(logged):
            continue
        if one.rules is not None:  # places are used only for tables with logs
            places.append((one.piece, np.union1d(hits, logged).astype(np.int64)))
        if len(hits):
            assert one.piece.base_file is not None
            assert one.in_base is not None
            positions = np.asarray(one.in_base.column(AT)).astype(np.int64)[at]
            tagged.append(TaggedFile(one.piece.base_file, one.base_rows, positions, hits))


def _hits(keys: pa.Array, rows: Rows | None, tables: Sequence[pa.Table | None]) -> list[tuple[Rows, Rows]]:
    """For each table: its rows with one of the keys, ascending, and the batch's rows with the same keys."""
    lengths = [0 if table is None else table.num_rows for table in tables]
    stored = [table.column(KEY) for table in tables if table is not None]
    if not stored or not len(keys):
        return [(NO_ROWS, NO_ROWS)] * len(tables)
    where, found = matches(pa.chunked_array([chunk for column in stored for chunk in column.chunks]), keys)
    numbers = found if rows is None else rows[found]
    starts = np.cumsum([0, *lengths])
    cuts = np.searchsorted(where, starts)
    return [(where[low:high] - start, numbers[low:high]) for start, low, high in zip(starts[:-1], cuts[:-1], cuts[1:], strict=True)]
