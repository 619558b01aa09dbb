"""Rows of the HBase table, as Hudi 0.15 keeps them (`SparkHoodieHBaseIndex`).

The row key is the record key in UTF-8; the family `_s` has `commit_ts` (the instant that inserted the key), `file_name` (the file id) and
`partition_path`. happybase takes and returns a Python object for each row, so they are made here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from lakehouse_engine.errors import ExternalIndexError

FAMILY = "_s"
COMMIT_TS, FILE_NAME, PARTITION_PATH = b"_s:commit_ts", b"_s:file_name", b"_s:partition_path"
COLUMNS = (COMMIT_TS, FILE_NAME, PARTITION_PATH)
OWNER_ROW, OWNER = b"\x00lakehouse", b"_s:table"
"""Row with the root of the table that the entries are about. No record key begins with a zero byte here, and Hudi gets rows by key only."""
ENTRIES = pa.schema([pa.field(name, pa.string()) for name in ("key", "partition_path", "file_id", "instant")])
"""Entries of keys: partition path and file id of the file group, and the instant that put the key there."""
LONGEST = 32_767
"""Bytes of a row key that HBase takes."""

Cells = Mapping[bytes, bytes]


def row_keys(keys: pa.Array) -> list[bytes]:
    """Row keys of record keys. Raises `ExternalIndexError` for a key that no row of HBase can have."""
    made: list[bytes] = keys.cast(pa.binary()).to_pylist()
    for key in made:
        if len(key) > LONGEST or not key or key[0] == 0:
            raise ExternalIndexError(
                f"the record key {key[:40].decode(errors='replace')!r} ({len(key)} bytes) cannot be a row of the HBASE index: HBase takes"
                f" up to {LONGEST} bytes, and a zero byte at the start is this engine's own"
            )
    return made


def encode_rows(entries: pa.Table) -> Iterator[tuple[bytes, Cells]]:
    """Rows with their cells of entries in the columns of `ENTRIES`. Raises as `row_keys`."""
    keys = row_keys(entries.column("key").combine_chunks())
    others = (entries.column(name).to_pylist() for name in ("partition_path", "file_id", "instant"))
    for key, partition, file_id, instant in zip(keys, *others, strict=True):
        yield key, {COMMIT_TS: instant.encode(), FILE_NAME: file_id.encode(), PARTITION_PATH: partition.encode()}


def decode_rows(rows: Iterable[tuple[bytes, Cells]]) -> pa.Table:
    """Entries of rows, in the columns of `ENTRIES`. A row without all cells is no entry, as for Hudi.

    Raises `ExternalIndexError` for cells that are not UTF-8.
    """
    whole = [(key, cells) for key, cells in rows if all(name in cells for name in COLUMNS)]
    found = [(key, cells[PARTITION_PATH], cells[FILE_NAME], cells[COMMIT_TS]) for key, cells in whole]
    columns = [pa.array([row[number] for row in found], pa.binary()) for number in range(len(ENTRIES))]
    try:
        return pa.Table.from_arrays([column.cast(pa.string()) for column in columns], schema=ENTRIES)
    except pa.ArrowInvalid as error:
        raise ExternalIndexError(f"rows of the HBASE index are not UTF-8 ({error}): another program wrote them") from error
