"""Turns rows into the Parquet of a base file: Arrow encodes row group by row group, or chunks of the old file are copied in."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pat

from lakehouse_engine.errors import FormatError
from lakehouse_engine.files.base_file import DICTIONARY_TYPE, RowGroups
from lakehouse_engine.format.parquet_chunks import Chunk, ChunkAssembly, ChunkedFile, ChunkedGroup, Pieces, tail_without_bounds
from lakehouse_engine.format.parquet_seal import SealingSink, read_with_tail
from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.write.tasks.dictionaries import repeats

_MANY, _FEW = 16 * 1024, 1024
"""Values that Arrow encodes at once. Each call has a price, above all with dictionaries; Arrow checks between calls if a page is full."""
_NARROW = 64
"""Average bytes of a value up to which `_MANY` of them are encoded at once: they take less than a page."""


@dataclass(frozen=True, slots=True)
class ParquetForm:
    """How a base file stores rows of this schema. No dictionary is tried for columns in `unique`, which have no repeated values."""

    schema: pa.Schema
    compression: str
    unique: frozenset[str]

    def writer(self, sink: SealingSink, first: pa.Table, *, at_once: int = _FEW) -> pq.ParquetWriter:
        """A writer for the columns of `first`, with text plain or in dictionaries as it is there; its rows show which columns repeat.

        `at_once`: how many values Arrow encodes at once.
        """
        schema = pa.schema([_formed(self.schema.field(field.name), field.type) for field in first.schema])
        return pq.ParquetWriter(
            sink,
            schema,
            compression=parquet_codec(self.compression),
            use_dictionary=dictionary_leaves(first, self.unique) or False,
            write_statistics=_bounded_leaves(schema),
            store_schema=False,
            store_decimal_as_integer=False,
            use_compliant_nested_type=True,
            write_page_checksum=True,
            write_batch_size=at_once,
        )

    def pattern(self) -> ChunkedFile | None:
        """A file of one row of nulls; None if no chunks can be taken out of the files that Arrow writes."""
        nulls = pa.table([pa.nulls(1, field.type) for field in self.schema], schema=self.schema)
        return self._encode(nulls)[0]

    def chunks(self, rows: pa.Table) -> Iterator[tuple[Chunk, Pieces]]:
        """The encoded chunks of one row group of some columns."""
        file, pieces = self._encode(rows)
        if file is None:
            raise FormatError("the Parquet writer wrote pages without checksums; this version of pyarrow cannot be used")
        with_nan = nan_leaves(rows)
        for number, chunk in enumerate(file.groups[0].chunks):
            first = 1 + 2 * chunk.page  # the magic comes before
            yield chunk.without_bounds() if number in with_nan else chunk, pieces[first : first + len(chunk.lengths)]

    def _encode(self, rows: pa.Table) -> tuple[ChunkedFile | None, list[bytes]]:
        """A file of one row group, and the pieces in which it was written: the magic, headers and contents of pages in turn, the rest."""
        written = _Written()
        sink = SealingSink(written)
        writer = self.writer(sink, rows, at_once=_encoded_at_once(rows))
        writer.write_table(rows, row_group_size=rows.num_rows)
        writer.add_key_value_metadata(sink.hold())
        writer.close()
        sink.finish()
        metadata, tail = read_with_tail(pa.BufferReader(written.pieces[-1]), verify=False)
        return ChunkedFile.of(tail, metadata), written.pieces


@dataclass(frozen=True, slots=True)
class _Written:
    """A sink that keeps what is written, piece by piece."""

    pieces: list[bytes] = field(default_factory=list)

    def write(self, data: bytes) -> None:
        self.pieces.append(bytes(data))


@dataclass(frozen=True, slots=True)
class CopiedChunks:
    """Unchanged `columns` of a row group of the old file, the record key among them. `known` are its record keys, if they were read."""

    groups: RowGroups
    number: int
    group: ChunkedGroup
    columns: frozenset[str]
    known: pa.ChunkedArray | None = None

    def with_keys(self) -> CopiedChunks:
        """The same with its record keys, for a file that is closed before the new one is."""
        return replace(self, known=self.keys())

    def keys(self) -> pa.ChunkedArray:
        """Its record keys; reads them at this call if they are not known."""
        return self.known if self.known is not None else self.groups.read(self.number, columns=[RECORD_KEY]).column(0)

    def beside(self, encoded: Iterator[tuple[Chunk, Pieces]]) -> Iterator[tuple[Chunk, Pieces]]:
        """All chunks of the row group in order: copied ones, and for the other columns those in `encoded`."""
        for is_copied, run in itertools.groupby(self.group.chunks, lambda chunk: chunk.column in self.columns):
            chunks = list(run)
            yield from self.groups.stored(chunks) if is_copied else itertools.islice(encoded, len(chunks))


class StreamedParquet:
    """A Parquet file whose rows are encoded as they are written. The caller closes `target`."""

    def __init__(self, target: pa.NativeFile, form: ParquetForm) -> None:
        self._sink, self._form = SealingSink(target), form
        self._writer: pq.ParquetWriter | None = None
        self._groups = 0
        self._with_nan: list[tuple[int, int]] = []

    def write(self, rows: pa.Table) -> None:
        """Write one row group; none if there are no rows."""
        if self._writer is None:
            self._writer = self._form.writer(self._sink, rows)
        if rows.num_rows:
            self._writer.write_table(rows.unify_dictionaries(), row_group_size=rows.num_rows)
            self._with_nan += [(self._groups, leaf) for leaf in nan_leaves(rows)]
            self._groups += 1

    def close(self, texts: Mapping[str, str]) -> int:
        """Write the footer with these key-value metadata; returns the size of the file in bytes."""
        assert self._writer is not None
        # The seal comes last, so that texts of the table that look like one are not taken for it.
        self._writer.add_key_value_metadata({**texts, **self._sink.hold()})
        self._writer.close()
        return self._sink.finish(partial(tail_without_bounds, places=self._with_nan)) if self._with_nan else self._sink.finish()

    def discard(self) -> None:
        """Write no footer."""
        if self._writer is not None:
            # Otherwise its destructor would try to write the footer.
            self._writer.is_open = False


class AssembledParquet:
    """Like `StreamedParquet`, but encodes row groups in memory and puts them into the file with copied chunks. `pattern` is the form's."""

    def __init__(self, target: pa.NativeFile, form: ParquetForm, pattern: ChunkedFile) -> None:
        self._form, self._assembly = form, ChunkAssembly(target, pattern)

    def write(self, rows: pa.Table) -> None:
        """Write one row group; none if there are no rows."""
        if rows.num_rows:
            self._assembly.add(rows.num_rows, self._form.chunks(rows.unify_dictionaries()))

    def copy(self, copied: CopiedChunks, rows: pa.Table) -> None:
        """Write one row group; `rows` has the columns that are not copied."""
        self._assembly.add(copied.group.num_rows, copied.beside(self._form.chunks(rows.unify_dictionaries())))

    def close(self, texts: Mapping[str, str]) -> int:
        """Write the footer with these key-value metadata; returns the size of the file in bytes."""
        return self._assembly.finish(texts)

    def discard(self) -> None:
        """Does nothing: only `close` writes a footer."""


