"""What runs per file group, on an executor or in a thread: create a base file, or merge changes into one.

Each task writes its marker before its data file (so that whoever finds the instant dead knows the file), and names the file by a
random attempt: a retried or speculative attempt writes another file of the same group, which the commit removes because no write stat
names it. An attempt that outlives its write removes its file itself (`attempt`).
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.errors import PartitionValueError, StoredFileExistsError
from lakehouse_engine.files.base_file import iter_base_file
from lakehouse_engine.files.footer import read_footer
from lakehouse_engine.format.bloom import BloomFilter
from lakehouse_engine.format.file_names import PARTITION_METAFILE, MarkerType, marker_path, write_token
from lakehouse_engine.format.partition_metafile import render_partition_metafile
from lakehouse_engine.index.simple import stored_filter
from lakehouse_engine.model.files import BaseFile, LogFile, join_path
from lakehouse_engine.model.keys import META_COLUMNS, PARTITION_PATH, RECORD_KEY
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.record.merging.deletions import HUDI_MARK, DeleteMarks
from lakehouse_engine.record.merging.mergers import RecordMerger
from lakehouse_engine.record.merging.ordering_fields import NO_ORDERING, OrderingFields
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import has_file
from lakehouse_engine.view.listing import StorageLister
from lakehouse_engine.write.source import Rows, RowSource, packed_source
from lakehouse_engine.write.tasks.attempt import FileAttempt
from lakehouse_engine.write.tasks.file_writer import BaseFileWriter, FileIdentity

Mask = npt.NDArray[np.bool_]
NO_ROWS: Rows = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class FileContext:
    """What every file of one commit shares. `schema` has the user columns, `avro_schema` the same with meta columns as text.

    `unique_columns` never repeat, so a dictionary of them is not tried; `partition_columns` are those that partition paths are made of.
    """

    storage: Storage
    instant_time: str
    schema: pa.Schema
    avro_schema: str
    options: WriteOptions
    unique_columns: frozenset[str] = frozenset()
    partition_columns: tuple[str, ...] = ()
    populate: bool = True


@dataclass(frozen=True, slots=True)
class CreateTask:
    """Write rows of `source` (None: all of them) as a new file group."""

    context: FileContext
    task: int
    partition_path: str
    file_id: str
    source: RowSource
    rows: Rows | None

    def packed(self) -> CreateTask:
        """As `engine.Packable`."""
        return self if self.rows is None else replace(self, source=packed_source(self.source, self.rows))


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Write the next version of `base`.

    `positions` (ascending row numbers in the base file) meet `rows` of `source`, one to one; `deletes` are base rows to drop;
    `inserts` are rows of `source` to add. Ordering values decide who wins through `merger`; `marks` tells rows that delete.
    """

    context: FileContext
    task: int
    base: BaseFile
    source: RowSource
    merger: RecordMerger
    ordering: OrderingFields = NO_ORDERING
    marks: DeleteMarks = HUDI_MARK
    positions: Rows = field(default_factory=lambda: NO_ROWS)
    rows: Rows = field(default_factory=lambda: NO_ROWS)
    deletes: Rows = field(default_factory=lambda: NO_ROWS)
    inserts: Rows = field(default_factory=lambda: NO_ROWS)

    def packed(self) -> MergeTask:
        """As `engine.Packable`."""
        return replace(self, source=packed_source(self.source, self.rows, self.inserts))


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """What a task did: the stat for the commit record, or None where nothing had to be written."""

    stat: HoodieWriteStat | None


