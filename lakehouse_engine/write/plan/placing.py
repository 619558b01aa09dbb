"""Places a write's new records: into small files, then new groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lakehouse_engine.files.footer import read_footer
from lakehouse_engine.format.file_names import bucket_file_id, new_file_id
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.record.merging.deletions import DeleteMarks
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.plan.assign import Assignment, Numbers, SizedFile, assign_inserts, average_record_size
from lakehouse_engine.write.source import Rows, RowSource
from lakehouse_engine.write.tasks.base_changes import CreateTask
from lakehouse_engine.write.tasks.base_files import FileContext
from lakehouse_engine.write.tasks.bulk import ENCODED_SHARE

SAMPLE = 1000
"""Rows that are measured to estimate the size of one."""
_MOST_MEASURED = 32
"""Base files per partition whose footers are read to fill small ones and learn the record size."""


@dataclass(frozen=True, slots=True)
class NewGroup:
    """A new file group: rows of the batch's source. `bucket` is its keys' bucket, in tables with buckets."""

    partition: str
    rows: Rows
    bucket: int | None = None

    def file_id(self, instant_time: str, task: int) -> str:
        """File id of the group in the commit of that time, if this task makes it."""
        if self.bucket is not None:
            return bucket_file_id(self.bucket, instant_time, self.partition)
        return new_file_id(instant_time, self.partition, task)


def new_group_tasks(files: FileContext, groups: Sequence[NewGroup], source: RowSource, first_task: int) -> tuple[CreateTask, ...]:
    """Tasks that make new groups, numbered from `first_task`."""
    tasks = enumerate(groups, first_task)
    return tuple(
        CreateTask(files, task, group.partition, group.file_id(files.instant_time, task), source, group.rows) for task, group in tasks
    )


@dataclass(slots=True)
class Placement:
    """Rows of the batch's source for existing base files, and for new groups."""

    to_files: list[tuple[BaseFile, Rows]] = field(default_factory=list)
    to_new: list[NewGroup] = field(default_factory=list)


def unplaced(batch: Batch, indices: Rows) -> list[NewGroup]:
    """Batch rows by partition, to be placed later."""
    chosen = np.zeros(len(batch.rows), dtype=bool)
    chosen[indices] = True
    parts = ((partition, rows[chosen[rows]]) for partition, rows in batch.rows_by_partition().items())
    return [NewGroup(partition, batch.rows[rows]) for partition, rows in parts if len(rows)]


@dataclass(frozen=True, slots=True)
class Places:
    """`bases` names a partition's base files, `open_to` the measured ones that may take new records."""

    files: FileContext
    bases: Callable[[str], Sequence[BaseFile]]
    open_to: Callable[[Sequence[SizedFile]], Sequence[SizedFile]]

    def place(self, batch: Batch, indices: Rows) -> Placement:
        """Batch row indices by partition."""
        placement = Placement()
        if len(indices):
            chosen = np.zeros(len(batch.rows), dtype=bool)
            chosen[indices] = True
            for partition, rows in batch.rows_by_partition().items():
                self._place(placement, batch, partition, rows[chosen[rows]])
        return placement

    def _place(self, placement: Placement, batch: Batch, partition: str, indices: Rows) -> None:
        if not len(indices):
            return
        assignment = self.assign(partition, indices, lambda: bytes_per_row(batch))
        placement.to_files += [(base, batch.rows[rows]) for base, rows in assignment.to_files]
        placement.to_new += [NewGroup(partition, batch.rows[rows]) for rows in assignment.to_new]

    def assign(self, partition: str, numbers: Numbers, row_size: Callable[[], float]) -> Assignment[Numbers]:
        """New records of a partition by number; `row_size` is used if no file tells the record size."""
        sized = self._sized_files(partition)
        size = average_record_size(sized, row_size)
        return assign_inserts(numbers, self.open_to(sized), size, self.files.options)

    def _sized_files(self, partition: str) -> list[SizedFile]:
        bases = sorted(self.bases(partition), key=lambda base: base.size)
        half = _MOST_MEASURED // 2
        measured = bases if len(bases) <= _MOST_MEASURED else bases[:half] + bases[-half:]
        return [self._measure(base) for base in measured]

    def _measure(self, base: BaseFile) -> SizedFile:
        footer = read_footer(self.files.storage, base)
        return SizedFile(base, footer.num_rows, max(0, base.size - len(footer.bloom or "")))


def bytes_per_row(batch: Batch) -> float:
    """Bytes that a batch row may take in a base file."""
    return encoded_size(batch.source.take(batch.rows[:SAMPLE]))


def encoded_size(sample: pa.Table) -> float:
    """Bytes that a row may take in a base file."""
    return float(sample.nbytes / max(1, sample.num_rows) * ENCODED_SHARE)


def alive(batch: Batch, indices: Rows, marks: DeleteMarks) -> Rows:
    """Rows that are not deletions: deleting an absent row does nothing."""
    names = marks.columns(list(batch.source.column_names)) if len(indices) else []
    if not names:
        return indices
    marked = marks.of(batch.source.columns(names, batch.rows[indices]))
    return np.asarray(indices[~marked], dtype=np.int64)


def living(batch: Batch, marks: DeleteMarks) -> Batch:
    """The batch without deletions."""
    return batch.part(alive(batch, np.arange(len(batch.rows), dtype=np.int64), marks))
