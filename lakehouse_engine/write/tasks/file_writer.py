"""Writes one base file the way Hudi readers and writers need it.

The tests of this module say what the file must be, and why; in short: the five meta columns first, every column optional, decimals as
FIXED_LEN_BYTE_ARRAY and lists as `list.element` (Hudi's rewrites corrupt or fail on other forms), timestamps as INT64 micros, and in the
footer the Avro schema, the Bloom filter of the record keys and their range, which Hudi's indexes rely on. Pages, their headers and the
footer have checksums.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.files.base_file import DICTIONARY_COLUMNS, DICTIONARY_TYPE
from lakehouse_engine.files.footer import NAN_BOUNDS, SORTED_BY
from lakehouse_engine.format.bloom import BloomFilter, build_bloom_filter, filter_entries
from lakehouse_engine.format.parquet_chunks import ChunkedFile
from lakehouse_engine.model.keys import COMMIT_SEQNO, FILE_NAME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.os_errors import as_storage_errors
from lakehouse_engine.write.tasks.attempt import FileAttempt
from lakehouse_engine.write.tasks.parquet_output import AssembledParquet, CopiedChunks, ParquetForm, StreamedParquet

_META_TYPES = {name: DICTIONARY_TYPE if name in DICTIONARY_COLUMNS else pa.string() for name in META_COLUMNS}
ROW_GROUP_BYTES = 192 * 1024 * 1024
"""Bytes of rows in memory from which they become a row group, however few they are."""

BLOOM_KEY = "org.apache.hudi.bloomfilter"
BLOOM_TYPE_KEY = "hoodie_bloom_filter_type_code"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"
AVRO_SCHEMA_KEY = "parquet.avro.schema"
SORTED_BY_KEY = SORTED_BY.decode()


def file_schema(user_schema: pa.Schema) -> pa.Schema:
    """The Arrow schema in which rows are handed to the writer: meta columns (repeating ones as dictionaries), then user columns."""
    meta = [pa.field(name, _META_TYPES[name]) for name in META_COLUMNS]
    return pa.schema([*meta, *(_file_field(field) for field in user_schema)])


def _file_field(field: pa.Field) -> pa.Field:
    meta = _META_TYPES.get(field.name)
    return field.with_nullable(True).remove_metadata() if meta is None else pa.field(field.name, meta)


def constant(value: str | None, length: int) -> pa.DictionaryArray:
    """The same text `length` times, at the cost of one."""
    if value is None:
        return pa.DictionaryArray.from_arrays(pa.nulls(length, pa.int32()), pa.array([], pa.string()))
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(length, dtype=np.int32)), pa.array([value], pa.string()))


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """Values of the meta columns in a new file version. `task` numbers the file within its commit (it makes seqnos unique).

    Log records have the file group's id as `file_name`, or nothing in a table without meta columns.
    """

    instant_time: str
    partition_path: str
    file_name: str | None
    task: int
    populate: bool = True

    def stamp(self, rows: pa.Table, first_row: int) -> pa.Table:
        """New or changed `rows` (record key, partition path, user columns) with all meta columns.

        `first_row` starts the row numbers of the file's seqnos: `<instant>_<task>_<row>`, as Hudi's write handles do.
        """
        count = rows.num_rows
        if self.populate:
            prefix = f"{self.instant_time}_{self.task}_"
            numbers = pc.cast(pa.array(np.arange(first_row, first_row + count)), pa.string())
            meta = [
                constant(self.instant_time, count),
                pc.binary_join_element_wise(pa.scalar(prefix), numbers, ""),
                rows.column(RECORD_KEY),
                constant(self.partition_path, count),
            ]
        else:
            meta = [constant(None, count), pa.nulls(count, pa.string()), pa.nulls(count, pa.string()), constant(None, count)]
        user = rows.drop_columns([name for name in (RECORD_KEY, PARTITION_PATH) if name in rows.column_names])
        return pa.table([*meta, constant(self.file_name, count), *user.columns], schema=file_schema(user.schema))

    def restamp(self, rows: pa.Table) -> pa.Table:
        """Rows of an older version of the file under the new file name, otherwise unchanged. They may have some of the columns only, the
        file's name among them.
        """
        kept = rows.set_column(rows.column_names.index(FILE_NAME), FILE_NAME, constant(self.file_name, rows.num_rows))
        return pa.table(kept.columns, schema=pa.schema([_file_field(field) for field in rows.schema]))


def _utf16_bounds(keys: pa.ChunkedArray) -> tuple[str, str]:
    """Least and greatest key in Java's order (UTF-16 code units), which differs from UTF-8's above U+E000 only."""
    bounds = pc.min_max(keys)
    high = None if _is_ascii(keys) else pc.match_substring_regex(keys, "[\\x{E000}-\\x{10FFFF}]")
    if high is None or not pc.any(high).as_py():
        return str(bounds["min"]), str(bounds["max"])
    rest = pc.min_max(pc.filter(keys, pc.invert(high)))
    candidates = [*pc.unique(pc.filter(keys, high)).to_pylist(), rest["min"].as_py(), rest["max"].as_py()]
    ordered = sorted((key for key in candidates if key is not None), key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    return ordered[0], ordered[-1]


def _is_ascii(keys: pa.ChunkedArray) -> bool:
    return bool(pc.all(pc.string_is_ascii(keys)).as_py())


@dataclass(frozen=True, slots=True)
class Inherited:
    """Record keys by the replaced file's footer: Bloom filter, least and greatest key (None if not stored)."""

    bloom: BloomFilter
    least: str | None
    greatest: str | None


