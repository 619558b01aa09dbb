"""Reads a base file as Arrow, in the table's columns.

Snapshot reads, incremental reads, the key scans of an index and the task that merges into a file all read through here, so that they agree
on what a stored column is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakehouse_engine.errors import (
    CorruptFileError,
    FileNameError,
    FormatError,
    MissingFileError,
    SchemaIncompatibleError,
    StoredFileNotFoundError,
    UnsupportedTableError,
)
from lakehouse_engine.files.projection import convert, match_name
from lakehouse_engine.format.file_names import is_log_file_name, parse_base_file
from lakehouse_engine.format.parquet_chunks import Chunk, ChunkedFile, Pieces
from lakehouse_engine.format.parquet_seal import SMALL, check_pages, read_metadata, read_with_tail
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import COMMIT_TIME, FILE_NAME, META_COLUMNS, PARTITION_PATH
from lakehouse_engine.record.types import canonical_schema
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import in_object_store

_AT_ONCE = 8 * 1024 * 1024
"""Bytes read at a time when a whole file is checked."""

DICTIONARY_COLUMNS = (COMMIT_TIME, PARTITION_PATH, FILE_NAME)
"""Meta columns with few values per file. Reading and writing them as dictionaries costs a quarter less than as plain text."""

DICTIONARY_TYPE = pa.dictionary(pa.int32(), pa.string())

MetaColumns = bool | Sequence[str]


def projected_schema(schema: pa.Schema, columns: Sequence[str] | None = None, meta_columns: MetaColumns = False) -> pa.Schema:
    """Schema that the readers below return: the requested meta columns, then `columns` in the given order.

    `schema` holds the table's user columns; `columns=None` means all of them, and a list may also name single meta columns. `meta_columns`
    is True for all five, False for only those that `columns` names, or a list of names. Names match without regard to case, and come out as
    the table spells them. Raises `SchemaIncompatibleError` for a column that the table does not have.
    """
    named = META_COLUMNS if meta_columns is True else tuple(meta_columns or ())
    picked: dict[str, pa.Field] = {name: _meta_field(name) for name in named}
    names = schema.names
    for name in names if columns is None else columns:
        if name in META_COLUMNS:
            picked.setdefault(name, _meta_field(name))
            continue
        index = match_name(names, name)
        if index is None:
            raise SchemaIncompatibleError(f"the table has no column {name!r}; it has {', '.join(names)}", column=name)
        picked.setdefault(names[index], schema.field(index))
    return pa.schema(list(picked.values()))


def _meta_field(name: str) -> pa.Field:
    if name not in META_COLUMNS:
        raise SchemaIncompatibleError(f"{name!r} is no meta column; they are {', '.join(META_COLUMNS)}", column=name)
    return pa.field(name, DICTIONARY_TYPE if name in DICTIONARY_COLUMNS else pa.string())


def read_base_file(
    storage: Storage,
    base: BaseFile | str,
    schema: pa.Schema | None,
    *,
    columns: Sequence[str] | None = None,
    meta_columns: MetaColumns = False,
    filters: pc.Expression | None = None,
    verify: bool = True,
) -> pa.Table:
    """All rows of a base file, in the schema of `projected_schema`. `base` may be its path relative to the table.

    `schema` is the table's, in canonical types and without meta columns; None takes the file's own. A column that the file lacks is null;
    stored types widen to the table's. `filters` keeps the rows for which an expression over the returned columns is true. Without `verify`,
    no checksum is checked. Raises `MissingFileError` naming the instant that wrote the file, `CorruptFileError` if the file fails a
    checksum or is not Parquet, and `SchemaIncompatibleError` if a stored type does not widen.
    """
    with opened_groups(storage, base, schema, columns=columns, meta_columns=meta_columns, verify=verify) as groups:
        return concat([groups.read(number, filters) for number in range(groups.file.num_row_groups)], groups.wanted)


def iter_base_file(
    storage: Storage,
    base: BaseFile | str,
    schema: pa.Schema | None,
    *,
    columns: Sequence[str] | None = None,
    meta_columns: MetaColumns = False,
    filters: pc.Expression | None = None,
    row_groups: Sequence[int] | None = None,
    verify: bool = True,
) -> Iterator[pa.Table]:
    """Like `read_base_file`, but yields one table for each row group, or for each of the given numbers, in that order.

    Does not open the file if the list of numbers is empty.
    """
    if row_groups is not None and not row_groups:
        return
    with opened_groups(storage, base, schema, columns=columns, meta_columns=meta_columns, verify=verify) as groups:
        for number in range(groups.file.num_row_groups) if row_groups is None else row_groups:
            yield groups.read(number, filters)


def first_rows(
    storage: Storage, base: BaseFile | str, schema: pa.Schema, count: int, *, meta_columns: MetaColumns = False
) -> pa.Table:
    """Like `read_base_file`, for the first `count` rows only; reads about one page per column."""
    with opened_groups(storage, base, schema, meta_columns=meta_columns) as groups:
        names = [name for name in groups.sources if name is not None]
        with damage(groups.path):
            batch = next(groups.file.iter_batches(count, columns=names), None)
        if batch is None or not batch.num_rows:
            return groups.wanted.empty_table()
        return project(pa.Table.from_batches([batch]), groups.wanted, groups.sources, groups.path)


def concat(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """The tables, all with the schema `schema`, concatenated; keeps the row count even without columns."""
    if not tables:
        return schema.empty_table()
    if not schema.names:
        # Without columns, `concat_tables` loses the number of rows.
        return pa.table({"": pa.nulls(sum(table.num_rows for table in tables))}).select([])
    return pa.concat_tables(tables)


def stored_schema(stored: pa.Schema) -> pa.Schema:
    """The user columns of a base file in canonical types. Raises `UnsupportedTypeError` for one that Hudi cannot hold."""
    user = [field for field in stored if field.name not in META_COLUMNS]
    return canonical_schema(pa.schema(user), allow_timestamp_ntz=True)


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Row groups of an open base file, read one by one in the schema `wanted`.

    `sources[i]` is the stored name of its column i, None if the file lacks it. `tail` holds the file's bytes from the footer on.
    """

    file: pq.ParquetFile
    path: str
    wanted: pa.Schema
    sources: tuple[str | None, ...]
    source: pa.NativeFile
    tail: bytes

    def num_rows(self, number: int) -> int:
        return int(self.file.metadata.row_group(number).num_rows)

    def codecs(self) -> set[str]:
        """Compression codecs of the column chunks, as Parquet names them."""
        metadata = self.file.metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        return {group.column(number).compression for group in groups for number in range(group.num_columns)}

    def read(self, number: int, filters: pc.Expression | None = None, *, columns: Collection[str] | None = None) -> pa.Table:
        """Rows of one row group, with all columns or those named. Raises as `read_base_file`."""
        both = zip(self.wanted, self.sources, strict=True)
        kept = [(field, name) for field, name in both if columns is None or field.name in columns]
        names = [name for _, name in kept]
        with damage(self.path):
            raw = self.file.read_row_group(number, columns=[name for name in names if name is not None])
            # Arrow skips a page whose kind it does not know, without an error if all columns read are equally short.
            if raw.num_columns and raw.num_rows != self.num_rows(number):
                raise FormatError(f"row group {number} has {raw.num_rows} rows, and its footer says {self.num_rows(number)}")
        table = project(raw, pa.schema([field for field, _ in kept]), names, self.path)
        return table if filters is None else table.filter(filters)

    def with_dictionaries(self, names: Collection[str]) -> RowGroups:
        """The same row groups, with the text columns among `names` as dictionaries shared by the whole file: five times as fast."""
        pairs = [pair for pair in zip(self.wanted, self.sources, strict=True) if pair[1] in names and pair[0].type == pa.string()]
        if not pairs:
            return self
        texts = {field.name for field, _ in pairs}
        wanted = pa.schema([field.with_type(DICTIONARY_TYPE) if field.name in texts else field for field in self.wanted])
        stored = [str(source) for _, source in pairs]
        return replace(self, file=_file(self.source, self.file.metadata, [*DICTIONARY_COLUMNS, *stored], True), wanted=wanted)

    def chunks(self) -> ChunkedFile | None:
        """Column chunks of the file; None if they cannot be copied as they are."""
        with damage(self.path):
            return ChunkedFile.of(self.tail, self.file.metadata)

    def stored(self, chunks: Sequence[Chunk]) -> Iterator[tuple[Chunk, Pieces]]:
        """Adjacent chunks, read in one go; each comes with its bytes, headers and contents alternating. Raises `CorruptFileError` if a page
        fails its checksum.
        """
        start, end = chunks[0].start, chunks[-1].start + chunks[-1].length
        with damage(self.path):
            data = memoryview(self.source.read_at(end - start, start))
            for chunk in chunks:
                yield chunk, chunk.checked(data[chunk.start - start : chunk.start - start + chunk.length])


