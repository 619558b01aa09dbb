"""Reads the rows of a group of slices, and writes them to new file groups."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa

from lakehouse_engine.files.base_file import DICTIONARY_COLUMNS, DICTIONARY_TYPE, iter_base_file
from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.format.parquet_chunks import ChunkedFile
from lakehouse_engine.model.keys import FILE_NAME
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.services.cluster.order import SORTABLE_META_COLUMNS
from lakehouse_engine.write.tasks.base_files import FileContext, Portion, encoded, next_version, write_base_file
from lakehouse_engine.write.tasks.dictionaries import without_unused

_NEW_GROUP = "null"


@dataclass(frozen=True, slots=True)
class GroupRows:
    """Rows of slices, merged with their logs. They keep all columns but the name of their file, which changes."""

    reader: SliceReader
    schema: pa.Schema
    pieces: tuple[LoggedSlice, ...]

    @property
    def columns(self) -> list[str]:
        return [*SORTABLE_META_COLUMNS, *self.schema.names]

    @property
    def form(self) -> pa.Schema:
        """Schema of the rows: meta columns that repeat are dictionaries."""
        kinds = {name: DICTIONARY_TYPE if name in DICTIONARY_COLUMNS else pa.string() for name in SORTABLE_META_COLUMNS}
        return pa.schema([*(pa.field(name, kind) for name, kind in kinds.items()), *self.schema])

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """All rows slice by slice, a row group at a time, with all columns or those named. Raises as `SliceReader.stream` and
        `iter_base_file`.
        """
        form = self.form if columns is None else pa.schema([self.form.field(name) for name in columns])
        for piece in self.pieces:
            for part in self._merged(piece, form.names):
                yield encoded(part.select(form.names)).cast(form)

    def num_base_rows(self) -> int:
        """Rows of the base files, by their footers."""
        bases = [piece.slice.base_file for piece in self.pieces]
        return sum(FOOTERS.read(self.reader.storage, base, verify=self.reader.verify).num_rows for base in bases if base is not None)

    def _merged(self, piece: LoggedSlice, columns: list[str]) -> Iterator[pa.Table]:
        base = piece.slice.base_file
        if piece.slice.log_files or base is None:
            return self.reader.stream(piece, columns)
        meta = [name for name in columns if name in SORTABLE_META_COLUMNS]
        user = [name for name in columns if name not in SORTABLE_META_COLUMNS]
        return iter_base_file(self.reader.storage, base, self.schema, columns=user, meta_columns=tuple(meta))


@dataclass(frozen=True, slots=True)
class NewFile:
    """A base file to write, number `number` of its commit."""

    context: FileContext
    partition_path: str
    file_id: str
    number: int

    def write(self, portions: Iterator[Portion], pattern: ChunkedFile | None = None) -> HoodieWriteStat | None:
        """Write the portions, which may be copied with a `pattern`. Returns None, and makes no file, if there are none."""
        first, began = next(portions, None), time.monotonic()
        if first is None:
            return None
        file = next_version(self.context, self.partition_path, self.file_id, self.number)
        written = write_base_file(self.context, file, self.number, chain([first], portions), pattern=pattern)
        took = int((time.monotonic() - began) * 1000)
        return replace(written.stat(_NEW_GROUP), runtime_stats={"totalScanTime": 0, "totalUpsertTime": 0, "totalCreateTime": took})


def portion(rows: pa.Table) -> Portion:
    """Rows in the form of `GroupRows` as a portion of a new file."""
    named = without_unused(rows).add_column(len(SORTABLE_META_COLUMNS), FILE_NAME, pa.nulls(rows.num_rows, pa.string()))
    return Portion(named, new_keys=True, inserts=rows.num_rows)