class BaseFileWriter:
    """One Parquet base file. `write` takes tables in `file_schema`, `copy` unchanged parts of the old file; `close` writes the footer and
    returns bytes and rows.

    `inherited` comes from the replaced version: its Bloom filter is used again while it has room for the added keys (a filter may know keys
    that are gone, but never miss one that is there). With `pattern`, that of `base_form`, chunks can be copied. `sorted_by` goes to the
    footer.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        form: ParquetForm,
        avro_schema: str,
        options: WriteOptions,
        *,
        populate: bool = True,
        inherited: Inherited | None = None,
        pattern: ChunkedFile | None = None,
        attempt: FileAttempt | None = None,
        sorted_by: str | None = None,
    ) -> None:
        self._storage, self._path, self._options, self._attempt = storage, path, options, attempt
        self._sorted_by = sorted_by
        self._form, self._pattern = form, pattern
        self._avro_schema = avro_schema
        self._populate = populate
        self._inherited = inherited
        self._output: StreamedParquet | AssembledParquet | None = None
        self._sink: pa.NativeFile | None = None
        self._buffer: list[pa.Table] = []
        self._buffered = 0
        self._buffered_bytes = 0
        self._keys: list[pa.Array] = []
        self._new_keys: list[pa.Array] = []
        self._copied_keys: list[Callable[[], pa.ChunkedArray]] = []
        self.rows = 0

    def write(self, table: pa.Table, *, new_keys: bool) -> None:
        """Add rows. `new_keys`: True if their record keys may be unknown to the inherited filter."""
        if not table.num_rows:
            return
        self.rows += table.num_rows
        if self._populate:
            chunks = table.column(RECORD_KEY).chunks
            self._keys.extend(chunks)
            if new_keys:
                self._new_keys.extend(chunks)
        most = self._options.row_group_rows
        if self._buffered + table.num_rows > most and 2 * self._buffered >= most:
            self._flush()
        self._buffer.append(table)
        self._buffered += table.num_rows
        self._buffered_bytes += table.nbytes
        if self._buffered >= most or self._buffered_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def copy(self, copied: CopiedChunks, table: pa.Table) -> None:
        """Add a row group of the old file; `table` has the columns that changed. Raises as `RowGroups.stored`."""
        if self._buffer:
            self._flush()
        self.rows += copied.group.num_rows
        if self._populate:
            self._copied_keys.append(copied.keys)
        with as_storage_errors("write", self._path, self._storage.root):
            output = self._opened()
            assert isinstance(output, AssembledParquet)
            output.copy(copied, table)

    def _flush(self) -> None:
        table = pa.concat_tables(self._buffer) if self._buffer else self._form.schema.empty_table()
        self._buffer, self._buffered, self._buffered_bytes = [], 0, 0
        with as_storage_errors("write", self._path, self._storage.root):
            self._opened().write(table)

    def _opened(self) -> StreamedParquet | AssembledParquet:
        if self._output is None:
            if self._attempt is not None:
                self._attempt.begin()
            self._sink = self._storage.open_output(self._path)
            if self._pattern is None:
                self._output = StreamedParquet(self._sink, self._form)
            else:
                self._output = AssembledParquet(self._sink, self._form, self._pattern)
        return self._output

    def close(self) -> tuple[int, int]:
        """Write the footer and make the file durable; returns its size in bytes and its rows."""
        if self._buffer or self._output is None:
            self._flush()
        assert self._output is not None
        assert self._sink is not None
        texts = self._footer()
        with as_storage_errors("write", self._path, self._storage.root):
            size = self._output.close(texts)
            self._sink.close()
        self._storage.sync(self._path)
        if self._attempt is not None:
            self._attempt.end()
        return size, self.rows

    def discard(self) -> None:
        """Close without a footer after a failure. The file is garbage that its marker names, or is removed if the write is over."""
        if self._output is not None:
            self._output.discard()
        if self._sink is not None and not self._sink.closed:
            with suppress(OSError):  # closing may fail the same way; the first failure is the one to report
                self._sink.close()
        if self._sink is not None and self._attempt is not None:
            self._attempt.give_up()

    def _footer(self) -> dict[str, str]:
        footer = {AVRO_SCHEMA_KEY: self._avro_schema, "writer.model.name": "avro", NAN_BOUNDS.decode(): "none"}
        if self._sorted_by is not None:
            footer[SORTED_BY_KEY] = self._sorted_by
        if not self._populate:
            return footer
        bloom = self._grown()
        if bloom is None:
            self._keys += [chunk for keys in self._copied_keys for chunk in keys().chunks]
            bloom = self._built(pa.chunked_array(self._keys, pa.string()))
        elif self._copied_keys:
            # Like the filter, the bounds may include keys that are gone.
            assert self._inherited is not None
            self._keys.append(pa.array([self._inherited.least, self._inherited.greatest], pa.string()))
        footer |= {BLOOM_KEY: bloom.to_base64(), BLOOM_TYPE_KEY: bloom.kind}
        keys = pa.chunked_array(self._keys, pa.string())
        if len(keys):
            footer[MIN_KEY], footer[MAX_KEY] = _utf16_bounds(keys)
        return footer

    def _grown(self) -> BloomFilter | None:
        """The old file's filter with the new keys; None if there is none, it has no room, or it lets too many other keys pass."""
        bloom = None if self._inherited is None else self._inherited.bloom
        if bloom is None or not bloom.serves(self._options.bloom_fpp):
            return None
        return bloom.with_keys(pa.chunked_array(self._new_keys, pa.string()))

    def _built(self, keys: pa.ChunkedArray) -> BloomFilter:
        options = self._options
        entries = options.bloom_entries or filter_entries(len(keys))
        return build_bloom_filter(
            keys, kind=options.bloom_type, entries=entries, fpp=options.bloom_fpp, max_entries=options.bloom_max_entries
        )


def base_form(user_schema: pa.Schema, options: WriteOptions, unique_columns: frozenset[str] = frozenset()) -> ParquetForm:
    """How base files store rows with these user columns."""
    return ParquetForm(file_schema(user_schema), options.compression, unique_columns | {RECORD_KEY, COMMIT_SEQNO})