@contextmanager
def opened_groups(
    storage: Storage,
    base: BaseFile | str,
    schema: pa.Schema | None,
    *,
    columns: Sequence[str] | None = None,
    meta_columns: MetaColumns = False,
    verify: bool = True,
    whole: bool = False,
) -> Iterator[RowGroups]:
    """Open a base file to read its row groups in the columns that `read_base_file` would give. Raises as `read_base_file`.

    Set `whole` to build another file from it: an object store then delivers it in one request, so that all page headers are checked.
    """
    path = base if isinstance(base, str) else base.path
    listed = -1 if isinstance(base, str) else base.size
    with _opened(storage, path, listed) as stored_at:
        at_once = whole and in_object_store(storage)
        source = pa.BufferReader(stored_at.read_at(stored_at.size(), 0)) if at_once else stored_at
        file, tail = _parquet(source, path, DICTIONARY_COLUMNS, verify, at_once or _has_cheap_pieces(storage, source))
        stored = file.schema_arrow
        table = stored_schema(stored) if schema is None else schema
        wanted = projected_schema(table, columns, meta_columns)
        # Arrow builds the list of names again at each access.
        names, others = stored.names, table.names
        indices = [match_name(names, field.name, path, others) for field in wanted]
        yield RowGroups(file, path, wanted, tuple(None if index is None else names[index] for index in indices), source, tail)