def announce(context: FileContext, file: BaseFile | LogFile, kind: MarkerType) -> None:
    """Marker first, then the partition's metafile (without which Hudi does not see the partition).

    Asked for by the file's `FileAttempt`, right before the file is opened. Raises `PartitionValueError` for a partition inside of another
    one, and `UnsafePathError` for one behind a link.
    """
    partition = file.partition_path
    metafile = join_path(partition, PARTITION_METAFILE)
    # Looked at before the marker is made: what cannot be reached could not be rolled back either.
    known = has_file(context.storage, metafile)
    context.storage.create(marker_path(context.instant_time, file.path, kind), b"")
    if known:
        return
    depth = partition.count("/") + 1 if partition else 0
    with suppress(StoredFileExistsError):  # another task of this commit was first
        context.storage.create(metafile, render_partition_metafile(context.instant_time, depth))
    other = _nested_with(context.storage, partition)
    if other is not None:
        context.storage.delete(metafile)
        raise PartitionValueError(
            f"the partition {partition!r} cannot be beside {other!r}: one is inside of the other, and readers look for no partitions in"
            " a partition; replace the '/' in the values, or create the table with url-encoded partition paths"
        )


def _nested_with(storage: Storage, partition: str) -> str | None:
    """A partition above or below this new one. Looked for once its metafile is there, so that of two new ones the later sees it."""
    pieces = partition.split("/") if partition else []
    above = ["/".join(pieces[:count]) for count in range(len(pieces))]
    found = next((path for path in above if has_file(storage, join_path(path, PARTITION_METAFILE))), None)
    return found if found is not None else next(iter(StorageLister(storage).below(partition)), None)


def next_version(context: FileContext, partition_path: str, file_id: str, task: int) -> BaseFile:
    return BaseFile(partition_path, file_id, write_token(task, 0, secrets.randbelow(1_000_000)), context.instant_time)


def attempt_at(context: FileContext, file: BaseFile | LogFile, kind: MarkerType) -> FileAttempt:
    return FileAttempt(context.storage, context.instant_time, file.path, kind, lambda: announce(context, file, kind))


def open_writer(context: FileContext, file: BaseFile, kind: MarkerType, inherited: BloomFilter | None = None) -> BaseFileWriter:
    return BaseFileWriter(
        context.storage,
        file.path,
        context.schema,
        context.avro_schema,
        context.options,
        unique_columns=context.unique_columns,
        populate=context.populate,
        inherited=inherited,
        attempt=attempt_at(context, file, kind),
    )


def identity(context: FileContext, file: BaseFile, task: int) -> FileIdentity:
    return FileIdentity(context.instant_time, file.partition_path, file.name, task, context.populate)


def created_stat(file: BaseFile, size: int, rows: int) -> HoodieWriteStat:
    return HoodieWriteStat(
        file_id=file.file_id,
        path=file.path,
        partition_path=file.partition_path,
        num_writes=rows,
        num_inserts=rows,
        total_write_bytes=size,
        file_size_in_bytes=size,
    )


def create_file(task: CreateTask) -> WriteStatus:
    """Write a new file group with every row given, in order."""
    context = task.context
    file = next_version(context, task.partition_path, task.file_id, task.task)
    stamp = identity(context, file, task.task)
    writer = open_writer(context, file, MarkerType.CREATE)
    try:
        rows = task.source.take(task.rows)
        step = context.options.row_group_rows
        for start in range(0, rows.num_rows, step):
            writer.write(stamp.stamp(rows.slice(start, step), start), new_keys=True)
        size, count = writer.close()
    except BaseException:
        writer.discard()
        raise
    return WriteStatus(created_stat(file, size, count))


