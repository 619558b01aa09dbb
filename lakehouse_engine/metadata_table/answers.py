"""Queries of a metadata table: files of partitions, statistics of columns, Bloom filters, and record locations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.format.bloom import BloomFilter
from lakehouse_engine.format.metadata_table.files import file_entries
from lakehouse_engine.format.metadata_table.keys import (
    ALL_PARTITIONS,
    bloom_filter_keys,
    column_prefix,
    column_stats_keys,
    expression_partition_stats_keys,
    partition_identifier,
    partition_path_of,
    partition_stats_keys,
    secondary_prefix,
    split_secondary_keys,
)
from lakehouse_engine.format.metadata_table.locations import LOCATIONS, decode_locations
from lakehouse_engine.format.metadata_table.merging import Records, Winners
from lakehouse_engine.format.metadata_table.payload import BLOOM, STATS
from lakehouse_engine.format.metadata_table.statistics import COUNTS, stats_bounds
from lakehouse_engine.metadata_table.partitions import BLOOM_FILTERS, COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX
from lakehouse_engine.metadata_table.table import MetadataTable

LISTED = pa.schema([pa.field("partition_path", pa.string()), pa.field("name", pa.string()), pa.field("size", pa.int64())])
"""A file: its partition, its bare name, and its size in bytes."""
LOCATED = pa.schema([pa.field("key", pa.string()), *LOCATIONS])
"""A record key and the location of its row, as in `LOCATIONS`."""


def partition_paths(table: MetadataTable) -> list[str]:
    """Paths of the table's partitions, sorted; "" for the single one of an unpartitioned table."""
    found = table.with_keys(FILES, pa.array([ALL_PARTITIONS]))
    entries = file_entries(found.payloads)
    return sorted(partition_path_of(name) for name in entries.filter(pc.invert(entries.column("is_deleted"))).column("name").to_pylist())


def listed_files(table: MetadataTable, partitions: Sequence[str] | None = None) -> pa.Table:
    """Files of the given partitions (None: all), in the columns of `LISTED`, sorted by partition and name."""
    paths = partition_paths(table) if partitions is None else list(partitions)
    found = table.with_keys(FILES, pa.array([partition_identifier(path) for path in paths], pa.string()))
    entries = file_entries(found.payloads)
    identifiers = found.keys.cast(pa.string()).take(entries.column("record").combine_chunks())
    path = pc.if_else(pc.equal(identifiers, partition_identifier("")), "", identifiers)
    listed = pa.Table.from_arrays([path, entries.column("name"), entries.column("size")], schema=LISTED)
    return listed.filter(pc.invert(entries.column("is_deleted"))).sort_by([("partition_path", "ascending"), ("name", "ascending")])


@dataclass(frozen=True, slots=True)
class Statistics:
    """Column statistics by key, for files or for whole partitions."""

    keys: pa.Array
    stats: pa.Array

    @classmethod
    def of(cls, records: Records) -> Statistics:
        return cls(records.keys, records.payloads.column(STATS).combine_chunks())

    def of_files(self, column: str, files: pa.Table, kind: pa.DataType) -> pa.Table:
        """Statistics of a column, one row for each of `files` (in the columns of `LISTED`): `least` and `greatest` as `kind`, the column's
        type, and the columns of `COUNTS`. Null if a file has none.
        """
        paths, names = (files.column(one).combine_chunks() for one in ("partition_path", "name"))
        return self._at(column_stats_keys(pa.repeat(column, files.num_rows), paths, names), kind)

    def of_partitions(self, column: str, paths: pa.Array, kind: pa.DataType) -> pa.Table:
        """Like `of_files`, one row for each partition."""
        return self._at(partition_stats_keys(pa.repeat(column, len(paths)), paths), kind)

    def of_partitions_by_expression(self, column: str, paths: pa.Array, kind: pa.DataType) -> pa.Table:
        """Like `of_partitions`, in an expression index on the column; `kind` is the type of the expression."""
        return self._at(expression_partition_stats_keys(pa.repeat(column, len(paths)), paths), kind)

    def _at(self, keys: pa.Array, kind: pa.DataType) -> pa.Table:
        found = self.stats.take(pc.index_in(keys, self.keys)) if len(self.keys) else pa.nulls(len(keys), self.stats.type)
        least, greatest = stats_bounds(found, kind)
        counts = [pc.if_else(found.is_valid(), found.field(name), pa.scalar(None, pa.int64())) for name in COUNTS]
        return pa.table([least, greatest, *counts], names=["least", "greatest", *COUNTS])


