"""One task of a delta commit: appends changed rows and deleted keys of some file groups to new log files.

Each group gets one new log file, with a marker before it. Rows pass through a `BucketBuffer` in windows of the source, so that a task holds
no more of a batch than `write.task.max.size` allows.
"""

from __future__ import annotations

import heapq
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lakehouse_engine.files.base_positions import PositionForm
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.format.file_names import MarkerType, write_token
from lakehouse_engine.format.log.positions import Positions
from lakehouse_engine.model.files import FileSlice, LogFile
from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.record.merging.ordering import latest_per_key
from lakehouse_engine.write.source import Rows, RowSource, packed_source
from lakehouse_engine.write.tasks.base_files import FileContext, WriteStatus, attempt_at
from lakehouse_engine.write.tasks.buffer import BucketBuffer
from lakehouse_engine.write.tasks.file_writer import FileIdentity
from lakehouse_engine.write.tasks.log_file import LogFileWriter

NO_KEYS = pa.array([], pa.string())

_MEGABYTE = 1024 * 1024
_GROUPS = 64
"""Most file groups of a task: each may have a file open."""
_WINDOW_ROWS = 256 * 1024
_WINDOW_SHARE = 4
_SAMPLE = 64
_AVRO_BLOCK = 512 * _MEGABYTE
"""Largest Avro block: it is made of binary arrays, whose offsets end at two gigabytes."""


@dataclass(frozen=True, slots=True)
class GroupAppend:
    """What a file group gets.

    `piece` is the slice as it is. `base_instant` goes into the log file's name: the slice's, or that of a pending compaction. `rows`
    (ascending) are rows of the source to log; `inserts` counts those whose key was not stored. `deletes` are record keys. `positions` are
    the rows of the slice's base file that `rows` replace (-1: none), if all are known; with `settled`, they do so whatever is logged later.
    `deleted_at` are the positions of the deleted keys (-1: none, or not known). The rows have all columns of the table except the `absent`
    ones, which stay as they are stored.
    """

    piece: FileSlice
    base_instant: str
    rows: Rows
    inserts: int = 0
    deletes: pa.Array = field(default_factory=lambda: NO_KEYS)
    positions: Positions | None = None
    deleted_at: Rows | None = None
    settled: bool = True
    absent: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AppendTask:
    """Append to some file groups. `task` is unique in its commit.

    `buffer_bytes` is this task's part of `write.task.max.size`. `rules` decide which of several rows of a key stays when `write.precombine`
    reduces what is buffered together (None: the last one).
    """

    context: FileContext
    task: int
    groups: tuple[GroupAppend, ...]
    source: RowSource
    buffer_bytes: int = 1024 * _MEGABYTE
    rules: MergeRules | None = None

    def packed(self) -> AppendTask:
        """As `engine.Packable`."""
        return replace(self, source=packed_source(self.source, *(group.rows for group in self.groups)))


