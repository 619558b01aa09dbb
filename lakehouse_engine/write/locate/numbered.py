"""Finds stored rows by `_hoodie_commit_seqno`, which distinguishes rows with equal keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.format.file_names import file_id_of
from lakehouse_engine.index.base import KeyedRows
from lakehouse_engine.index.simple import KeyColumnIndex, RowNumbers
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import COMMIT_SEQNO, FILE_NAME, PARTITION_PATH, RECORD_KEY
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.record.matching import matches
from lakehouse_engine.record.merging.ordering import incoming_wins
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.locate.target import KnownSlices, Target
from lakehouse_engine.write.source import Rows, RowSource
from lakehouse_engine.write.tasks.base_files import NO_ROWS


@dataclass(frozen=True, slots=True)
class NumbersTask:
    """Look for rows of a slice, merged with its logs, with one of the `seqnos`."""

    reader: SliceReader
    piece: LoggedSlice
    seqnos: pa.Array


@dataclass(frozen=True, slots=True)
class FoundNumbers:
    """Numbers that were found; `positions` are the rows' positions in the base file, if the slice has no logs."""

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


def numbered_rows(target: Target, numbers: Batch, runner: TaskRunner) -> list[FoundNumbers]:
    """Places of the rows whose numbers are the keys of `numbers`: in the files that they name, and in others if some are not there."""
    if not len(numbers.keys):
        return []
    slices = target.view.latest_slices()
    named = slices if FILE_NAME not in numbers.source.column_names else named_slices(slices, named_files(numbers.source))
    found = _found(target, named, numbers, runner)
    if len(named) == len(slices) or not unfound(numbers, found):
        return found
    here = {piece.group for piece in named}
    return found + _found(target, [piece for piece in slices if piece.group not in here], numbers, runner)


def unfound(numbers: Batch, found: Sequence[FoundNumbers]) -> int:
    """Count of numbers that were not found. Several rows may share one: copies of a row in logs."""
    stored = pc.count_distinct(pa.chunked_array([one.seqnos for one in found], pa.string())).as_py()
    return int(pc.count_distinct(numbers.keys).as_py()) - int(stored)


def named_files(rows: RowSource | pa.Table) -> set[tuple[str, str]]:
    """Distinct partition paths and `_hoodie_file_name`s in rows."""
    columns = [PARTITION_PATH, FILE_NAME]
    said = rows.select(columns) if isinstance(rows, pa.Table) else rows.columns(columns)
    distinct = said.group_by(columns).aggregate([])
    return {(path, name or "") for path, name in zip(*(column.to_pylist() for column in distinct.columns), strict=True)}


def named_slices(slices: Sequence[FileSlice], files: Iterable[tuple[str, str]]) -> list[FileSlice]:
    """Slices of the named file groups."""
    groups = {(path, file_id_of(name)) for path, name in files}
    return [piece for piece in slices if (piece.partition_path, piece.file_id) in groups]


def _found(target: Target, slices: Sequence[FileSlice], numbers: Batch, runner: TaskRunner) -> list[FoundNumbers]:
    if target.logs is None:
        return _found_in_bases(target, slices, numbers, runner)
    tasks = [NumbersTask(target.logs.reader, target.logs.logged(piece), numbers.keys) for piece in slices]
    return [one for one in runner.run(find_numbers, tasks, name="tag") if len(one.positions)]


def _found_in_bases(target: Target, slices: Sequence[FileSlice], numbers: Batch, runner: TaskRunner) -> list[FoundNumbers]:
    asked = KeyedRows(numbers.keys, numbers.rows_by_partition())
    index = KeyColumnIndex(is_global=True, use_bloom=False)
    pieces = {piece.base_file.path: piece for piece in slices if piece.base_file is not None}
    tagged = index.tag(target.storage, KnownSlices.of(slices), asked, RowNumbers(), runner)
    return [FoundNumbers(pieces[one.base.path], one.positions, numbers.keys.take(pa.array(one.rows))) for one in tagged]


@dataclass(frozen=True, slots=True)
class OlderTask:
    """Look for rows of a slice with one of `keys` whose ordering values do not exceed the key's in `ordering`."""

    reader: SliceReader
    piece: LoggedSlice
    keys: pa.Array
    ordering: tuple[pa.Array, ...]


def older_numbers(task: OlderTask) -> pa.Array:
    """Their numbers. Raises as `SliceReader.iter`."""
    rules, seqnos = task.reader.rules, [pa.array([], pa.string())]
    for table in task.reader.iter(task.piece, [RECORD_KEY, COMMIT_SEQNO, *rules.ordering.roots]):
        places, at = matches(table.column(RECORD_KEY), task.keys)
        if len(places):
            stored, offered = table.take(pa.array(places)), [column.take(pa.array(at)) for column in task.ordering]
            older = incoming_wins(rules.ordering.values(stored), offered, equals=rules.merger.equals_win)
            seqnos += stored.column(COMMIT_SEQNO).filter(pa.array(older)).chunks
    return pa.concat_arrays(seqnos)
