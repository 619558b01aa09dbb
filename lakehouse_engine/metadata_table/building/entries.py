"""Entries of a new partition of a metadata table, file group by file group; keys are sorted in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.files.row_pool import SpillTo
from lakehouse_engine.format.file_names import TEMP_FOLDER
from lakehouse_engine.format.hfile.cells import Cells
from lakehouse_engine.format.metadata_table.bounds import is_indexed
from lakehouse_engine.format.metadata_table.definitions import IndexDefinition, column_stats_definition, record_index_definition
from lakehouse_engine.format.metadata_table.keys import secondary_routes
from lakehouse_engine.metadata_table.building.contents import Contents
from lakehouse_engine.metadata_table.building.groups import cells_by_group, fixed_count, record_index_groups
from lakehouse_engine.metadata_table.building.sorting import SortedKeys, SortedLocations
from lakehouse_engine.metadata_table.definitions import stored_definitions
from lakehouse_engine.metadata_table.partitions import COLUMN_STATS, RECORD_INDEX
from lakehouse_engine.metadata_table.records.columns import indexed
from lakehouse_engine.metadata_table.records.pairs import pair_payloads, row_pairs
from lakehouse_engine.metadata_table.records.rows import row_locations
from lakehouse_engine.model.commit_metadata import SCHEMA_KEY, HoodieCommitMetadata
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.locations import in_object_store
from lakehouse_engine.view.table_state import TableState

SPILL = f"{TEMP_FOLDER}/lakehouse.metadata.build."
"""How the folders of the sorted keys of builds begin; the instant of the build in the metadata table follows."""
_SORTED_AT_ONCE = 128 * 1024 * 1024
"""Bytes of keys that are sorted in memory."""
_LOGGED_BYTES = 256
"""Assumed bytes of a row in a log."""
_BY_VALUE = "V2"
"""Version of a secondary index with all rows of a value in one file group."""


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries for the state `data`, encoded in the Avro schema `schema`. Sorted keys that do not fit into memory go to `spill`."""

    data: TableState
    contents: Contents
    schema: str
    spill: str

    @staticmethod
    def counted(data: TableState, partitions: Iterable[str]) -> dict[str, int]:
        """Number of file groups of each partition. Opens the footers of all base files for an index of keys."""
        fixed = {name: fixed_count(name) for name in partitions}
        groups = record_index_groups(_rows(data.storage, data.view.latest_slices())) if None in fixed.values() else 0
        return {name: groups if count is None else count for name, count in fixed.items()}

    @contextmanager
    def of(self, partition: str, count: int) -> Iterator[Iterator[Iterable[Cells]]]:
        """Sorted entries of each of `count` groups, piece by piece, which are read once. Raises as reading the table, and `RecordKeyError`
        if a key of a record index is there twice.
        """
        if fixed_count(partition) is not None:
            yield cells_by_group(self.contents.records(partition), self.schema, count)
            return
        with self._spilled() as spill:
            yield self._located(spill, count) if partition == RECORD_INDEX else self._paired(partition, spill, count)

    def _located(self, spill: SpillTo, count: int) -> Iterator[Iterable[Cells]]:
        entries = SortedLocations(self.schema, count, spill)
        for located in row_locations(self.data, self.data.view.latest_slices()):
            entries.add(located)
        return entries.by_group()

    def _paired(self, partition: str, spill: SpillTo, count: int) -> Iterator[Iterable[Cells]]:
        """Groups of a secondary index; they are routed as its definition says."""
        defined = stored_definitions(self.data)[partition]
        entries = SortedKeys(count, spill, secondary_routes if defined.version == _BY_VALUE else None)
        for keys in row_pairs(self.data, self.data.view.latest_slices(), defined.source_fields[0]):
            entries.add(keys, pa.array(np.zeros(len(keys), np.int32)))
        return entries.by_group(pair_payloads(self.schema, 1))

    @contextmanager
    def _spilled(self) -> Iterator[SpillTo]:
        """Where sorted keys go: beside the table, or on this machine's disk if that is in an object store."""
        storage = self.data.storage
        if in_object_store(storage):
            with TemporaryDirectory(prefix="lakehouse-record-index-") as here:
                yield SpillTo(LocalStorage(here), "runs", _SORTED_AT_ONCE)
            return
        try:
            yield SpillTo(storage, self.spill, _SORTED_AT_ONCE)
        finally:
            storage.delete_tree(self.spill)


def definitions_of(data: TableState, partition: str) -> list[IndexDefinition]:
    """Definitions that a built partition is named with."""
    if partition == RECORD_INDEX:
        return [record_index_definition()]
    if partition != COLUMN_STATS:
        return []
    # Hudi 1.x leaves decimals that may not fit out of version V1.
    columns = indexed(data)
    names = [one.name for one in columns.fields if is_indexed(one.type, by_value_type=columns.by_value_type)]
    known = stored_definitions(data).get(COLUMN_STATS)
    chosen = known is not None and known.is_chosen
    return [column_stats_definition(names, "V2" if columns.by_value_type else "V1", chosen=chosen)]


def build_metadata(stats: dict[str, tuple[HoodieWriteStat, ...]], schema: str) -> HoodieCommitMetadata:
    """Metadata of the delta commit that builds partitions."""
    return HoodieCommitMetadata(
        partition_to_write_stats=stats, operation_type=WriteOperationType.BULK_INSERT, extra_metadata={SCHEMA_KEY: schema}
    )


def _rows(storage: Storage, slices: Sequence[FileSlice]) -> int:
    """About how many rows the slices have."""
    stored: int = sum(FOOTERS.read(storage, piece.base_file).num_rows for piece in slices if piece.base_file is not None)
    return stored + sum(log.size for piece in slices for log in piece.log_files) // _LOGGED_BYTES
