"""Compares the record index with the rows of the table."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.format.file_names import file_id_of
from lakehouse_engine.metadata_table.answers import all_record_locations
from lakehouse_engine.metadata_table.partitions import RECORD_INDEX
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.metadata_table.trusted import is_by_partition
from lakehouse_engine.model.keys import FILE_NAME, PARTITION_PATH, RECORD_KEY
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.scan import plan_snapshot
from lakehouse_engine.verify.metadata_table.report import MetadataFinding, MetadataFindingKind, named

_COLUMNS = ("key", "partition_path", "file_id")


def check_record_index(table: MetadataTable) -> tuple[int, list[MetadataFinding]]:
    """Number of entries in the index, and what is wrong with them. Reads the meta columns of all rows.

    Raises as `read_arrow`.
    """
    located = pa.concat_tables(list(all_record_locations(table))).select(list(_COLUMNS))
    rows = _rows(table)
    by_partition = is_by_partition(table)
    indexed, stored = (_identities(one, by_partition=by_partition) for one in (located, rows))
    place = pc.index_in(stored, indexed)
    found = _findings(rows.filter(place.is_null()), MetadataFindingKind.KEY_NOT_INDEXED, "rows of these keys are not in the index")
    gone = pc.invert(pc.is_in(indexed, stored))
    found += _findings(located.filter(gone), MetadataFindingKind.INDEXED_KEY_IS_GONE, "the index has these keys, of which there is no row")
    kept, at = rows.filter(place.is_valid()), located.take(place.drop_null())
    same = pc.and_(*(pc.equal(kept.column(name), at.column(name)) for name in _COLUMNS[1:]))
    found += _findings(kept.filter(pc.invert(same)), MetadataFindingKind.WRONG_LOCATION, "the index has these keys in another place")
    return located.num_rows, found


def _rows(table: MetadataTable) -> pa.Table:
    """Key, partition and file id of every row."""
    rows = read_arrow(plan_snapshot(table.data), columns=[RECORD_KEY, PARTITION_PATH, FILE_NAME])
    names = rows.column(FILE_NAME).combine_chunks().cast(pa.string()).dictionary_encode()
    ids = pa.array([file_id_of(name) for name in names.dictionary.to_pylist()], pa.string()).take(names.indices)
    keys, paths = (rows.column(name).combine_chunks().cast(pa.string()) for name in (RECORD_KEY, PARTITION_PATH))
    return pa.table([keys, paths, ids], names=list(_COLUMNS))


def _identities(rows: pa.Table, *, by_partition: bool) -> pa.Array:
    """Identity of each entry: the key, in a partitioned index together with its partition."""
    keys, paths = (rows.column(name).combine_chunks() for name in ("key", "partition_path"))
    return pc.binary_join_element_wise(paths, keys, "\0") if by_partition else keys


def _findings(rows: pa.Table, kind: MetadataFindingKind, message: str) -> list[MetadataFinding]:
    """One finding for each partition."""
    paths = rows.column("partition_path").combine_chunks()
    found = []
    for path in sorted(pc.unique(paths).to_pylist()):
        keys = rows.column("key").filter(pc.equal(paths, path)).to_pylist()
        found.append(MetadataFinding(kind, RECORD_INDEX, path, f"{message}: {named(keys)}"))
    return found
