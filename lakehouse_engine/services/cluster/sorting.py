"""The work for a group of slices, on an executor or in a thread: rewrite its rows, sorted."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.files.base_file import iter_base_file
from lakehouse_engine.files.row_pool import RowPool, SpillTo, take_rows
from lakehouse_engine.files.slice_reader import SliceReader, plain
from lakehouse_engine.format.file_names import marker_folder
from lakehouse_engine.model.keys import FILE_NAME
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.services.cluster.order import SORTABLE_META_COLUMNS, SortOrder
from lakehouse_engine.write.tasks.base_files import FileContext, Portion, next_version, write_base_file

Rows = npt.NDArray[np.int64]
_NEW_GROUP = "null"


@dataclass(frozen=True, slots=True)
class SortTask:
    """One group: its slices become file groups with the given ids and equal numbers of rows. `first` numbers the first of them in the
    commit.

    `reader` sees logs as of the clustering. Above `memory_bytes` rows wait in files.
    """

    context: FileContext
    first: int
    reader: SliceReader
    pieces: tuple[LoggedSlice, ...]
    file_ids: tuple[str, ...]
    order: SortOrder
    memory_bytes: int

    @property
    def partition_path(self) -> str:
        return self.pieces[0].slice.partition_path

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that rows keep: all but the name of their file, which changes."""
        return (*SORTABLE_META_COLUMNS, *self.context.schema.names)


def sort_group(task: SortTask) -> list[HoodieWriteStat]:
    """Write the file groups. Returns their stats for the commit record, without files that would have no rows.

    Rows keep their commit time, seqno and key. Raises as `SliceReader.stream` and `iter_base_file`.
    """
    context = task.context
    # An attempt that was repeated may still be at work.
    folder = f"{marker_folder(context.instant_time)}/.spill/{task.file_ids[0]}-{secrets.token_hex(4)}"
    spill = SpillTo(context.storage, folder, task.memory_bytes)
    try:
        rows = _rows(task, spill)
        if rows is None:
            return []
        order = task.order.permutation(rows)
        parts = [part for part in np.array_split(order, len(task.file_ids)) if len(part)]
        return [_written(task, number, rows, part) for number, part in enumerate(parts)]
    finally:
        context.storage.delete_tree(spill.folder)


def _rows(task: SortTask, spill: SpillTo) -> pa.Table | None:
    """All rows of the slices, merged with their logs; None without rows. Rows too many for memory are in mapped files."""
    pool: RowPool | None = None
    for piece in task.pieces:
        for part in _merged(task, piece):
            rows = part.select(list(task.columns)).cast(plain(part.schema))
            pool = RowPool(rows.schema, spill) if pool is None else pool
            pool.add(rows)
    if pool is None:
        return None
    rows = pool.table()
    # In one piece, rows are taken faster in any order. Rows that may be in files are not brought into memory.
    return rows.combine_chunks() if rows.nbytes <= task.memory_bytes else rows


def _merged(task: SortTask, piece: LoggedSlice) -> Iterator[pa.Table]:
    if piece.slice.log_files or piece.slice.base_file is None:
        yield from task.reader.stream(piece, task.columns)
        return
    base = piece.slice.base_file
    yield from iter_base_file(task.reader.storage, base, task.context.schema, meta_columns=SORTABLE_META_COLUMNS)


def _written(task: SortTask, number: int, rows: pa.Table, part: Rows) -> HoodieWriteStat:
    context, began = task.context, time.monotonic()
    file = next_version(context, task.partition_path, task.file_ids[number], task.first + number)
    step = context.options.row_group_rows

    def portions() -> Iterator[Portion]:
        for start in range(0, len(part), step):
            taken = take_rows(rows, part[start : start + step])
            named = taken.add_column(len(SORTABLE_META_COLUMNS), FILE_NAME, pa.nulls(taken.num_rows, pa.string()))
            yield Portion(named, new_keys=True, inserts=taken.num_rows)

    written = write_base_file(context, file, task.first + number, portions())
    took = int((time.monotonic() - began) * 1000)
    return replace(written.stat(_NEW_GROUP), runtime_stats={"totalScanTime": 0, "totalUpsertTime": 0, "totalCreateTime": took})
