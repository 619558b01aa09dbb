"""Refuses a write by which a key would be stored twice in a table with a record index, which has one place for a key.

Inserts and overwrites look no key up, and upserts by an index that is not global look in one partition. Their new files say which keys
they bring, and the record index whether one is stored elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import DuplicateKeyError, LakehouseError
from lakehouse_engine.files.base_file import iter_base_file
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.format.file_names import has_bucket, is_base_file_name, parse_base_file, parse_log_file
from lakehouse_engine.metadata_table.answers import record_locations
from lakehouse_engine.metadata_table.partitions import RECORD_INDEX
from lakehouse_engine.metadata_table.table import MetadataTable, is_in_use
from lakehouse_engine.metadata_table.trusted import is_by_partition
from lakehouse_engine.metadata_table.upkeep.locations import key_moves, logged_keys
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.keys import COMMIT_TIME, RECORD_KEY
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.view.table_state import TableState

_LOOK_NOTHING_UP = frozenset(
    {
        WriteOperationType.INSERT,
        WriteOperationType.BULK_INSERT,
        WriteOperationType.INSERT_OVERWRITE,
        WriteOperationType.INSERT_OVERWRITE_TABLE,
    }
)


@dataclass(frozen=True, slots=True)
class _Brought:
    """Keys that a file of the commit brings into a partition. `meets`: a row of that partition with such a key is the same row."""

    path: str
    keys: pa.Array
    meets: bool

    @property
    def homes(self) -> pa.Array:
        """For each key, the partition in which it may be stored; null if in none."""
        return pa.repeat(pa.scalar(self.path if self.meets else None, pa.string()), len(self.keys))


def check_indexed_once(state: TableState, instant_time: str, metadata: HoodieCommitMetadata, *, is_global: bool) -> None:
    """Raise `DuplicateKeyError` if the files of a commit have a key twice, or one that is stored already and stays. `state` is the table
    before the commit; `is_global`: the index that the write looked keys up by is. Raises as `key_moves`.
    """
    operation = metadata.operation_type
    in_one = operation is WriteOperationType.UPSERT and not is_global and bool(state.config.partition_fields)
    if not (in_one or operation in _LOOK_NOTHING_UP) or not is_in_use(state) or RECORD_INDEX not in state.config.metadata_partitions:
        return
    table = MetadataTable.open(state)
    if not is_by_partition(table):
        _check(table, instant_time, metadata, list(_brought(state, instant_time, metadata)), None)
    elif not in_one:
        brought = list(_brought(state, instant_time, metadata))
        for path in dict.fromkeys(one.path for one in brought):
            _check(table, instant_time, metadata, [one for one in brought if one.path == path], path)


def _brought(state: TableState, instant_time: str, metadata: HoodieCommitMetadata) -> Iterator[_Brought]:
    """What the commit brings in base files, and in logs of buckets. Other logs have no new keys."""
    upserts = metadata.operation_type is WriteOperationType.UPSERT
    rules: MergeRules | None = None
    for path, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            name = (stat.path or "").rpartition("/")[2]
            if is_base_file_name(name):
                if stat.num_inserts:
                    base = parse_base_file(path, name, stat.file_size_in_bytes)
                    for rows in iter_base_file(state.storage, base, pa.schema([]), meta_columns=(RECORD_KEY, COMMIT_TIME)):
                        keys = rows.filter(pc.equal(rows.column(COMMIT_TIME), instant_time)).column(RECORD_KEY)
                        yield _Brought(path, keys.combine_chunks().cast(pa.string()), upserts)
            elif name and has_bucket(stat.file_id or ""):
                rules = rules or MergeRules.of(state.config, table_schema(state))
                for keys, is_gone in logged_keys(state, parse_log_file(path, name), instant_time, rules):
                    if not is_gone:
                        yield _Brought(path, keys, True)


def _check(table: MetadataTable, instant_time: str, metadata: HoodieCommitMetadata, brought: list[_Brought], path: str | None) -> None:
    keys = pa.chunked_array([one.keys for one in brought], pa.string()).combine_chunks()
    distinct = keys.unique()
    if len(distinct) < len(keys):
        counted = pc.value_counts(keys)
        raise _twice(table, metadata, counted.field("values").filter(pc.greater(counted.field("counts"), 1))[0].as_py(), "brings twice")
    if metadata.operation_type is WriteOperationType.INSERT_OVERWRITE_TABLE:
        return
    stored = record_locations(table, distinct, path)
    homes = pa.chunked_array([one.homes for one in brought], pa.string()).take(pc.index_in(stored.column("key"), keys))
    stored = stored.filter(pc.fill_null(pc.not_equal(stored.column("partition_path"), homes), True))
    replaced = metadata.partition_to_replace_file_ids or {}
    for place in stored.group_by(["partition_path", "file_id"]).aggregate([]).to_pylist():
        partition, file_id = place["partition_path"], place["file_id"]
        if file_id not in replaced.get(partition, ()):
            here = pc.and_(pc.equal(stored.column("partition_path"), partition), pc.equal(stored.column("file_id"), file_id))
            stays = _staying(table.data, instant_time, metadata, partition, stored.filter(here).column("key"))
            if len(stays):
                raise _twice(table, metadata, stays[0].as_py(), f"brings, and that is stored in the partition {partition!r}")


def _staying(
    state: TableState, instant_time: str, metadata: HoodieCommitMetadata, partition: str, keys: pa.ChunkedArray
) -> pa.ChunkedArray:
    """Those of some stored keys of a partition that the commit does not delete there."""
    if partition not in metadata.partition_to_write_stats:
        return keys
    gone = pa.concat_tables(key_moves(state, instant_time, metadata).gone)
    gone = gone.filter(pc.equal(gone.column("partition_path"), partition)).column("key").combine_chunks()
    return keys.filter(pc.invert(pc.is_in(keys, gone)))


def _twice(table: MetadataTable, metadata: HoodieCommitMetadata, key: str, why: str) -> LakehouseError:
    if metadata.operation_type is WriteOperationType.UPSERT:
        way = "let the write look into all partitions (hoodie.index.type=GLOBAL_RECORD_LEVEL_INDEX)"
    else:
        way = "bring the rows by an upsert or MERGE, or leave out those that are stored (hoodie.datasource.insert.dup.policy=DROP)"
    return DuplicateKeyError(
        f"the metadata table has a record index, with one place for a key, and {key!r} is a key that the write {why}. Nothing was written:"
        f" {way}, or drop the index (`lakehouse metadata drop TABLE --partitions record_index`)",
        table=table.data.config.name,
        key=key,
    )