def parquet_codec(compression: str) -> str:
    """Arrow's name of a codec of `hoodie.parquet.compression.codec`."""
    return "NONE" if compression == "UNCOMPRESSED" else compression.lower().removesuffix("_raw")


def dictionary_leaves(rows: pa.Table, unique: frozenset[str]) -> list[str]:
    """Parquet leaves of the columns that repeat, judged by `rows`; columns in `unique` never do."""
    repeating = [field for field in rows.schema if field.name not in unique and repeats(rows.column(field.name))]
    return [leaf for field in repeating for leaf, _ in _leaves(field.name, _plain(field.type))]


def _bounded_leaves(schema: pa.Schema) -> list[str]:
    """Leaves that get statistics: all but floating point numbers inside of nested columns, whose bounds would leave out NaN."""
    leaves = ((column, leaf, kind) for column in schema for leaf, kind in _leaves(column.name, _plain(column.type)))
    return [leaf for column, leaf, kind in leaves if not (pat.is_floating(kind) and pat.is_nested(column.type))]


def nan_leaves(rows: pa.Table) -> list[int]:
    """Numbers of the Parquet leaves of floating point columns that have NaN."""
    found, number = [], 0
    for column in rows.schema:
        if pat.is_floating(column.type) and pc.any(pc.is_nan(rows.column(column.name))).as_py():
            found.append(number)
        number += sum(1 for _ in _leaves(column.name, _plain(column.type)))
    return found


def _leaves(name: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Paths and types of the Parquet leaves of a column."""
    if pa.types.is_struct(kind):
        for child in kind:
            yield from _leaves(f"{name}.{child.name}", child.type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{name}.key_value.key", kind.key_type)
        yield from _leaves(f"{name}.key_value.value", kind.item_type)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _leaves(f"{name}.list.element", kind.value_type)
    else:
        yield name, kind


def _formed(field: pa.Field, given: pa.DataType) -> pa.Field:
    """The field in the form of its given values; of another type it has none."""
    return field.with_type(DICTIONARY_TYPE) if given == DICTIONARY_TYPE and field.type == pa.string() else field


def _encoded_at_once(rows: pa.Table) -> int:
    return _MANY if all(column.nbytes <= _NARROW * len(column) for column in rows.columns) else _FEW


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
