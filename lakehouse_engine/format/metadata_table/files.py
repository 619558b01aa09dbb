"""Records of the partition `files`: the partitions of a table, and the files of each with their sizes (Hudi `HoodieMetadataFileInfo`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.metadata_table.keys import ALL_PARTITIONS
from lakehouse_engine.format.metadata_table.payload import FILES, RecordType
from lakehouse_engine.format.metadata_table.schema import payload_schema

FILE_ENTRIES = pa.schema(
    [pa.field("record", pa.int64()), pa.field("name", pa.string()), pa.field("size", pa.int64()), pa.field("is_deleted", pa.bool_())]
)
"""Entries of records: the record's number, a file (or partition) name, its size in bytes, and whether it is a deletion."""


def file_entries(payloads: pa.Table) -> pa.Table:
    """The entries of all records, in the columns of `FILE_ENTRIES`."""
    maps = payloads.column(FILES).combine_chunks()
    bounds = np.asarray(maps.offsets).astype(np.int64)
    lengths: npt.NDArray[np.int64] = bounds[1:] - bounds[:-1]
    lengths[np.asarray(maps.is_null())] = 0
    start, stop = (maps.offsets[place].as_py() for place in (0, -1))
    items = maps.items.slice(start, stop - start)
    records = np.repeat(np.arange(len(maps)), lengths)
    if len(records) != len(items):
        raise FormatError("a metadata record without a map of files has entries")
    names = maps.keys.slice(start, stop - start)
    return pa.Table.from_arrays([pa.array(records), names, items.field("size"), items.field("isDeleted")], schema=FILE_ENTRIES)


def files_payloads(keys: pa.Array, entries: pa.Table) -> pa.Table:
    """A payload for each of `keys` (partition identifiers, or `ALL_PARTITIONS`); `entries` are in order of their records."""
    types = pc.if_else(pc.equal(keys, ALL_PARTITIONS), int(RecordType.ALL_PARTITIONS), int(RecordType.FILES))
    return pa.table({"type": types.cast(pa.int32()), FILES: _maps(len(keys), entries)})


def _maps(count: int, entries: pa.Table) -> pa.Array:
    """The map of each of `count` records."""
    kind = payload_schema().field(FILES).type
    counts = np.bincount(np.asarray(entries.column("record")).astype(np.int64), minlength=count)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    size, deleted, names = (entries.column(name).combine_chunks() for name in ("size", "is_deleted", "name"))
    items = pa.StructArray.from_arrays([size, deleted], fields=list(kind.item_type))
    return pa.MapArray.from_arrays(offsets, names, items, type=kind)


def fold_files(codes: npt.NDArray[np.int64], count: int, payloads: pa.Table) -> pa.Array:
    """Merged map of each of `count` codes, from payloads in order of time (Hudi `HoodieMetadataPayload.combineFileSystemMetadata`).

    A name gets the larger of its sizes, since files only grow. A deletion removes the earlier additions. The deletion of a name that is
    absent is kept, so that it applies to a record that this one is merged with later.
    """
    entries = file_entries(payloads)
    record = codes[np.asarray(entries.column("record"))]
    names = entries.column("name").combine_chunks().dictionary_encode()
    size, deleted = np.asarray(entries.column("size")), np.asarray(entries.column("is_deleted").combine_chunks().cast(pa.uint8())) == 1
    group = record * max(1, len(names.dictionary)) + np.asarray(names.indices)
    order = np.argsort(group, kind="stable")
    group, size, deleted = group[order], size[order], deleted[order]
    first = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]])) if len(group) else np.empty(0, np.int64)
    last = np.concatenate([first[1:], [len(group)]]).astype(np.int64) - 1 if len(group) else first
    # The additions after the last deletion of a name count, or all of them if it has none.
    place = np.arange(len(group))
    deletion = np.maximum.reduceat(np.where(deleted, place, -1), first) if len(group) else first
    run = np.repeat(np.arange(len(first)), np.diff(np.concatenate([first, [len(group)]])))
    counted = np.where(place > deletion[run], size, -1) if len(group) else size
    largest = np.maximum.reduceat(counted, first) if len(group) else size
    ends_deleted = deletion == last
    taken_away = ends_deleted & (last > first) & ~deleted[np.maximum(last - 1, 0)] if len(group) else ends_deleted
    kept = np.flatnonzero(~taken_away)
    rows = order[first[kept]]
    merged = pa.Table.from_arrays(
        [
            pa.array(record[rows]),
            entries.column("name").combine_chunks().take(pa.array(rows)),
            pa.array(np.where(ends_deleted[kept], 0, largest[kept])),
            pa.array(ends_deleted[kept]),
        ],
        schema=FILE_ENTRIES,
    )
    return _maps(count, merged)
