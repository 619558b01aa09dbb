"""Writes one base file the way Hudi readers and writers need it.

What the file must be, and why, is in the tests of this module; in short: the five meta columns first, every column optional,
decimals as FIXED_LEN_BYTE_ARRAY and lists as `list.element` (Hudi's rewrites corrupt or fail on other forms), timestamps as INT64
micros, and in the footer the Avro schema, the Bloom filter of the record keys and their range, which Hudi's indexes rely on. Pages, their
headers and the footer have checksums.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakehouse_engine.format.bloom import BloomFilter, build_bloom_filter
from lakehouse_engine.format.parquet_seal import SealingSink
from lakehouse_engine.model.keys import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.os_errors import as_storage_errors
from lakehouse_engine.write.tasks.attempt import FileAttempt

_CONSTANT = pa.dictionary(pa.int32(), pa.string())
_META_TYPES = {COMMIT_TIME: _CONSTANT, COMMIT_SEQNO: pa.string(), RECORD_KEY: pa.string(), PARTITION_PATH: _CONSTANT, FILE_NAME: _CONSTANT}
_ROW_GROUP_BYTES = 192 * 1024 * 1024
_SAMPLE = 4096

BLOOM_KEY = "org.apache.hudi.bloomfilter"
BLOOM_TYPE_KEY = "hoodie_bloom_filter_type_code"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"
AVRO_SCHEMA_KEY = "parquet.avro.schema"


def file_schema(user_schema: pa.Schema) -> pa.Schema:
    """The Arrow schema in which rows are handed to the writer: meta columns (repeating ones as dictionaries), then user columns."""
    meta = [pa.field(name, _META_TYPES[name]) for name in META_COLUMNS]
    return pa.schema([*meta, *(field.with_nullable(True).remove_metadata() for field in user_schema)])


def constant(value: str | None, length: int) -> pa.DictionaryArray:
    """`length` times the same text, at the cost of one."""
    if value is None:
        return pa.DictionaryArray.from_arrays(pa.nulls(length, pa.int32()), pa.array([], pa.string()))
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(length, dtype=np.int32)), pa.array([value], pa.string()))


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """What the meta columns of a new file version say. `task` numbers the file within its commit (it makes seqnos unique).

    Records of logs have the file group's id for a `file_name`, or nothing in a table without meta columns.
    """

    instant_time: str
    partition_path: str
    file_name: str | None
    task: int
    populate: bool = True

    def stamp(self, rows: pa.Table, first_row: int) -> pa.Table:
        """New or changed `rows` (record key, partition path, user columns) with all meta columns.

        `first_row` numbers the rows in the file's seqnos: `<instant>_<task>_<row>`, as Hudi's write handles do.
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
        """Rows copied from an older version of the file: everything kept but the file name."""
        kept = rows.set_column(META_COLUMNS.index(FILE_NAME), FILE_NAME, constant(self.file_name, rows.num_rows))
        return pa.table(kept.columns, schema=file_schema(pa.schema([field for field in rows.schema if field.name not in META_COLUMNS])))


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


def dictionary_leaves(rows: pa.Table, unique: frozenset[str]) -> list[str]:
    """The Parquet leaves of columns that repeat themselves, as `rows` show them; columns in `unique` are known not to."""
    repeating = [field for field in rows.schema if field.name not in unique and _repeats(rows.column(field.name))]
    return [leaf for field in repeating for leaf, _ in _leaves(field.name, _plain(field.type))]


def _bounded_leaves(schema: pa.Schema) -> list[str]:
    """The leaves that have statistics: not those of floating point numbers, whose bounds leave out NaN, which for Spark is more than every
    number. It would pass over row groups that have some (parquet-mr, too, writes no bounds then).
    """
    return [leaf for field in schema for leaf, kind in _leaves(field.name, _plain(field.type)) if not pa.types.is_floating(kind)]


def parquet_codec(compression: str) -> str:
    """Arrow's name of a codec of `hoodie.parquet.compression.codec`."""
    return "NONE" if compression == "UNCOMPRESSED" else compression.lower().removesuffix("_raw")


def _repeats(column: pa.ChunkedArray) -> bool:
    """Whether a dictionary pays: few distinct values in a sample. Building one only to drop it costs a third of the write."""
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_dictionary(kind) or pa.types.is_boolean(kind):
        return True
    sample = column.slice(0, _SAMPLE)
    return bool(pc.count_distinct(sample).as_py() * 2 <= len(sample)) or len(sample) < 64


def _utf16_bounds(keys: pa.ChunkedArray) -> tuple[str, str]:
    """The least and greatest of some keys in Java's order (UTF-16 code units), which differs from UTF-8's above U+E000 only."""
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