@dataclass(slots=True)
class _Merging:
    """One merge at work: where it writes, and what it has done so far."""

    task: MergeTask
    writer: BaseFileWriter
    stamp: FileIdentity
    updates: int = 0
    deletes: int = 0
    stamped: int = 0

    def run(self) -> None:
        """Row group by row group: kept rows as they were, changed rows behind them; new rows at the end."""
        start, task = 0, self.task
        for group in iter_base_file(task.context.storage, task.base, task.context.schema, meta_columns=META_COLUMNS):
            keep = np.ones(group.num_rows, dtype=bool)
            low, high = np.searchsorted(task.deletes, [start, start + group.num_rows])
            keep[task.deletes[low:high] - start] = False
            self.deletes += int(high - low)
            low, high = np.searchsorted(task.positions, [start, start + group.num_rows])
            changed = self._changed(group, task.positions[low:high] - start, task.rows[low:high], keep)
            start += group.num_rows
            kept = group if keep.all() else group.filter(pa.array(keep))
            self.writer.write(self.stamp.restamp(kept), new_keys=False)
            self._write_new(changed, new_keys=False)
        self._write_new(task.source.take(task.inserts) if len(task.inserts) else None, new_keys=True)

    def _write_new(self, rows: pa.Table | None, *, new_keys: bool) -> None:
        if rows is not None and rows.num_rows:
            self.writer.write(self.stamp.stamp(rows, self.stamped), new_keys=new_keys)
            self.stamped += rows.num_rows

    def _changed(self, group: pa.Table, positions: Rows, rows: Rows, keep: Mask) -> pa.Table | None:
        """The rows of a row group that change, as they are to be written; clears their old selves in `keep`."""
        if not len(positions):
            return None
        merger, incoming = self.task.merger, self.task.source.take(rows)
        wins, goes = self._decide(group, positions, incoming)
        alive = ~self.task.marks.of(incoming)
        touched = goes | (alive if merger.losers_matter else wins & alive)
        if not touched.all():
            positions, wins, goes = positions[touched], wins[touched], goes[touched]
            incoming = incoming.filter(pa.array(touched))
        keep[positions] = False
        if not merger.whole_rows:
            incoming = _combined(merger, group, positions, incoming, wins)
        self.deletes += int(goes.sum())
        self.updates += len(goes) - int(goes.sum())
        return incoming.filter(pa.array(~goes)) if goes.any() else incoming

    def _decide(self, group: pa.Table, positions: Rows, incoming: pa.Table) -> tuple[Mask, Mask]:
        """For each pair: whether the incoming row wins, and whether it deletes the stored one."""
        task, everything = self.task, np.ones(len(positions), dtype=bool)
        compared = task.ordering if task.merger.compares_ordering else NO_ORDERING
        old, new = compared.values(group.select(compared.roots).take(pa.array(positions))), compared.values(incoming)
        wins = task.merger.wins(old, new)
        marked = self.task.marks.of(incoming)
        deletes = task.merger.deletes(old, new) if marked.any() else None
        return (everything if wins is None else wins), marked & (everything if deletes is None else deletes)


def _combined(merger: RecordMerger, group: pa.Table, positions: Rows, incoming: pa.Table, wins: Mask) -> pa.Table:
    user = [name for name in incoming.column_names if name not in (RECORD_KEY, PARTITION_PATH)]
    base = group.select(user).take(pa.array(positions))
    merged = merger.combine(base, incoming.select(user), None if wins.all() else wins)
    keys = [incoming.column(name) for name in (RECORD_KEY, PARTITION_PATH)]
    return pa.table([*keys, *merged.columns], names=[RECORD_KEY, PARTITION_PATH, *user])


def merge_file(task: MergeTask) -> WriteStatus:
    """Write the next version of a base file. No status when every change lost against what is stored: then the file it wrote has
    nothing new, no write stat names it, and the commit removes it.
    """
    context = task.context
    file = next_version(context, task.base.partition_path, task.base.file_id, task.task)
    inherited = stored_filter(read_footer(context.storage, task.base)) if context.populate else None
    writer = open_writer(context, file, MarkerType.MERGE, inherited)
    merging = _Merging(task, writer, identity(context, file, task.task))
    try:
        merging.run()
        size, rows = writer.close()
    except BaseException:
        writer.discard()
        raise
    if not (merging.updates or merging.deletes or len(task.inserts)):
        return WriteStatus(None)
    return WriteStatus(_merged_stat(merging, file, size, rows))


def _merged_stat(merging: _Merging, file: BaseFile, size: int, rows: int) -> HoodieWriteStat:
    return HoodieWriteStat(
        file_id=file.file_id,
        path=file.path,
        prev_commit=merging.task.base.instant_time,
        partition_path=file.partition_path,
        num_writes=rows,
        num_deletes=merging.deletes,
        num_update_writes=merging.updates,
        num_inserts=len(merging.task.inserts),
        total_write_bytes=size,
        file_size_in_bytes=size,
    )