def column_statistics(table: MetadataTable, columns: Sequence[str], partitions: Sequence[str] | None = None) -> Statistics:
    """Statistics of columns in the files of the given partitions (None: all)."""
    paths: Sequence[str | None] = [None] if partitions is None else list(partitions)
    prefixes = [column_prefix(column, path) for column in columns for path in paths]
    return Statistics.of(table.with_prefixes(COLUMN_STATS, prefixes))


def partition_statistics(table: MetadataTable, columns: Sequence[str]) -> Statistics:
    """Statistics of columns for whole partitions."""
    return Statistics.of(table.with_prefixes(PARTITION_STATS, [column_prefix(column) for column in columns]))


def bloom_filters(table: MetadataTable, files: pa.Table, partition: str = BLOOM_FILTERS) -> list[BloomFilter | None]:
    """Bloom filter of each file (in the columns of `LISTED`) in `partition`, which may be an expression index; None if it has none.

    Raises `FormatError`.
    """
    keys = bloom_filter_keys(files.column("partition_path").combine_chunks(), files.column("name").combine_chunks())
    found = table.with_keys(partition, keys)
    info = found.payloads.column(BLOOM).combine_chunks()
    known = {key: place for place, key in enumerate(found.keys.to_pylist())}
    places = [known.get(key) for key in keys.to_pylist()]
    kinds, texts = info.field("type"), info.field("bloomFilter")
    return [None if at is None else BloomFilter.from_base64(texts[at].as_py().decode("ascii"), kinds[at].as_py()) for at in places]


def record_locations(table: MetadataTable, keys: pa.Array, partition_path: str | None = None) -> pa.Table:
    """Locations of the given record keys (`string`), for those in the index, in the columns of `LOCATED`, unordered.

    `partition_path` names the partition of the rows; without it, all partitions of a partitioned index are searched, and a key may be in
    several.
    """
    return _located(table.newest_with_keys(RECORD_INDEX, keys, partition_path))


def all_record_locations(table: MetadataTable) -> Iterator[pa.Table]:
    """All entries of the record index in the columns of `LOCATED`, one file group at a time."""
    for piece in table.groups(RECORD_INDEX):
        yield _located([table.newest(piece, RECORD_INDEX)])


def _located(parts: Sequence[Winners]) -> pa.Table:
    found = [LOCATED.empty_table()]
    for part in parts:
        start = 0
        for schema, end in part.schemas:
            locations = decode_locations(schema, part.values.slice(start, end - start))
            keys = part.keys.slice(start, end - start).cast(pa.string())
            found.append(pa.Table.from_arrays([keys, *locations.columns], schema=LOCATED))
            start = end
    return pa.concat_tables(found)


def record_keys_of(table: MetadataTable, index: str, values: Sequence[str | None]) -> pa.Table:
    """Value and record key (`value`, `key`) of the rows that a secondary index has for the given values, as text (None for null).

    `index` is the name of its partition of the metadata table.
    """
    found = table.with_prefixes(index, [secondary_prefix(value) for value in values])
    return pa.table(list(split_secondary_keys(found.keys)), names=["value", "key"])


def rows_by_partition(files: pa.Table) -> dict[str, pa.Table]:
    """Rows of `files` (in the columns of `LISTED`) by partition."""
    paths = files.column("partition_path").combine_chunks().dictionary_encode()
    indices = np.asarray(paths.indices)
    return {path: files.take(pa.array(np.flatnonzero(indices == number))) for number, path in enumerate(paths.dictionary.to_pylist())}