class BaseFileWriter:
    """One Parquet base file. `write` takes tables in `file_schema`; `close` writes the footer and returns bytes and rows.

    `inherited` is the Bloom filter of the version that this file replaces: while no key is added that it has no room for, it
    serves again (a filter may know keys that are gone, never miss one that is there).
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        user_schema: pa.Schema,
        avro_schema: str,
        options: WriteOptions,
        *,
        unique_columns: frozenset[str] = frozenset(),
        populate: bool = True,
        inherited: BloomFilter | None = None,
        attempt: FileAttempt | None = None,
    ) -> None:
        self._storage, self._path, self._options, self._attempt = storage, path, options, attempt
        self._schema = file_schema(user_schema)
        self._avro_schema = avro_schema
        self._unique = unique_columns | {RECORD_KEY, COMMIT_SEQNO}
        self._populate = populate
        self._inherited = inherited
        self._writer: pq.ParquetWriter | None = None
        self._sink: pa.NativeFile | None = None
        self._sealing: SealingSink | None = None
        self._buffer: list[pa.Table] = []
        self._buffered = 0
        self._buffered_bytes = 0
        self._keys: list[pa.Array] = []
        self._new_keys: list[pa.Array] = []
        self.rows = 0

    def write(self, table: pa.Table, *, new_keys: bool) -> None:
        """Add rows. `new_keys`: whether their record keys may be unknown to the inherited filter."""
        if not table.num_rows:
            return
        self.rows += table.num_rows
        if self._populate:
            chunks = table.column(RECORD_KEY).chunks
            self._keys.extend(chunks)
            if new_keys:
                self._new_keys.extend(chunks)
        self._buffer.append(table)
        self._buffered += table.num_rows
        self._buffered_bytes += table.nbytes
        if self._buffered >= self._options.row_group_rows or self._buffered_bytes >= _ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        table = pa.concat_tables(self._buffer) if self._buffer else self._schema.empty_table()
        self._buffer, self._buffered, self._buffered_bytes = [], 0, 0
        with as_storage_errors("write", self._path, self._storage.root):
            if self._writer is None:
                self._open(table)
            assert self._writer is not None
            if table.num_rows:
                self._writer.write_table(table.unify_dictionaries(), row_group_size=table.num_rows)

    def _open(self, first: pa.Table) -> None:
        dictionary = dictionary_leaves(first, self._unique)
        if self._attempt is not None:
            self._attempt.begin()
        self._sink = self._storage.open_output(self._path)
        self._sealing = SealingSink(self._sink)
        self._writer = pq.ParquetWriter(
            self._sealing,
            self._schema,
            compression=parquet_codec(self._options.compression),
            use_dictionary=dictionary or False,
            write_statistics=_bounded_leaves(self._schema),
            store_schema=False,
            store_decimal_as_integer=False,
            use_compliant_nested_type=True,
            write_page_checksum=True,
        )

    def close(self) -> tuple[int, int]:
        """Write the footer and make the file durable; its size in bytes and its rows."""
        if self._buffer or self._writer is None:
            self._flush()
        assert self._writer is not None
        assert self._sink is not None
        assert self._sealing is not None
        # The seal comes last, so that it is told from texts of the table that look like one.
        self._writer.add_key_value_metadata(self._footer() | self._sealing.hold())
        with as_storage_errors("write", self._path, self._storage.root):
            self._writer.close()
            size = self._sealing.finish()
            self._sink.close()
        self._storage.sync(self._path)
        if self._attempt is not None:
            self._attempt.end()
        return size, self.rows

    def discard(self) -> None:
        """Close without a footer after a failure; the file is garbage, which its marker names, or which is gone if the write is over."""
        if self._writer is not None:
            # Or its destructor would try to write the footer.
            self._writer.is_open = False
        if self._sink is not None and not self._sink.closed:
            with suppress(OSError):  # the failure that led here may come again, and is the one to be told
                self._sink.close()
        if self._sink is not None and self._attempt is not None:
            self._attempt.give_up()

    def _footer(self) -> dict[str, str]:
        footer = {AVRO_SCHEMA_KEY: self._avro_schema, "writer.model.name": "avro"}
        if not self._populate:
            return footer
        keys = pa.chunked_array(self._keys, pa.string())
        bloom = self._bloom(keys)
        footer |= {BLOOM_KEY: bloom.to_base64(), BLOOM_TYPE_KEY: bloom.kind}
        if len(keys):
            footer[MIN_KEY], footer[MAX_KEY] = _utf16_bounds(keys)
        return footer

    def _bloom(self, keys: pa.ChunkedArray) -> BloomFilter:
        if self._inherited is not None:
            if not self._new_keys:
                return self._inherited
            grown = self._inherited.with_keys(pa.chunked_array(self._new_keys, pa.string()))
            if grown is not None:
                return grown
        options = self._options
        entries = max(1, len(keys)) if options.bloom_type == "SIMPLE" else options.bloom_entries
        return build_bloom_filter(
            keys, kind=options.bloom_type, entries=entries, fpp=options.bloom_fpp, max_entries=options.bloom_max_entries
        )


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
