"""Which column chunks of a base file the next version takes as they are: of row groups that lose no row, the columns that stay the same.

Encoding is most of what a rewrite costs, and of a file that a batch touches in one place, or in few columns, most stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as kinds

from lakehouse_engine.compat import cached_property
from lakehouse_engine.files.base_file import RowGroups
from lakehouse_engine.format.parquet_chunks import ChunkedFile
from lakehouse_engine.model.keys import FILE_NAME, PARTITION_PATH, RECORD_KEY
from lakehouse_engine.write.source import Rows
from lakehouse_engine.write.tasks.base_files import FileContext, form_of
from lakehouse_engine.write.tasks.dictionaries import plain
from lakehouse_engine.write.tasks.file_writer import Inherited
from lakehouse_engine.write.tasks.parquet_output import CopiedChunks

COPIED_FROM = 4 * 1024 * 1024
"""Bytes of a file: of smaller ones to encode all takes less time than to look at what is there."""

_LARGE = 32 * 1024 * 1024
"""Bytes of a row group, as they are encoded and not compressed, that is not joined with others, however few its rows are."""

_SAMPLE = 64
KEPT_META = frozenset({RECORD_KEY, PARTITION_PATH})
"""What stays the same of each changed row, being what it was found by."""


@dataclass(frozen=True)
class Copying:
    """The chunks of a base file, for the next version of its group. `joined`: whether new rows come behind those that it has."""

    groups: RowGroups
    stored: ChunkedFile
    pattern: ChunkedFile
    row_group_rows: int
    joined: bool

    @classmethod
    def of(cls, context: FileContext, groups: RowGroups, inherited: Inherited | None, *, joined: bool) -> Copying | None:
        """None for files that are small, store another schema or in another way, or of another writer. Raises as `RowGroups.chunks`."""
        if groups.source.size() < COPIED_FROM or (context.populate and (inherited is None or inherited.least is None)):
            return None
        stored = groups.chunks()
        if stored is None or groups.codecs() != {context.options.compression}:
            return None
        pattern = form_of(context).pattern()
        if pattern is None or not stored.has_schema_of(pattern):
            return None
        return cls(groups, stored, pattern, context.options.row_group_rows, joined)

    @cached_property
    def repeating(self) -> RowGroups:
        """The row groups with texts as the dictionaries that they are stored as, for what is encoded beside chunks that are copied."""
        return self.groups.with_dictionaries(self.stored.dictionaries())

    def takes(self, number: int) -> bool:
        """Whether a row group may stay one: small ones are joined with what comes behind them, so that they do not become more and more."""
        if self._is_large(number):
            return True
        alone = number == 0 or self._is_large(number - 1)
        return alone and not self.joined and number == len(self.stored.groups) - 1

    def _is_large(self, number: int) -> bool:
        group = self.stored.groups[number]
        return 2 * group.num_rows >= self.row_group_rows or group.total_bytes >= _LARGE

    def chunks(self, number: int, columns: Collection[str]) -> CopiedChunks:
        """Some columns of a row group."""
        return CopiedChunks(self.groups, number, self.stored.groups[number], frozenset(columns))

    def all_chunks(self, number: int) -> CopiedChunks:
        """All columns of a row group but the file's name."""
        return self.chunks(number, {chunk.column for chunk in self.stored.groups[number].chunks} - {FILE_NAME})


def unchanged(stored: pa.Table, given: pa.Table, places: Rows) -> list[str]:
    """The columns of `stored` for which its rows at `places` have the very values of the given ones."""
    few, every, names = pa.array(places[:_SAMPLE]), pa.array(places), set(given.column_names)
    # Arrow goes through all columns to slice a table, and to name them: with a thousand of them that is not done for each.
    sample = given.slice(0, len(few))
    exact = [field.name for field in stored.schema if field.name in names and _is_exact(field.type)]
    likely = [name for name in exact if _same(stored, sample, few, name)]
    return [name for name in likely if _same(stored, given, every, name)]


def _same(stored: pa.Table, given: pa.Table, places: pa.Array, name: str) -> bool:
    return bool(plain(stored.column(name).take(places)).equals(given.column(name)))


def _is_exact(kind: pa.DataType) -> bool:
    """Whether equal values are the same ones: numbers with a floating point have two zeros, and values that equal none."""
    if kinds.is_nested(kind):
        return all(_is_exact(kind.field(number).type) for number in range(kind.num_fields))
    return not kinds.is_floating(kind)
