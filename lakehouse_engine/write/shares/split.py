"""Deals the rows of a batch into shares: the columns that planning reads, with row numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakehouse_engine.engine import LocalRunner, TaskRunner
from lakehouse_engine.files.base_file import DICTIONARY_TYPE
from lakehouse_engine.model.keys import PARTITION_PATH, RECORD_KEY
from lakehouse_engine.write.batch.stage import DatedSource
from lakehouse_engine.write.locate.numbered import named_files
from lakehouse_engine.write.shares.dealing import Dealing
from lakehouse_engine.write.shares.exchange import Exchange, SplitFile
from lakehouse_engine.write.source import MemorySource, Rows, RowSource, StagedSource

ROW = "_hoodie_row"
"""Column with the number of a row in its source; no column of a table has this name."""
_PIECE = 1_000_000
"""Rows that one task deals."""


@dataclass(frozen=True, slots=True)
class SplitTask:
    """Deal `count` rows of `source` from its row `first` on; the first has `number` in the whole batch."""

    exchange: Exchange
    source: RowSource
    first: int
    count: int
    number: int
    columns: tuple[str, ...]
    dealing: Dealing


@dataclass(frozen=True, slots=True)
class PathsTask:
    """Find the partition paths, or the files, of `count` rows of `source` from its row `first` on."""

    source: RowSource
    first: int
    count: int


def partitions_of(runner: TaskRunner, source: RowSource) -> frozenset[str]:
    """Partition paths of the rows."""
    tasks = [PathsTask(part, first, count) for part, first, count, _ in _pieces(source)]
    return frozenset(itertools.chain.from_iterable(runner.run(paths_of_rows, tasks, name="paths")))


def paths_of_rows(task: PathsTask) -> list[str]:
    """Distinct partition paths in the task's rows."""
    found = task.source.slice(task.first, task.count).column(PARTITION_PATH).unique().to_pylist()
    return [str(path) for path in found]


def files_of(runner: TaskRunner, source: RowSource) -> set[tuple[str, str]]:
    """Partition paths and file names that the rows name."""
    tasks = [PathsTask(part, first, count) for part, first, count, _ in _pieces(source)]
    return set(itertools.chain.from_iterable(runner.run(files_of_rows, tasks, name="paths")))


def files_of_rows(task: PathsTask) -> set[tuple[str, str]]:
    """Files that the task's rows name, as pairs of partition path and file id."""
    return named_files(task.source.slice(task.first, task.count))


def split(runner: TaskRunner, exchange: Exchange, source: RowSource, columns: Sequence[str], dealing: Dealing) -> list[SplitFile]:
    """Deal all rows of a batch; `columns` are kept beside keys and partition paths."""
    names = tuple(dict.fromkeys([RECORD_KEY, PARTITION_PATH, *columns]))
    pieces = _pieces(source)
    tasks = [SplitTask(exchange, part, first, count, number, names, dealing) for part, first, count, number in pieces]
    return runner.run(split_rows, tasks, name="split")


def _pieces(source: RowSource) -> Iterator[tuple[RowSource, int, int, int]]:
    """Pieces of a source: the part, its first row, the number of rows, and the first row's number in the whole."""
    number = 0
    for part in source.parts():
        for first in range(0, part.num_rows, _PIECE):
            yield part, first, min(_PIECE, part.num_rows - first), number + first
        number += part.num_rows


def split_rows(task: SplitTask) -> SplitFile:
    """Deal the rows of one task. Raises as `Dealing.shares`."""
    table = task.source.slice(task.first, task.count).select(list(task.columns))
    paths = table.column(PARTITION_PATH).combine_chunks().cast(DICTIONARY_TYPE)
    paths = pa.concat_arrays(paths.chunks) if isinstance(paths, pa.ChunkedArray) else paths
    table = table.set_column(table.schema.get_field_index(PARTITION_PATH), PARTITION_PATH, paths)
    table = table.append_column(ROW, pa.array(np.arange(task.number, task.number + table.num_rows, dtype=np.int64)))
    keys = pa.concat_arrays([pa.array([], pa.string()), *table.column(RECORD_KEY).chunks])
    return task.exchange.split("rows", table, task.dealing.shares(keys), task.dealing.count)


def shared_source(runner: TaskRunner, exchange: Exchange, source: RowSource) -> RowSource:
    """The same rows where every task finds them: rows in memory are written to files, unless tasks run in this process."""
    if isinstance(source, DatedSource):
        return replace(source, source=shared_source(runner, exchange, source.source))
    if isinstance(runner, LocalRunner) or not isinstance(source, MemorySource):
        return source
    files = tuple(exchange.stage("batch", source.table.slice(first, _PIECE)) for first in range(0, source.num_rows, _PIECE))
    return StagedSource(exchange.storage, files, source.table.schema)


@dataclass(frozen=True, slots=True)
class ShareSource:
    """The rows of one share, under their numbers in `whole`. Columns in `narrow` (rows `rows`, ascending) are at hand."""

    whole: RowSource
    rows: Rows
    narrow: pa.Table

    @property
    def num_rows(self) -> int:
        return self.whole.num_rows

    @property
    def column_names(self) -> Sequence[str]:
        return self.whole.column_names

    def columns(self, names: Sequence[str], rows: Rows | None = None) -> pa.Table:
        if rows is None or not set(names) <= set(self.narrow.column_names):
            return self.whole.columns(names, rows)
        return self.narrow.select(list(names)).take(pa.array(np.searchsorted(self.rows, rows)))

    def take(self, rows: Rows | None) -> pa.Table:
        return self.whole.take(rows)

    def slice(self, first: int, count: int) -> pa.Table:
        return self.whole.slice(first, count)

    def parts(self) -> Sequence[RowSource]:
        return self.whole.parts()

    def only(self, rows: Rows) -> RowSource:
        return self.whole.only(rows)


def share_source(whole: RowSource, tables: Sequence[pa.Table | None]) -> ShareSource:
    """The rows of one share, from the tables read of each file, in order."""
    found = [table for table in tables if table is not None]
    if not found:
        names = [RECORD_KEY, PARTITION_PATH]
        return ShareSource(whole, np.empty(0, np.int64), whole.slice(0, 0).select(names))
    narrow = pa.concat_tables(found).unify_dictionaries().combine_chunks()
    return ShareSource(whole, np.asarray(narrow.column(ROW).combine_chunks()).astype(np.int64), narrow)