def append_tasks(
    context: FileContext,
    groups: Sequence[GroupAppend],
    source: RowSource,
    first_task: int,
    parallelism: int,
    rules: MergeRules | None = None,
) -> list[AppendTask]:
    """Tasks for the groups, with about equally many rows each, numbered from `first_task`."""
    share = max(1, context.options.task_max_size_mb * _MEGABYTE // slots_for(len(groups), parallelism))
    loads = [load_of(len(group.rows), len(group.deletes)) for group in groups]
    return [
        AppendTask(context, first_task + task, tuple(groups[number] for number in numbers), source, share, rules)
        for task, numbers in enumerate(balanced(loads, parallelism))
    ]


def slots_for(groups: int, parallelism: int) -> int:
    """Number of tasks that run at once."""
    return max(1, min(parallelism, groups))


def load_of(rows: int, deletes: int) -> int:
    """Weight of appending to a group."""
    # A file costs about as much as a thousand rows.
    return rows + deletes // 4 + 1000


def balanced(loads: Sequence[int], parallelism: int) -> list[list[int]]:
    """Numbers of the groups of each task, so that tasks weigh about the same."""
    count = max(slots_for(len(loads), parallelism), -(-len(loads) // _GROUPS))
    chosen: list[list[int]] = [[] for _ in range(count)]
    lightest = [(0, task) for task in range(count)]
    for number in sorted(range(len(loads)), key=lambda number: -loads[number]):
        load, task = heapq.heappop(lightest)
        chosen[task].append(number)
        if len(chosen[task]) < _GROUPS:
            heapq.heappush(lightest, (load + loads[number], task))
    return [sorted(numbers) for numbers in chosen if numbers]


def append_logs(task: AppendTask) -> list[WriteStatus]:
    """Write a log file for each group, in order. No stat for a group that gets nothing."""
    logs = [_GroupLog(task.context, group, task.task, task.rules) for group in task.groups]
    appending = _Appending(task, logs)
    try:
        appending.run()
        return [WriteStatus(log.close()) for log in logs]
    except BaseException:
        for log in logs:
            log.discard()
        raise


@dataclass(slots=True)
class _Appending:
    """One task at work. `stamped` counts rows for the seqnos, over all groups."""

    task: AppendTask
    logs: list[_GroupLog]
    stamped: int = 0

    def run(self) -> None:
        options = self.task.context.options
        block = _block_bytes(options)
        buffer = BucketBuffer(block, self.task.buffer_bytes, _reduction(options, self.task.rules))
        for number, rows in self._windows(min(block, self.task.buffer_bytes) // _WINDOW_SHARE):
            for bucket, ready in buffer.add(number, rows):
                self._write(bucket, ready)
        for bucket, ready in buffer.flush():
            self._write(bucket, ready)

    def _write(self, bucket: int, rows: pa.Table) -> None:
        positions = None
        if self.task.groups[bucket].positions is not None:
            rows, positions = rows.remove_column(rows.num_columns - 1), rows.columns[-1].to_numpy()
        self.logs[bucket].write(rows, self.stamped, positions)
        self.stamped += rows.num_rows

    def _windows(self, size: int) -> Iterator[tuple[int, pa.Table]]:
        """Rows of the source in its order, about `size` bytes at a time, as (number of the group, its rows).

        For groups with positions, these are in a last column, which has no name.
        """
        groups, source = self.task.groups, self.task.source
        rows = np.sort(np.concatenate([np.empty(0, np.int64), *(group.rows for group in groups)]), kind="stable")
        at = [0] * len(groups)
        while len(rows):
            count = _window(source, rows, size)
            last, rows = rows[count - 1], rows[count:]
            for number, group in enumerate(groups):
                end = int(np.searchsorted(group.rows, last, side="right"))
                if end > at[number]:
                    taken = source.take(group.rows[at[number] : end])
                    if group.positions is not None:
                        taken = taken.append_column("", pa.array(group.positions[at[number] : end]))
                    yield number, taken
                    at[number] = end


def _window(source: RowSource, rows: Rows, size: int) -> int:
    """How many of the rows to take at once, judged by the width of a sample."""
    count = min(len(rows), _WINDOW_ROWS)
    while count > 1:
        sample = source.take(rows[np.unique(np.linspace(0, count - 1, min(count, _SAMPLE)).astype(np.int64))])
        fitting = size * sample.num_rows // max(1, sample.nbytes)
        if fitting >= count:
            break
        count = max(1, min(fitting, count // 2))
    return count


def _block_bytes(options: WriteOptions) -> int:
    size = options.batch_size_mb * _MEGABYTE
    return min(size, _AVRO_BLOCK) if options.log_block_format == "AVRO" else size


def _reduction(options: WriteOptions, rules: MergeRules | None) -> Callable[[pa.Table], pa.Table] | None:
    if not options.precombine:
        return None

    def reduce(buffered: pa.Table) -> pa.Table:
        ordering = [] if rules is None else rules.ordering.values(buffered)
        earliest = rules is not None and rules.merger.earliest_of_equals
        kept = latest_per_key(buffered.column(RECORD_KEY), ordering, earliest=earliest)
        return buffered if len(kept) == buffered.num_rows else buffered.take(pa.array(kept))

    return reduce


class _GroupLog:
    """The new log file of one group, created on storage with the first thing written."""

    def __init__(self, context: FileContext, group: GroupAppend, task: int, rules: MergeRules | None) -> None:
        self._context, self._group = context, group
        self._file = _next_log(group, context, task)
        self._stamp = FileIdentity(
            context.instant_time, group.piece.partition_path, group.piece.file_id if context.populate else None, task, context.populate
        )
        rule = rules.settled(context.schema) if rules is not None and group.settled else None
        self._form = PositionForm(group.piece.base_file, rule, in_headers=context.logs_by_writer)
        self._writer: LogFileWriter | None = None
        self._rows = 0

    def write(self, rows: pa.Table, first_row: int, positions: Positions | None) -> None:
        said, absent = self._form.of_rows(positions), self._group.absent
        rows = said.ordered(rows.drop_columns(list(absent)) if absent else rows)
        self._open().write_rows(self._stamp.stamp(rows, first_row), said, absent)
        self._rows += rows.num_rows

    def _open(self) -> LogFileWriter:
        if self._writer is None:
            context = self._context
            self._writer = LogFileWriter(
                context.storage,
                self._file.path,
                context.instant_time,
                context.avro_schema,
                context.options,
                unique_columns=context.unique_columns,
                attempt=attempt_at(context, self._file, MarkerType.APPEND),
            )
        return self._writer

    def close(self) -> HoodieWriteStat | None:
        deletes = self._group.deletes
        if len(deletes):
            self._open().write_deletes(deletes, self._group.piece.partition_path, self._form, self._group.deleted_at)
        return None if self._writer is None else self._stat(self._writer.close(), self._writer.checksum)

    def discard(self) -> None:
        if self._writer is not None:
            self._writer.discard()

    def _stat(self, size: int, checksum: str) -> HoodieWriteStat:
        """As Hudi's `HoodieAppendHandle`: names the base file and logs of the slice that this log's name says."""
        group, file = self._group, self._file
        inserts = max(0, group.inserts - (len(group.rows) - self._rows))
        base = group.piece.base_file
        return HoodieWriteStat(
            file_id=file.file_id,
            path=file.path,
            prev_commit=group.base_instant,
            partition_path=file.partition_path,
            num_writes=self._rows,
            num_deletes=len(group.deletes),
            num_update_writes=self._rows - inserts,
            num_inserts=inserts,
            total_write_bytes=size,
            file_size_in_bytes=size,
            log_version=file.version,
            log_offset=0,
            base_file=base.name if base is not None and base.instant_time == group.base_instant else "",
            log_files=(*(log.name for log in _logs(group, self._context)), file.name),
            checksum=checksum,
        )


def _logs(group: GroupAppend, context: FileContext) -> Sequence[LogFile]:
    """Logs of the slice that is appended to. Logs of the slice that a pending compaction will close are read with it, but are left out."""
    if context.logs_by_writer:
        return group.piece.log_files
    return sorted((log for log in group.piece.log_files if log.instant_time == group.base_instant), key=lambda log: log.version)


def _next_log(group: GroupAppend, context: FileContext, task: int) -> LogFile:
    version = 1 if context.logs_by_writer else max((log.version for log in _logs(group, context)), default=0) + 1
    named = context.instant_time if context.logs_by_writer else group.base_instant
    token = write_token(task, 0, secrets.randbelow(1_000_000))
    return LogFile(group.piece.partition_path, group.piece.file_id, named, version, token)