@contextmanager
def open_base_file(
    storage: Storage, path: str, *, dictionary: Sequence[str] = (), verify: bool = True, listed: int = -1
) -> Iterator[pq.ParquetFile]:
    """Open a base file as Parquet file, to read rows; `dictionary` names text columns to read as dictionaries, if present.

    Old INT96 timestamps come as microseconds. `verify` checks the footer and page headers, if the file has checksums of them, and each page
    that is read. For large files in an object store, which has checksums of its own, it skips the page headers: each would cost a request.
    `listed` is the file's size in the listing (-1: unknown). Raises as `read_base_file`.
    """
    with _opened(storage, path, listed) as source:
        yield _parquet(source, path, dictionary, verify, _has_cheap_pieces(storage, source))[0]


def _parquet(
    source: pa.NativeFile, path: str, dictionary: Sequence[str], verify: bool, headers: bool
) -> tuple[pq.ParquetFile, bytes]:
    """The open file and its bytes from the footer on; `headers` says whether to check the page headers."""
    with damage(path):
        metadata, tail = read_with_tail(source, verify=verify)
        if verify and headers:
            check_pages(source, metadata)
        return _file(source, metadata, dictionary, verify), tail


def _file(source: pa.NativeFile, metadata: pq.FileMetaData, dictionary: Sequence[str], verify: bool) -> pq.ParquetFile:
    names = set(metadata.schema.names)
    present = [name for name in dictionary if name in names]
    return pq.ParquetFile(
        source, metadata=metadata, read_dictionary=present, coerce_int96_timestamp_unit="us", page_checksum_verification=verify
    )


def _has_cheap_pieces(storage: Storage, source: pa.NativeFile) -> bool:
    """True if reading pieces of the file costs no request, or only one."""
    return not in_object_store(storage) or bool(source.size() <= SMALL)


def base_file_metadata(storage: Storage, path: str, *, listed: int = -1, verify: bool = True) -> pq.FileMetaData:
    """Footer of a base file, checked (with `verify`) if it has a checksum; no page is read. `listed` as in `open_base_file`, raises as
    `read_base_file`.
    """
    with _opened(storage, path, listed) as source, damage(path):
        return read_metadata(source, verify=verify)


