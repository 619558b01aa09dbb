"""Finds column chunks of a base file that its next version copies: unchanged columns of row groups that lose no row.

Encoding is most of the cost of a rewrite, and a batch that touches one place or few columns of a file leaves most of it as it is.
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
"""Bytes of a file: smaller ones are encoded faster than they are examined."""

_LARGE = 32 * 1024 * 1024
"""Encoded, uncompressed bytes from which a row group is not joined with others, however few its rows are."""

_SAMPLE = 64
KEPT_META = frozenset({RECORD_KEY, PARTITION_PATH})
"""Columns by which a changed row was found, so that they stay the same."""


@dataclass(frozen=True)
class Copying:
    """Chunks of a base file for the next version of its group. `joined`: True if new rows follow its own."""

    groups: RowGroups
    stored: ChunkedFile
    pattern: ChunkedFile
    row_group_rows: int
    joined: bool

    @staticmethod
    def may(size: int) -> bool:
        """True if chunks of a file of so many bytes may be worth copying."""
        return size >= COPIED_FROM

    @classmethod
    def of(cls, context: FileContext, groups: RowGroups, inherited: Inherited | None, *, joined: bool) -> Copying | None:
        """None if the file is small, by another writer, lacks bounds, or has another schema or encoding. Raises as `RowGroups.chunks`."""
        if not cls.may(groups.source.size()) or (context.populate and (inherited is None or inherited.least is None)):
            return None
        stored = groups.chunks()
        if stored is None or stored.lacks_bounds or groups.codecs() != {context.options.compression}:
            return None
        pattern = form_of(context).pattern()
        if pattern is None or not stored.has_schema_of(pattern):
            return None
        return cls(groups, stored, pattern, context.options.row_group_rows, joined)

    @cached_property
    def repeating(self) -> RowGroups:
        """The row groups, with text in its stored dictionaries, for what is encoded beside copied chunks."""
        return self.groups.with_dictionaries(self.stored.dictionaries())

    def takes(self, number: int) -> bool:
        """True if the row group may stay on its own. Small ones are joined with what follows, so that their number does not grow."""
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
        """All columns of a row group except the file's name."""
        return self.chunks(number, {chunk.column for chunk in self.stored.groups[number].chunks} - {FILE_NAME})


def unchanged(stored: pa.Table, given: pa.Table, places: Rows) -> list[str]:
    """Columns of `stored` whose rows at `places` have exactly the given values."""
    few, every, names = pa.array(places[:_SAMPLE]), pa.array(places), set(given.column_names)
    # Arrow goes through all columns to slice a table or name them; with a thousand columns, once is enough.
    sample = given.slice(0, len(few))
    exact = [field.name for field in stored.schema if field.name in names and _is_exact(field.type)]
    likely = [name for name in exact if _same(stored, sample, few, name)]
    return [name for name in likely if _same(stored, given, every, name)]


def _same(stored: pa.Table, given: pa.Table, places: pa.Array, name: str) -> bool:
    return bool(plain(stored.column(name).take(places)).equals(given.column(name)))


def _is_exact(kind: pa.DataType) -> bool:
    """True if equal values are identical: floating point numbers have two zeros, and NaN equals nothing."""
    if kinds.is_nested(kind):
        return all(_is_exact(kind.field(number).type) for number in range(kind.num_fields))
    return not kinds.is_floating(kind)
