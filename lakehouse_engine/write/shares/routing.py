"""Changes of one share on their way to their file groups: the process that plans the share writes them, the one that writes the group reads
them.

The leading process keeps in columns where they are (`RoutedShare`), and makes one object for each file group (`by_place`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa

from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.write.plan.changes import Changes
from lakehouse_engine.write.plan.cow import CowPlan, FileChange
from lakehouse_engine.write.plan.mor_changes import DeltaPlan, SliceChange
from lakehouse_engine.write.plan.placing import NewGroup
from lakehouse_engine.write.shares.exchange import Exchange
from lakehouse_engine.write.source import Rows
from lakehouse_engine.write.tasks.base_files import NO_ROWS


class Kind(IntEnum):
    """What a routed row says: fields of `plan.mor_changes.SliceChange`."""

    UPDATE = 0
    REVIVED = 1
    UNSEEN = 2
    INSERT = 3
    GONE = 4
    KEY = 5
    SEQNO = 6


_KIND, _ROW, _AT, _TEXT = "kind", "row", "at", "text"
_SCHEMA = pa.schema([(_KIND, pa.int8()), (_ROW, pa.int64()), (_AT, pa.int64()), (_TEXT, pa.string())])
_BLOCK_BITS = 16

PlaceId = FileGroupId | tuple[str, int | None]
"""A file group, or the new records of a partition (and bucket, in a table with buckets)."""

_PARTITION, _FILE_ID, _BUCKET, _REWRITE = "partition", "file_id", "bucket", "rewrite"
_PLACES = pa.schema([
    *((_PARTITION, pa.string()), (_FILE_ID, pa.string()), (_BUCKET, pa.int64()), (_REWRITE, pa.bool_())),
    *((kind.name, pa.int64()) for kind in Kind),
])


@dataclass(frozen=True, slots=True)
class RoutedShare:
    """What one share has for others: batch `i` of the file `path` ("": nothing) is for the place in row `i` of `places`.

    `blocks`, by batch, counts its new records for every 65,536 row numbers.
    """

    path: str = ""
    places: pa.Table = field(default_factory=lambda: _places([]))
    blocks: Mapping[int, Mapping[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Routed:
    """What all shares have for one place: batch `batches[i]` of the file of the share `shares[i]`. `counts` by `Kind`. `blocks` counts new
    records for every 65,536 row numbers.

    There are many pairs of share and place, so there is one object for each place, and none for each pair.
    """

    place: PlaceId
    shares: Rows
    batches: Rows
    counts: tuple[int, ...]
    rewrite: bool
    blocks: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class _Part:
    place: PlaceId
    rows: pa.Table
    rewrite: bool = False
    is_new: bool = False


def route(exchange: Exchange, plan: Changes, numbers: Callable[[Rows], Rows]) -> RoutedShare:
    """Write the changes of a share; `numbers` maps row numbers to those that other processes use."""
    parts = list(_parts(plan, numbers))
    if not parts:
        return RoutedShare()
    lengths = [part.rows.num_rows for part in parts]
    which = np.repeat(np.arange(len(parts), dtype=np.int64), lengths)
    file = exchange.split("routed", pa.concat_tables(part.rows for part in parts), which, len(parts))
    return RoutedShare(file.path, _places(parts), {number: _blocks(part.rows) for number, part in enumerate(parts) if part.is_new})


def by_place(shares: Sequence[RoutedShare]) -> list[Routed]:
    """What the shares have, by place."""
    places = pa.concat_tables(share.places for share in shares)
    if not places.num_rows:
        return []
    lengths = [share.places.num_rows for share in shares]
    number = np.repeat(np.arange(len(shares), dtype=np.int64), lengths)
    batch = np.concatenate([np.arange(length, dtype=np.int64) for length in lengths])
    ids, of = _place_ids(places)
    order, many = np.argsort(of, kind="stable"), np.bincount(of)
    starts = np.cumsum(many) - many
    counts = np.add.reduceat(np.stack([np.asarray(places.column(kind.name)) for kind in Kind], axis=1)[order], starts)
    rewrite = np.logical_or.reduceat(np.asarray(places.column(_REWRITE))[order], starts)
    parts = zip(np.split(number[order], starts[1:]), np.split(batch[order], starts[1:]), strict=True)
    told = zip(ids, parts, counts.tolist(), rewrite.tolist(), strict=True)
    return [
        Routed(place, mine, batches, tuple(count), again, {} if isinstance(place, FileGroupId) else _all_blocks(shares, mine, batches))
        for place, (mine, batches), count, again in told
    ]


def _place_ids(places: pa.Table) -> tuple[list[PlaceId], Rows]:
    """The distinct places, and the index of each row's place among them."""
    encoded = [_encoded(places.column(name)) for name in (_PARTITION, _FILE_ID, _BUCKET)]
    code = np.zeros(places.num_rows, np.int64)
    for codes, values in encoded:
        code = code * (len(values) + 1) + codes + 1
    _, first, of = np.unique(code, return_index=True, return_inverse=True)
    columns = ([values[one] for one in codes[first].tolist()] for codes, values in encoded)
    return [(path, bucket) if file is None else FileGroupId(path, file) for path, file, bucket in zip(*columns, strict=True)], of


