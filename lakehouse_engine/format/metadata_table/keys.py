"""Keys of metadata records, by partition of the metadata table (hudi-format 9.2; Hudi `HoodieMetadataPayload`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.format.metadata_table.hashing import file_hash, name_hash

ALL_PARTITIONS = "__all_partitions__"
"""Key of the record in `files` that names the table's partitions."""
_NON_PARTITIONED = "."
_EXPRESSION_PREFIX = "__partition_stat__"
_NULL_VALUE = "\0"
_SEPARATOR = "$"


def partition_identifier(partition_path: str) -> str:
    """Name of a partition in `files` and in keys: its path, or a dot for the only one of a table without partitions."""
    return partition_path or _NON_PARTITIONED


def partition_path_of(identifier: str) -> str:
    """Partition path that an identifier in records stands for; empty for a table without partitions."""
    return "" if identifier == _NON_PARTITIONED else identifier


def column_stats_keys(columns: pa.Array, partitions: pa.Array, files: pa.Array) -> pa.Array:
    """Keys of column statistics of files: column (`string`), partition path and bare file name of each."""
    parts = (_hashed(columns, name_hash), _hashed(_identifiers(partitions), name_hash), _hashed(files, file_hash))
    return _joined(*parts)


def column_prefix(column: str, partition_path: str | None = None) -> bytes:
    """Common prefix of all keys of a column's statistics; with `partition_path`, of those of that partition's files."""
    return name_hash(column) + (b"" if partition_path is None else name_hash(partition_identifier(partition_path)))


def partition_stats_keys(columns: pa.Array, partitions: pa.Array) -> pa.Array:
    """Keys of column statistics of whole partitions."""
    return _joined(_hashed(columns, name_hash), _hashed(_identifiers(partitions), name_hash))


def expression_partition_stats_keys(columns: pa.Array, partitions: pa.Array) -> pa.Array:
    """Keys of statistics of an expression on a column in whole partitions, in the partition of its index."""
    middle = pa.array([name_hash(_EXPRESSION_PREFIX)], pa.binary()).take(pa.array([0] * len(columns), pa.int64()))
    return _joined(_hashed(columns, name_hash), middle, _hashed(_identifiers(partitions), name_hash))


def expression_partition_prefix(column: str) -> bytes:
    """Common prefix of the keys of `expression_partition_stats_keys` of a column."""
    return name_hash(column) + name_hash(_EXPRESSION_PREFIX)


def bloom_filter_keys(partitions: pa.Array, files: pa.Array) -> pa.Array:
    """Keys of Bloom filters of files: partition path and bare name of each."""
    return _joined(_hashed(_identifiers(partitions), name_hash), _hashed(files, file_hash))


def secondary_keys(values: pa.Array, record_keys: pa.Array) -> pa.Array:
    """Keys of a secondary index: the escaped value of each row as text (the NUL character for null), a dollar, its escaped record key."""
    keys = pc.binary_join_element_wise(_secondary(values), _escaped(record_keys), _SEPARATOR)
    return keys.cast(pa.binary())


def secondary_prefix(value: str | None) -> bytes:
    """Common prefix of the keys of all rows with this value. They are all in one file group, that of the prefix's hash (V2)."""
    escaped: str = _secondary(pa.array([value], pa.string()))[0].as_py()
    return (escaped + _SEPARATOR).encode("utf-8")


def secondary_routes(keys: pa.Array) -> pa.Array:
    """The part of each key of a secondary index (`binary`) that is hashed to its file group in version V2: `secondary_prefix`."""
    return pc.extract_regex(keys.cast(pa.string()), r"(?s)^(?P<prefix>(?:[^\\$]|\\.)*\$)").field("prefix")


def split_secondary_keys(keys: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Values (null where the row's value is) and record keys in keys of a secondary index (`binary`)."""
    pattern = r"(?s)^(?P<value>(?:[^\\$]|\\.)*)\$(?P<key>.*)$"
    parts = pc.extract_regex(keys.cast(pa.string()), pattern)
    value, key = (pc.struct_field(parts, name) for name in ("value", "key"))
    is_null = pc.equal(value, _NULL_VALUE)
    return pc.if_else(is_null, pa.scalar(None, pa.string()), _unescaped(value)), _unescaped(key)


def _secondary(values: pa.Array) -> pa.Array:
    return pc.fill_null(_escaped(values), _NULL_VALUE)


def _escaped(values: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(values, r"([\\$\x00])", r"\\\1")


def _unescaped(values: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(values, r"\\([\\$\x00])", r"\1")


def _identifiers(partitions: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(partitions, ""), _NON_PARTITIONED, partitions)


def _hashed(names: pa.Array, hashed: Callable[[str], bytes]) -> pa.Array:
    """The hash of each name, computed once for each distinct name."""
    coded = names.dictionary_encode()
    distinct: Iterable[str] = coded.dictionary.to_pylist()
    return pa.array([hashed(name) for name in distinct], pa.binary()).take(coded.indices)


def _joined(*parts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))
