"""The record index has one place for a key, in the table or in a partition: a write that would store a key twice is refused.

Hudi lets the later place win, and a read by the key then misses a row.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import DuplicateKeyError
from lakehouse_engine.metadata_table.answers import record_locations
from lakehouse_engine.metadata_table.partitions import RECORD_INDEX
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.metadata_table.upkeep.locations import KeyMoves
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.record.matching import first_repeated

_ADDING = frozenset(
    {
        WriteOperationType.INSERT,
        WriteOperationType.BULK_INSERT,
        WriteOperationType.INSERT_OVERWRITE,
        WriteOperationType.INSERT_OVERWRITE_TABLE,
        WriteOperationType.UPSERT,
    }
)
"""Operations that may be refused. Table services are resumed until they succeed, and bring no new rows."""


def check_one_place(table: MetadataTable, metadata: HoodieCommitMetadata, moves: KeyMoves, within: str | None = None) -> None:
    """Raise `DuplicateKeyError` if the commit brings a key twice, or one that is stored elsewhere and stays there. `table.data` is the
    table before it. `within`: the partition of the moves, if the index is partitioned.

    Upserts of tables with soft deletes are not checked: a deleted row stays where it was.
    """
    operation, data = metadata.operation_type, table.data
    if operation not in _ADDING or RECORD_INDEX not in data.config.metadata_partitions:
        return
    if operation is WriteOperationType.UPSERT and data.config.deletes_softly:
        return
    put, again, gone = (pa.concat_tables(rows) for rows in (moves.put, moves.again, moves.gone))
    repeated = first_repeated(put.column("key"))
    if repeated is not None:
        raise _refused(table, repeated[0], "brings twice")
    if len(again):
        raise _stored(table, again)
    put = put.filter(pc.invert(pc.is_in(put.column("key"), gone.column("key").combine_chunks())))
    keys = put.column("key").combine_chunks()
    stored = record_locations(table, keys, within)
    into = put.take(pc.index_in(stored.column("key"), keys))
    elsewhere = stored.filter(pc.or_(*(pc.not_equal(stored.column(name), into.column(name)) for name in ("partition_path", "file_id"))))
    if len(elsewhere):
        raise _stored(table, elsewhere)


def _stored(table: MetadataTable, rows: pa.Table) -> DuplicateKeyError:
    key, partition = (rows.column(name)[0].as_py() for name in ("key", "partition_path"))
    return _refused(table, key, f"brings, and that is stored in the partition {partition!r}")


def _refused(table: MetadataTable, key: str, why: str) -> DuplicateKeyError:
    return DuplicateKeyError(
        f"the metadata table has a record index, with one place for a key, and {key!r} is a key that the write {why}. Nothing was written:"
        " upsert the rows by an index of the whole table (hoodie.index.type=GLOBAL_RECORD_LEVEL_INDEX, where the table has no buckets), or"
        " delete the stored row by the same write, or drop the index (`lakehouse metadata drop TABLE --partitions record_index`)",
        table=table.data.config.name,
        key=key,
    )