def _encoded(column: pa.ChunkedArray) -> tuple[Rows, list[Any]]:
    """Indices of a column's values (-1 for null), and the values followed by a null.

    Chunks stay apart: together, texts may be too large for one array.
    """
    chunks = column.dictionary_encode().chunks
    codes = [np.asarray(chunk.indices.fill_null(-1)).astype(np.int64) for chunk in chunks]
    return np.concatenate(codes), [*chunks[-1].dictionary.to_pylist(), None]


def _all_blocks(shares: Sequence[RoutedShare], numbers: Rows, batches: Rows) -> Mapping[int, int]:
    blocks: Counter[int] = Counter()
    for number, batch in zip(numbers.tolist(), batches.tolist(), strict=True):
        blocks.update(shares[number].blocks[batch])
    return blocks


def _places(parts: Sequence[_Part]) -> pa.Table:
    partitions, files, buckets = zip(*(_told(part.place) for part in parts), strict=True) if parts else ((), (), ())
    columns: list[Any] = [partitions, files, buckets, [part.rewrite for part in parts]]
    counts = [np.bincount(np.asarray(part.rows.column(_KIND)), minlength=len(Kind)) for part in parts]
    columns += list(np.stack(counts, axis=1)) if parts else [[]] * len(Kind)
    return pa.table([pa.array(column, of.type) for column, of in zip(columns, _PLACES, strict=True)], schema=_PLACES)


def _told(place: PlaceId) -> tuple[str, str | None, int | None]:
    return (place.partition_path, place.file_id, None) if isinstance(place, FileGroupId) else (place[0], None, place[1])


def _blocks(rows: pa.Table) -> dict[int, int]:
    blocks, counts = np.unique(np.asarray(rows.column(_ROW)) >> _BLOCK_BITS, return_counts=True)
    return dict(zip(blocks.tolist(), counts.tolist(), strict=True))


def _parts(plan: Changes, numbers: Callable[[Rows], Rows]) -> Iterator[_Part]:
    changes = plan.changes.values()
    for change in changes:
        if isinstance(change, SliceChange):
            place, told, rewrite = change.piece.group, _of_slice(change), change.rewrite
        else:
            place, told, rewrite = FileGroupId(change.base.partition_path, change.base.file_id), _of_file(change), False
        rows = [part for one in told if (part := _rows(*one, numbers)) is not None]
        if rows:
            yield _Part(place, pa.concat_tables(rows), rewrite)
    for group in plan.creates:
        rows_of_group = _rows(Kind.INSERT, group.rows, None, None, numbers)
        if rows_of_group is not None:
            yield _Part((group.partition, group.bucket), rows_of_group, is_new=True)


_Told = tuple[Kind, Rows | None, Rows | None, pa.Array | None]


def _of_file(change: FileChange) -> list[_Told]:
    gone: list[_Told] = [(Kind.GONE, None, positions, None) for positions in change.deletes]
    return [(Kind.UPDATE, change.rows, change.positions, None), (Kind.INSERT, change.inserts, None, None), *gone]


def _of_slice(change: SliceChange) -> list[_Told]:
    told: list[_Told] = [(Kind.UPDATE, change.rows, change.positions, None), (Kind.INSERT, change.inserts, None, None)]
    told += [(Kind.REVIVED, rows, at, None) for rows, at in zip(change.revived, change.revived_at, strict=True)]
    told += [(Kind.UNSEEN, rows, None, None) for rows in change.unseen]
    told += [(Kind.GONE, None, positions, None) for positions in change.gone]
    told += [(Kind.KEY, None, at, keys) for keys, at in zip(change.keys, change.keys_at, strict=True)]
    return told + [(Kind.SEQNO, None, None, seqnos) for seqnos in change.seqnos]