def check_headers(storage: Storage, path: str) -> pq.FileMetaData:
    """Check the footer and page headers of a base file, as `open_base_file` does; returns the footer. Raises as `read_base_file`."""
    with _opened(storage, path) as source, damage(path):
        metadata = read_metadata(source)
        if _has_cheap_pieces(storage, source):
            check_pages(source, metadata)
        return metadata


def check_base_file(storage: Storage, path: str) -> pq.FileMetaData:
    """Read a base file to its end and check everything that has a checksum; returns the footer. Raises as `read_base_file`."""
    if in_object_store(storage):
        with _opened(storage, path) as source, damage(path):
            check_pages(source, read_metadata(source), window=_AT_ONCE)
    with open_base_file(storage, path) as file:
        for number in range(file.num_row_groups):
            with damage(path):
                for batch in file.iter_batches(row_groups=[number]):
                    batch.validate(full=True)
        return file.metadata


@contextmanager
def _opened(storage: Storage, path: str, listed: int = -1) -> Iterator[pa.NativeFile]:
    if not path.endswith(".parquet"):
        raise UnsupportedTableError("only Parquet base files can be read; copy the rows with Hudi into a table that has such", path=path)
    try:
        source = storage.open_input(path)
    except StoredFileNotFoundError as error:
        raise missing_file(path) from error
    with source:
        if listed >= 0:
            check_size(path, source.size(), listed)
        yield source


def check_size(path: str, size: int, listed: int) -> None:
    """Raise `CorruptFileError` if the size differs from the one listed, perhaps long ago: another file has replaced the listed one."""
    if size != listed:
        raise CorruptFileError(
            f"the base file {path!r} has {size} bytes, and it had {listed} when its directory was listed: base files never change, so"
            " something that does not keep the timeline wrote it; restore the file from a backup, or restore the table to a savepoint",
            path=path,
        )


def missing_file(
    path: str, reason: str = "a clean deleted it, or something that does not keep the timeline did", *, instant: str | None = None
) -> MissingFileError:
    """Error for a missing file of a live slice; names the instant that wrote it, given by `instant` or the file's name."""
    folder, _, name = path.rpartition("/")
    kind = "log" if is_log_file_name(name) else "base"
    try:
        instant = instant or parse_base_file(folder, name).instant_time
    except FileNameError:
        instant = None
    wrote = f" (written by instant {instant})" if instant else ""
    return MissingFileError(f"the {kind} file {path!r}{wrote} is not there: {reason}", path=path, instant=instant)


@contextmanager
def damage(path: str) -> Iterator[None]:
    """Convert errors that show that the base file at `path` is damaged to `CorruptFileError`."""
    try:
        yield
    except (pa.ArrowException, OSError, FormatError) as error:
        reason = error.message if isinstance(error, FormatError) else f"it does not parse as Parquet: {error}"
        raise CorruptFileError(
            f"the base file {path!r} is damaged: {reason}; restore the file from a backup, or restore the table to a savepoint", path=path
        ) from error


def project(raw: pa.Table, wanted: pa.Schema, sources: Sequence[str | None], path: str) -> pa.Table:
    """Stored rows in the columns of `wanted`; `sources[i]` is the stored name of column i, None if it is all null.

    Raises `SchemaIncompatibleError` naming the column and `path` if a stored type does not widen to the wanted one.
    """
    if not wanted.names:
        return raw.select([])
    columns = []
    for field, source in zip(wanted, sources, strict=True):
        if source is None:
            columns.append(pa.chunked_array([pa.nulls(raw.num_rows, field.type)]))
            continue
        try:
            columns.append(_typed(raw.column(source), field))
        except SchemaIncompatibleError as error:
            raise SchemaIncompatibleError(error.message, **{**error.context, "path": path}) from error
    return pa.Table.from_arrays(columns, schema=wanted)


def _typed(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if field.type != DICTIONARY_TYPE:
        return convert(column, field.type, field.name)
    if column.type == DICTIONARY_TYPE:
        return column
    return convert(column, pa.string(), field.name).dictionary_encode()
