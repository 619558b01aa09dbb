"""Streams rows into new base files of many partitions at once: the path of bulk_insert, which looks nothing up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.format.file_names import MarkerType, new_file_id
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import PARTITION_PATH
from lakehouse_engine.write.source import RowSource
from lakehouse_engine.write.tasks.base_files import FileContext, WriteStatus, created_stat, identity, next_version, open_writer
from lakehouse_engine.write.tasks.file_writer import BaseFileWriter

ENCODED_SHARE = 1 / 3
"""Typical size of Arrow data in a Parquet file; the true size is known only after a row group is written."""

_STRIDE = 1_000_000
"""Room for the parts of a batch in the numbers of a commit's files."""

WORTH_WRITING = 100_000
"""Rows at a time: per-batch costs of keys and meta columns add up over small ones."""

_MOST_OPEN = 32
"""Files open at once; a batch that needs more closes the least recently used one."""


@dataclass(slots=True)
class _OpenFile:
    file: BaseFile
    writer: BaseFileWriter
    task: int
    rows: int = 0
    arrow_bytes: int = 0


@dataclass(slots=True)
class BulkWriter:
    """Writes keyed rows to new file groups, one open file a partition, rolling at the target size.

    Its files have the numbers `first_task`, `first_task + stride`, ... within the commit, so that seqnos of parallel writers differ.
    """

    context: FileContext
    first_task: int
    stride: int
    _open: dict[str, _OpenFile] = field(default_factory=dict)
    _done: list[WriteStatus] = field(default_factory=list)
    _files: int = 0

    def write(self, rows: pa.Table) -> None:
        """Add rows with record key, partition path and user columns."""
        for partition, part in split_by_partition(rows):
            self._write_partition(partition, part)

    def _write_partition(self, partition: str, rows: pa.Table) -> None:
        step = self.context.options.row_group_rows
        for start in range(0, rows.num_rows, step):
            part = rows.slice(start, step)
            opened = self._file(partition)
            opened.writer.write(identity(self.context, opened.file, opened.task).stamp(part, opened.rows), new_keys=True)
            opened.rows += part.num_rows
            opened.arrow_bytes += part.nbytes
            if opened.arrow_bytes * ENCODED_SHARE >= self.context.options.max_file_size:
                self._finish(partition)

    def _file(self, partition: str) -> _OpenFile:
        opened = self._open.pop(partition, None)
        if opened is None:
            while len(self._open) >= _MOST_OPEN:
                self._finish(next(iter(self._open)))
            task = self.first_task + self._files * self.stride
            self._files += 1
            file = next_version(self.context, partition, new_file_id(self.context.instant_time, partition, task), task)
            opened = _OpenFile(file, open_writer(self.context, file, MarkerType.CREATE), task)
        self._open[partition] = opened
        return opened

    def _finish(self, partition: str) -> None:
        opened = self._open.pop(partition)
        try:
            size, rows = opened.writer.close()
        except BaseException:
            opened.writer.discard()
            raise
        self._done.append(WriteStatus(created_stat(opened.file, size, rows)))

    def close(self) -> list[WriteStatus]:
        for partition in list(self._open):
            self._finish(partition)
        return self._done

    def discard(self) -> None:
        for opened in self._open.values():
            opened.writer.discard()
        self._open.clear()


@dataclass(frozen=True, slots=True)
class StreamTask:
    """Write all rows of a part of a batch to new file groups."""

    context: FileContext
    number: int
    source: RowSource


def stream_rows(task: StreamTask) -> list[WriteStatus]:
    """The rows in tables of limited length."""
    starts = range(0, task.source.num_rows, WORTH_WRITING)
    return write_tables(task.context, task.number, (task.source.slice(start, WORTH_WRITING) for start in starts))


def write_tables(context: FileContext, number: int, tables: Iterable[pa.Table]) -> list[WriteStatus]:
    """Write part `number` of a batch, whose keyed rows come table by table, to new file groups."""
    writer = BulkWriter(context, number, _STRIDE)
    try:
        for rows in tables:
            writer.write(rows)
        return writer.close()
    except BaseException:
        writer.discard()
        raise


def split_by_partition(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Rows of each partition path, in order of first appearance; rows keep their order."""
    if not rows.num_rows:
        return
    paths = rows.column(PARTITION_PATH).combine_chunks()
    encoded = paths if pa.types.is_dictionary(paths.type) else pc.dictionary_encode(paths)
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    names = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    if len(codes) and (codes == codes[0]).all():
        yield names[codes[0]], rows
        return
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    cuts = np.flatnonzero(np.diff(ordered)) + 1
    for piece in np.split(order, cuts):
        yield names[codes[piece[0]]], rows.take(pa.array(piece))