def _rows(kind: Kind, rows: Rows | None, at: Rows | None, texts: pa.Array | None, numbers: Callable[[Rows], Rows]) -> pa.Table | None:
    """Rows of one kind; None if there are none, the common case."""
    count = len(next(one for one in (rows, at, texts) if one is not None))
    return None if not count else pa.table({
        _KIND: pa.array(np.full(count, kind, np.int8)),
        _ROW: pa.nulls(count, pa.int64()) if rows is None else pa.array(numbers(rows), pa.int64()),
        _AT: pa.nulls(count, pa.int64()) if at is None else pa.array(at, pa.int64()),
        _TEXT: pa.nulls(count, pa.string()) if texts is None else texts.cast(pa.string()),
    })


@dataclass(frozen=True, slots=True)
class Told:
    """What all shares have for one place, as it was routed."""

    rows: pa.Table

    @classmethod
    def read(cls, exchange: Exchange, paths: Sequence[str], routed: Routed | None) -> Told:
        """Read it; `paths` are the files that each share wrote."""
        parts = () if routed is None else zip(routed.shares.tolist(), routed.batches.tolist(), strict=True)
        return cls(pa.concat_tables([_SCHEMA.empty_table(), *(exchange.read(paths[share], batch) for share, batch in parts)]))

    def numbers(self, kind: Kind) -> Rows:
        return self._of(kind, _ROW)

    def positions(self, kind: Kind) -> Rows:
        return self._of(kind, _AT)

    def texts(self, kind: Kind) -> pa.Array:
        mine = self.rows.filter(pa.array(self._is(kind))).column(_TEXT)
        return pa.concat_arrays([pa.array([], pa.string()), *mine.chunks])

    def _of(self, kind: Kind, name: str) -> Rows:
        mine = self.rows.filter(pa.array(self._is(kind))).column(name)
        return np.asarray(mine).astype(np.int64) if len(mine) else NO_ROWS

    def _is(self, kind: Kind) -> np.ndarray:
        return np.asarray(np.asarray(self.rows.column(_KIND)) == kind)


def add_changes(plan: Changes, piece: FileSlice, told: Told, inserts: Rows, numbers: Callable[[Rows], Rows], *, rewrite: bool) -> None:
    """Add the routed changes of a slice to a plan, as if one process had planned it; `inserts` are new records that go to the slice."""
    positions, rows = told.positions(Kind.UPDATE), told.numbers(Kind.UPDATE)
    order = np.argsort(positions, kind="stable")
    positions, rows = positions[order], numbers(rows[order])
    inserted = np.sort(np.concatenate([numbers(told.numbers(Kind.INSERT)), inserts]))
    if isinstance(plan, CowPlan):
        assert piece.base_file is not None
        change = plan.change(piece.base_file)
        change.positions, change.rows, change.inserts = positions, rows, inserted
        change.deletes.append(told.positions(Kind.GONE))
        return
    _add_to_slice(plan, piece, told, numbers, rewrite=rewrite)
    slice_change = plan.change(piece)
    slice_change.positions, slice_change.rows, slice_change.inserts = positions, rows, inserted


def _add_to_slice(plan: DeltaPlan, piece: FileSlice, told: Told, numbers: Callable[[Rows], Rows], *, rewrite: bool) -> None:
    change = plan.change(piece)
    revived = numbers(told.numbers(Kind.REVIVED))
    order = np.argsort(revived, kind="stable")
    change.revive(revived[order], told.positions(Kind.REVIVED)[order])
    change.unseen.append(numbers(told.numbers(Kind.UNSEEN)))
    change.gone.append(told.positions(Kind.GONE))
    change.drop_keys(told.texts(Kind.KEY), told.positions(Kind.KEY))
    change.seqnos.append(told.texts(Kind.SEQNO))
    change.rewrite |= rewrite


def cut_points(blocks: Mapping[int, int], ranks: Sequence[int]) -> list[int]:
    """Row numbers below which there are about as many new records as each of the ascending `ranks` says; exact at block ends."""
    numbers = np.array(sorted(blocks), np.int64)
    until = np.cumsum([blocks[number] for number in numbers.tolist()])
    cuts = []
    for rank in ranks:
        at = int(np.searchsorted(until, rank, side="left")) if rank > 0 else 0
        before = int(until[at - 1]) if at else 0
        share = (rank - before) / max(1, int(until[at]) - before)
        cuts.append(int(numbers[at] << _BLOCK_BITS) + round(share * (1 << _BLOCK_BITS)))
    return cuts


def new_group(place: tuple[str, int | None], rows: Rows) -> NewGroup:
    """New file group for rows of a place (partition path, and bucket if the table has buckets)."""
    return NewGroup(place[0], np.sort(rows), place[1])
