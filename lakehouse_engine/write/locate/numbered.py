"""Finds stored rows by their `_hoodie_commit_seqno`, which tells rows apart that have one key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import COMMIT_SEQNO, RECORD_KEY
from lakehouse_engine.read.log_scanner import LoggedSlice
from lakehouse_engine.read.slice_reader import SliceReader
from lakehouse_engine.record.ordering import incoming_wins
from lakehouse_engine.write.source import Rows
from lakehouse_engine.write.tasks.base_files import NO_ROWS


@dataclass(frozen=True, slots=True)
class NumbersTask:
    """Look for rows of a slice, merged with its logs, that have one of the `seqnos`."""

    reader: SliceReader
    piece: LoggedSlice
    seqnos: pa.Array


@dataclass(frozen=True, slots=True)
class FoundNumbers:
    """The numbers that are there; `positions` are those of the rows in the base file, where the slice has no logs."""

    piece: FileSlice
    positions: Rows
    seqnos: pa.Array


def find_numbers(task: NumbersTask) -> FoundNumbers:
    """Raises as `SliceReader.iter`."""
    positions, seqnos, start = [NO_ROWS], [pa.array([], pa.string())], 0
    for table in task.reader.iter(task.piece, [COMMIT_SEQNO]):
        numbers = table.column(COMMIT_SEQNO)
        hit = pc.is_in(numbers, value_set=task.seqnos)
        positions.append(np.flatnonzero(np.asarray(hit)) + start)
        seqnos += numbers.filter(hit).chunks
        start += table.num_rows
    return FoundNumbers(task.piece.slice, np.concatenate(positions).astype(np.int64), pa.concat_arrays(seqnos))


@dataclass(frozen=True, slots=True)
class OlderTask:
    """Look for rows of a slice with one of `keys` whose ordering values are not above those of the key's in `ordering`."""

    reader: SliceReader
    piece: LoggedSlice
    keys: pa.Array
    ordering: tuple[pa.Array, ...]


def older_numbers(task: OlderTask) -> pa.Array:
    """Their numbers. Raises as `SliceReader.iter`."""
    rules, seqnos = task.reader.rules, [pa.array([], pa.string())]
    for table in task.reader.iter(task.piece, [RECORD_KEY, COMMIT_SEQNO, *rules.ordering.roots]):
        hits = pc.index_in(table.column(RECORD_KEY), value_set=task.keys)
        stored, at = table.filter(hits.is_valid()), hits.drop_null().combine_chunks()
        if stored.num_rows:
            offered = [column.take(at) for column in task.ordering]
            older = incoming_wins(rules.ordering.values(stored), offered, equals=rules.merger.equals_win)
            seqnos += stored.column(COMMIT_SEQNO).filter(pa.array(older)).chunks
    return pa.concat_arrays(seqnos)
