"""File groups of a new partition of a metadata table, and their files (design: metadata table, section 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakehouse_engine.format.file_names import PARTITION_METAFILE
from lakehouse_engine.format.hfile.cells import Cells
from lakehouse_engine.format.hfile.writer import HFileWriter, sorted_cells
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey
from lakehouse_engine.format.log.delete_block import encode_delete_content
from lakehouse_engine.format.log.writer import render_block
from lakehouse_engine.format.metadata_table.merging import Records
from lakehouse_engine.format.metadata_table.payload import encode_payloads
from lakehouse_engine.format.metadata_table.schema import SCHEMA_INFO
from lakehouse_engine.format.partition_metafile import render_partition_metafile
from lakehouse_engine.metadata_table.opened import FIRST_TOKEN
from lakehouse_engine.metadata_table.partitions import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_INDEX,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    group_numbers,
)
from lakehouse_engine.model.files import BaseFile, LogFile
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.os_errors import as_storage_errors

STEMS = {
    FILES: "files",
    COLUMN_STATS: "col-stats",
    BLOOM_FILTERS: "bloom-filters",
    RECORD_INDEX: "record-index",
    PARTITION_STATS: "partition-stats",
}
"""First part of the file ids of each partition that can be built."""
_GROUP_COUNTS = {FILES: 1, COLUMN_STATS: 2, BLOOM_FILTERS: 4, PARTITION_STATS: 1}
_EXPRESSION_GROUPS = 2
_LEAST_KEY, _GREATEST_KEY = b"minRecordKey", b"maxRecordKey"
_FEW_KEYS = 1_000_000
_RECORD_BYTES, _GROUP_BYTES, _GROWTH = 48, 1 << 30, 2
_LEAST_GROUPS, _MOST_GROUPS = 10, 10_000


def record_index_groups(keys: int) -> int:
    """File groups of a record index for that many keys; it keeps them for good.

    From a million keys on as in Hudi (`HoodieTableMetadataUtil.estimateFileGroupCount`: 48 bytes a key, 1 GiB a group, room to double, at
    least 10). Below that one: Hudi reads any number, and each group costs a commit a file.
    """
    if keys < _FEW_KEYS:
        return 1
    return min(max(keys * _GROWTH // (_GROUP_BYTES // _RECORD_BYTES), _LEAST_GROUPS), _MOST_GROUPS)


def fixed_count(partition: str) -> int | None:
    """File groups of a new partition, as in Hudi (`hoodie.metadata.index.*.file.group.count`); None for indexes of keys, which have as many
    as their keys need.
    """
    return _EXPRESSION_GROUPS if partition.startswith(EXPRESSION_INDEX) else _GROUP_COUNTS.get(partition)


def _stem(partition: str) -> str:
    """First part of file ids; it has the name of a secondary or expression index (`HoodieTableMetadataUtil.getFileIDForFileGroup`)."""
    return STEMS.get(partition) or partition.replace("_", "-")


def cells_by_group(records: Records, schema: str, count: int) -> Iterator[Iterable[Cells]]:
    """Sorted entries of each of `count` groups, in the order of their numbers."""
    numbers = group_numbers(records.keys, count)
    for number in range(count):
        mine = pa.array(np.flatnonzero(numbers == number))
        yield [sorted_cells(records.keys.take(mine), encode_payloads(schema, records.payloads.take(mine)))] if len(mine) else []


def open_group(storage: Storage, partition: str, file_id: str, instant_time: str) -> LogFile:
    """Write the log with an empty block of deletions that begins a file group, as by Hudi."""
    log = LogFile(partition, file_id, instant_time, 1, FIRST_TOKEN)
    nothing = encode_delete_content(pa.array([], pa.string()), pa.array([], pa.string()))
    storage.create(log.path, render_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant_time}, nothing))
    return log


@dataclass(frozen=True, slots=True)
class PartitionWriter:
    """Writes the files of one partition in `storage`, that of the metadata table, for the build at `instant_time`."""

    storage: Storage
    partition: str
    instant_time: str
    schema: str

    def open(self, count: int) -> None:
        """Begin `count` groups, to which may be logged from then on. Everything is durable on return."""
        self.storage.create(f"{self.partition}/{PARTITION_METAFILE}", render_partition_metafile(self.instant_time, 1))
        for number in range(count):
            open_group(self.storage, self.partition, self._file_id(number), self.instant_time)
        self.storage.sync(self.partition)

    def fill(self, groups: Iterable[Iterable[Cells]]) -> list[HoodieWriteStat]:
        """Write the base file of each group that was begun; each has its entries in ascending order of keys, piece by piece. Returns the
        stats of base files; a group without entries gets none. Everything is durable on return.
        """
        stats = [self._base_file(self._file_id(number), pieces) for number, pieces in enumerate(groups)]
        self.storage.sync(self.partition)
        return [stat for stat in stats if stat is not None]

    def _file_id(self, number: int) -> str:
        return f"{_stem(self.partition)}-{number:04d}-0"

    def _base_file(self, file_id: str, pieces: Iterable[Cells]) -> HoodieWriteStat | None:
        filled = (cells for cells in pieces if len(cells))
        first = next(filled, None)
        if first is None:
            return None
        file = BaseFile(self.partition, file_id, FIRST_TOKEN, self.instant_time, ".hfile")
        least, count = first.keys[0].as_py(), 0
        with as_storage_errors("write", file.path, self.storage.root), self.storage.open_output(file.path) as sink:
            writer = HFileWriter(sink.write)
            cells: Cells | None = first
            while cells is not None:
                writer.append(cells)
                count, greatest = count + len(cells), cells.keys[-1].as_py()
                cells = next(filled, None)
            writer.close({SCHEMA_INFO: self.schema.encode(), _LEAST_KEY: least, _GREATEST_KEY: greatest})
            size = sink.tell()
        self.storage.sync(file.path)
        return HoodieWriteStat(
            file_id=file_id,
            path=file.path,
            num_writes=count,
            num_inserts=count,
            total_write_bytes=size,
            partition_path=self.partition,
            file_size_in_bytes=size,
        )
