"""Refuses a write by which a key would be stored twice in a table with a record index, which has one place for a key.

Inserts and overwrites look no key up. Their new files say which keys they bring, and the record index whether one is stored elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import DuplicateKeyError, LakehouseError
from lakehouse_engine.files.base_file import iter_base_file
from lakehouse_engine.format.file_names import is_base_file_name, parse_base_file
from lakehouse_engine.metadata_table.answers import record_locations
from lakehouse_engine.metadata_table.partitions import RECORD_INDEX
from lakehouse_engine.metadata_table.table import MetadataTable, is_in_use
from lakehouse_engine.metadata_table.trusted import is_by_partition
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


def check_indexed_once(state: TableState, instant_time: str, metadata: HoodieCommitMetadata) -> None:
    """Raise `DuplicateKeyError` if the files of a commit have a key twice, or one that is stored already and stays. `state` is the table
    before the commit.
    """
    operation = metadata.operation_type
    if operation not in _LOOK_NOTHING_UP or not is_in_use(state) or RECORD_INDEX not in state.config.metadata_partitions:
        return
    table = MetadataTable.open(state)
    by_partition = is_by_partition(table)
    added = list(_added(state, instant_time, metadata))
    if by_partition:
        for path in dict.fromkeys(path for path, _ in added):
            _check(table, metadata, pa.chunked_array([keys for own, keys in added if own == path], pa.string()), path)
    else:
        _check(table, metadata, pa.chunked_array([keys for _, keys in added], pa.string()), None)


def _added(state: TableState, instant_time: str, metadata: HoodieCommitMetadata) -> Iterator[tuple[str, pa.Array]]:
    """Keys that the commit adds, with their partition: those of its rows in base files."""
    for path, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            name = (stat.path or "").rpartition("/")[2]
            if stat.num_inserts and is_base_file_name(name):
                base = parse_base_file(path, name, stat.file_size_in_bytes)
                for rows in iter_base_file(state.storage, base, pa.schema([]), meta_columns=(RECORD_KEY, COMMIT_TIME)):
                    keys = rows.filter(pc.equal(rows.column(COMMIT_TIME), instant_time)).column(RECORD_KEY)
                    yield path, keys.combine_chunks().cast(pa.string())


def _check(table: MetadataTable, metadata: HoodieCommitMetadata, keys: pa.ChunkedArray, path: str | None) -> None:
    distinct = keys.unique()
    if len(distinct) < len(keys):
        counted = pc.value_counts(keys)
        raise _twice(table, counted.field("values").filter(pc.greater(counted.field("counts"), 1))[0].as_py(), "brings twice")
    if metadata.operation_type is WriteOperationType.INSERT_OVERWRITE_TABLE:
        return
    stored = record_locations(table, distinct, path)
    replaced = metadata.partition_to_replace_file_ids or {}
    for place in stored.group_by(["partition_path", "file_id"]).aggregate([]).to_pylist():
        partition, file_id = place["partition_path"], place["file_id"]
        if file_id not in replaced.get(partition, ()):
            here = pc.and_(pc.equal(stored.column("partition_path"), partition), pc.equal(stored.column("file_id"), file_id))
            raise _twice(table, stored.filter(here).column("key")[0].as_py(), f"brings, and that is stored in the partition {partition!r}")


def _twice(table: MetadataTable, key: str, why: str) -> LakehouseError:
    return DuplicateKeyError(
        f"the metadata table has a record index, with one place for a key, and {key!r} is a key that the write {why}. Nothing was written:"
        " bring the rows by an upsert or MERGE, or leave out those that are stored (hoodie.datasource.insert.dup.policy=DROP), or drop the"
        " index (`lakehouse metadata drop TABLE --partitions record_index`)",
        table=table.data.config.name,
        key=key,
    )
