"""The work for a group of slices, on an executor or in a thread: rewrite its rows, sorted or slice after slice."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lakehouse_engine.files.row_pool import SpillTo
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.format.file_names import marker_folder
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.services.cluster.group_rows import GroupRows, NewFile, portion
from lakehouse_engine.services.cluster.joining import join, shared_out
from lakehouse_engine.services.cluster.order import SortOrder
from lakehouse_engine.services.cluster.sorted_rows import SortedRows
from lakehouse_engine.write.tasks.base_files import FileContext

Stats = list[HoodieWriteStat]


@dataclass(frozen=True, slots=True)
class SortTask:
    """One group: its slices become file groups with the given ids, of about equal size. `first` numbers the first of them in the commit.

    `reader` sees logs as of the clustering. Above `memory_bytes` rows wait in files. Up to `threads` files are written at once.
    """

    context: FileContext
    first: int
    reader: SliceReader
    pieces: tuple[LoggedSlice, ...]
    file_ids: tuple[str, ...]
    order: SortOrder
    memory_bytes: int
    threads: int = 1

    @property
    def partition_path(self) -> str:
        return self.pieces[0].slice.partition_path

    def rows(self, pieces: tuple[LoggedSlice, ...]) -> GroupRows:
        """Rows of some of the slices."""
        return GroupRows(self.reader, self.context.schema, pieces)

    def file(self, number: int) -> NewFile:
        return NewFile(self.context, self.partition_path, self.file_ids[number], self.first + number)


def sort_group(task: SortTask) -> Stats:
    """Write the file groups. Returns their stats for the commit record, without files that would have no rows.

    Rows keep their commit time, seqno and key. Raises as `SliceReader.stream` and `iter_base_file`.
    """
    if not task.order.columns:
        shares = shared_out(task.pieces, len(task.file_ids))
        return _each(task, lambda number: join(task.file(number), task.rows(shares[number])))
    # An attempt that was repeated may still be at work.
    folder = f"{marker_folder(task.context.instant_time)}/.spill/{task.file_ids[0]}-{secrets.token_hex(4)}"
    spill = SpillTo(task.context.storage, folder, task.memory_bytes)
    try:
        rows = SortedRows.of(task.rows(task.pieces), task.order, len(task.file_ids), spill, task.threads)
        return _each(task, lambda number: _write(task, number, rows))
    finally:
        spill.storage.delete_tree(spill.folder)


def _write(task: SortTask, number: int, rows: SortedRows) -> HoodieWriteStat | None:
    return task.file(number).write(portion(part) for part in rows.tables(number, task.context.options.row_group_rows))


def _each(task: SortTask, write: Callable[[int], HoodieWriteStat | None]) -> Stats:
    """Write every file, some at once."""
    numbers = range(len(task.file_ids))
    if task.threads == 1 or len(numbers) == 1:
        made = [write(number) for number in numbers]
    else:
        with ThreadPoolExecutor(min(task.threads, len(numbers)), thread_name_prefix="files") as pool:
            made = list(pool.map(write, numbers))
    return [stat for stat in made if stat is not None]
