"""Changes of one share on their way to the file groups that they are for: written by who plans the share, read by who writes the group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

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
"""A file group, or new records of a partition (and a bucket, where the table has some)."""


@dataclass(frozen=True, slots=True)
class Routed:
    """What one share has for one place: batch `batch` of the file `path`. `counts` by `Kind`.

    Of new records `blocks` says how many there are of every 65,536 row numbers.
    """

    place: PlaceId
    path: str
    batch: int
    counts: tuple[int, ...]
    rewrite: bool = False
    blocks: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Part:
    place: PlaceId
    rows: pa.Table
    rewrite: bool = False
    is_new: bool = False


def route(exchange: Exchange, plan: Changes, numbers: Callable[[Rows], Rows]) -> list[Routed]:
    """Write the changes of a share; `numbers` maps numbers of rows to those by which others find them."""
    parts = list(_parts(plan, numbers))
    if not parts:
        return []
    lengths = [part.rows.num_rows for part in parts]
    which = np.repeat(np.arange(len(parts), dtype=np.int64), lengths)
    file = exchange.split("routed", pa.concat_tables(part.rows for part in parts), which, len(parts))
    return [
        Routed(part.place, file.path, number, _counts(part.rows), part.rewrite, _blocks(part.rows) if part.is_new else {})
        for number, part in enumerate(parts)
    ]


def _counts(rows: pa.Table) -> tuple[int, ...]:
    return tuple(np.bincount(np.asarray(rows.column(_KIND)), minlength=len(Kind)).tolist())


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
    told += [(Kind.REVIVED, rows, None, None) for rows in change.revived]
    told += [(Kind.UNSEEN, rows, None, None) for rows in change.unseen]
    told += [(Kind.GONE, None, positions, None) for positions in change.gone]
    told += [(Kind.KEY, None, None, keys) for keys in change.keys]
    return told + [(Kind.SEQNO, None, None, seqnos) for seqnos in change.seqnos]


def _rows(kind: Kind, rows: Rows | None, at: Rows | None, texts: pa.Array | None, numbers: Callable[[Rows], Rows]) -> pa.Table | None:
    """None for nothing, which most of what could be said of a place is."""
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
    def read(cls, exchange: Exchange, routed: Iterable[Routed]) -> Told:
        return cls(pa.concat_tables([_SCHEMA.empty_table(), *(exchange.read(one.path, one.batch) for one in routed)]))

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
    """Add what was told of a slice to a plan, as one process would have planned it; `inserts` are new records that it takes."""
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
    change.revived.append(np.sort(numbers(told.numbers(Kind.REVIVED))))
    change.unseen.append(numbers(told.numbers(Kind.UNSEEN)))
    change.gone.append(told.positions(Kind.GONE))
    change.keys.append(told.texts(Kind.KEY))
    change.seqnos.append(told.texts(Kind.SEQNO))
    change.rewrite |= rewrite


def cut_points(blocks: Mapping[int, int], ranks: Sequence[int]) -> list[int]:
    """Row numbers below which there are about as many new records as each of the ascending `ranks` says; exactly at the ends."""
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
    return NewGroup(place[0], np.sort(rows), place[1])
