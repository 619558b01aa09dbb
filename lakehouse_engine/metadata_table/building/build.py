"""Builds partitions of a metadata table from the data files (design: metadata table, section 6; Hudi `HoodieBackedTableMetadataWriter`).

 1. what a dead build left is removed: everything without a metadata table in use, else what is not one of its partitions
 2. the metadata table is made if there is none
 3. each partition in turn: its files, its delta commit, its definition, and at last its name in the properties of the data table

A reader sees a partition from its name on, and a crash before leaves nothing that counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from lakehouse_engine.errors import CommitConflictError, OptionError, UnavailableError, UnsupportedTableError
from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.files.row_pool import SpillTo
from lakehouse_engine.format.file_names import TEMP_FOLDER
from lakehouse_engine.format.hfile.cells import Cells
from lakehouse_engine.format.metadata_table.bounds import is_indexed
from lakehouse_engine.format.metadata_table.definitions import IndexDefinition, column_stats_definition, record_index_definition
from lakehouse_engine.format.metadata_table.forms import metadata_form, metadata_properties
from lakehouse_engine.format.metadata_table.keys import secondary_routes
from lakehouse_engine.format.metadata_table.schema import record_schema
from lakehouse_engine.metadata_table.building.contents import Contents
from lakehouse_engine.metadata_table.building.groups import (
    EXPRESSION_GROUPS,
    GROUP_COUNTS,
    STEMS,
    PartitionWriter,
    cells_by_group,
    record_index_groups,
)
from lakehouse_engine.metadata_table.building.instants import BuildInstants
from lakehouse_engine.metadata_table.building.naming import IN_PROGRESS_KEY, PARTITIONS_KEY, define_indexes, name_partitions
from lakehouse_engine.metadata_table.building.sorting import SortedKeys, SortedLocations
from lakehouse_engine.metadata_table.definitions import stored_definitions
from lakehouse_engine.metadata_table.expressions.index import check_expression, is_computed
from lakehouse_engine.metadata_table.partitions import COLUMN_STATS, EXPRESSION_INDEX, FILES, PARTITION_STATS, RECORD_INDEX, SECONDARY_INDEX
from lakehouse_engine.metadata_table.records.columns import indexed
from lakehouse_engine.metadata_table.records.pairs import indexed_column, pair_payloads, row_pairs
from lakehouse_engine.metadata_table.records.rows import row_locations
from lakehouse_engine.metadata_table.table import METADATA_TABLE, is_in_use
from lakehouse_engine.model.commit_metadata import SCHEMA_KEY, HoodieCommitMetadata
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.locations import in_object_store, storage_below
from lakehouse_engine.timeline.clock import InstantClock
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.view.table_state import TableState

PARTITIONS = tuple(STEMS)
"""Partitions that can be built, in the order of building."""
_SPILL = f"{TEMP_FOLDER}/lakehouse.metadata.build"
_SORTED_AT_ONCE = 128 * 1024 * 1024
"""Bytes of keys that are sorted in memory."""
_LOGGED_BYTES = 256
"""Assumed bytes of a row in a log."""
_GLOBAL = "false"
_BY_VALUE = "V2"
"""Version of a secondary index with all rows of a value in one file group."""


def check_partitions(data: TableState, partitions: Sequence[str], define: Sequence[IndexDefinition] = ()) -> tuple[str, ...]:
    """The partitions to build for these to be there, in the order of building, `files` among them, and the record index for a secondary
    one. `define` are definitions besides the stored ones.

    Raises `OptionError` for a partition that the table cannot have, or that needs another one; `UnavailableError` for a secondary
    or an expression index that only Hudi builds; and `UnsupportedTableError` for a record index that is defined as one for each partition.
    """
    config = data.config
    secondary = list(dict.fromkeys(name for name in partitions if name.startswith(SECONDARY_INDEX)))
    expressions = list(dict.fromkeys(name for name in partitions if name.startswith(EXPRESSION_INDEX)))
    unknown = [name for name in partitions if name not in (*PARTITIONS, *secondary, *expressions)]
    if unknown:
        raise OptionError(f"the metadata table has no partition {unknown[0]!r} that can be built; there are {', '.join(PARTITIONS)}")
    known = {**stored_definitions(data), **{one.name: one for one in define}}
    for name in secondary:
        _check_secondary(data, name, known.get(name))
    for name in expressions:
        check_expression(data, name, known.get(name))
    wanted = {FILES, *partitions, *([RECORD_INDEX] if secondary else [])}
    if PARTITION_STATS in wanted:
        if not metadata_form(config.version).has_partition_stats:
            raise OptionError(f"{PARTITION_STATS} are for table versions 8 and 9; {config.name} has version {int(config.version)}")
        if not config.partition_fields:
            raise OptionError(f"{PARTITION_STATS} are for tables with partitions, which {config.name} has not")
        if COLUMN_STATS not in {*wanted, *config.metadata_partitions}:
            raise OptionError(f"{PARTITION_STATS} are kept together with {COLUMN_STATS}: name both")
    defined = known.get(RECORD_INDEX)
    if RECORD_INDEX in wanted and defined is not None and defined.options.get("isPartitioned", _GLOBAL) != _GLOBAL:
        raise UnsupportedTableError(
            f"the record index of {config.name} is defined as one for each partition, which only Hudi builds; leave {RECORD_INDEX} out, or"
            " take the definition out of .hoodie/.index_defs/index.json",
            table=config.name,
        )
    return (*(name for name in PARTITIONS if name in wanted), *secondary, *expressions)


def is_built_here(data: TableState, partition: str) -> bool:
    """True if this engine can build the partition of the table's metadata table again."""
    if partition.startswith(EXPRESSION_INDEX):
        return is_computed(data, stored_definitions(data).get(partition))
    defined = stored_definitions(data).get(partition) if partition.startswith(SECONDARY_INDEX) else None
    return partition in PARTITIONS or (defined is not None and indexed_column(data, defined) is not None)


def _check_secondary(data: TableState, name: str, defined: IndexDefinition | None) -> None:
    config = data.config
    if not metadata_form(config.version).has_partition_stats:
        raise OptionError(f"{name}: secondary indexes are for table versions 8 and 9; {config.name} has version {int(config.version)}")
    if defined is None:
        raise OptionError(f"{config.name} has no definition of {name}; create the index with its column")
    if indexed_column(data, defined) is None:
        raise UnavailableError(
            f"{name} of {config.name}: this engine builds a secondary index on one top-level column of texts or signed whole numbers, not"
            f" on {', '.join(defined.source_fields) or 'none'}; Hudi builds others (Spark, CREATE INDEX)",
            table=config.name,
        )


def check_nothing_pending(data: TableState) -> None:
    """Raise `CommitConflictError` naming the instant if anything is pending, a plan included: a build would lack what it adds."""
    pending = next(iter(data.timeline.pending()), None)
    if pending is not None:
        raise CommitConflictError(
            f"the metadata table is built only while nothing is pending, and {pending} is; let it complete, run its plan, or roll it back",
            instant=pending,
            table=data.config.name,
        )


def build(data: TableState, partitions: Sequence[str], clock: InstantClock, *, define: Sequence[IndexDefinition] = ()) -> TableState:
    """Build those of the partitions that are not there yet; returns the state after that. The table's lock is held, and no writer is at
    work without it. `clock` is the table's; `define` has definitions of partitions that are not there, stored before these are built.

    Raises as `check_partitions` before anything is changed, `CommitConflictError` while an instant is pending, `RecordKeyError` if a key is
    in the table twice, and as reading the table.
    """
    wanted = check_partitions(data, partitions, define)
    check_nothing_pending(data)
    _remove_leftovers(data)
    new = [one for one in define if not is_in_use(data) or one.name not in data.config.metadata_partitions]
    if new:
        define_indexes(data, new)
        data = data.advance()
    builder = _Builder(data, _metadata_storage(data), Contents(data), clock)
    for name in wanted:
        if not is_in_use(builder.data) or name not in builder.data.config.metadata_partitions:
            builder.build(name)
    return builder.data


def _metadata_storage(data: TableState) -> Storage:
    """The storage of the metadata table, which is made if the table has none in use."""
    storage = storage_below(data.storage, METADATA_TABLE)
    if not is_in_use(data):
        ConfigStore(storage).create(TableConfig(metadata_properties(data.config.version, data.config.name)))
    return storage


def _remove_leftovers(data: TableState) -> None:
    data.storage.delete_tree(_SPILL)
    if data.config.properties.get(IN_PROGRESS_KEY):
        ConfigStore(data.storage).update({IN_PROGRESS_KEY: ""})
    if not is_in_use(data):
        if data.config.properties.get(PARTITIONS_KEY):
            ConfigStore(data.storage).update({PARTITIONS_KEY: ""})
        data.storage.delete_tree(METADATA_TABLE)
        return
    for entry in data.storage.list(METADATA_TABLE):
        known = entry.name in PARTITIONS or entry.name.startswith((SECONDARY_INDEX, EXPRESSION_INDEX))
        if entry.is_directory and known and entry.name not in data.config.metadata_partitions:
            data.storage.delete_tree(entry.path)
    metadata = TableState.load(storage_below(data.storage, METADATA_TABLE))
    for instant in BuildInstants(data, metadata).pending():
        metadata.active.delete_pending(instant)


@dataclass(slots=True)
class _Builder:
    """Builds one partition after the other. `data` is the state with the names of those that are built."""

    data: TableState
    storage: Storage
    contents: Contents
    clock: InstantClock

    def build(self, name: str) -> None:
        metadata = TableState.load(self.storage)
        instants = BuildInstants(self.data, metadata)
        requested = metadata.active.create_requested(instants.next())
        inflight = metadata.active.to_inflight(requested)
        newest = metadata.timeline.completed().writes().last()
        schema = None if newest is None else metadata.commit_metadata(newest).schema_json
        schema = schema or record_schema(self.data.config.version)
        stats = self._write(PartitionWriter(self.storage, name, requested.requested_time, schema))
        outcome = HoodieCommitMetadata(
            partition_to_write_stats={name: tuple(stats)},
            operation_type=WriteOperationType.BULK_INSERT,
            extra_metadata={SCHEMA_KEY: schema},
        )
        content = metadata.layout.encode_commit(outcome)
        metadata.active.complete(inflight, content, instants.completion_time(self.clock))
        name_partitions(self.data, put=[name], define=self._definitions(name))
        self.data = self.data.advance()

    def _write(self, writer: PartitionWriter) -> list[HoodieWriteStat]:
        if writer.partition == RECORD_INDEX:
            with self._located(writer.schema) as groups:
                return writer.write(groups)
        if writer.partition.startswith(SECONDARY_INDEX):
            with self._paired(writer.partition, writer.schema) as groups:
                return writer.write(groups)
        count = GROUP_COUNTS.get(writer.partition, EXPRESSION_GROUPS)
        return writer.write(cells_by_group(self.contents.records(writer.partition), writer.schema, count))

    @contextmanager
    def _located(self, schema: str) -> Iterator[Iterator[Iterable[Cells]]]:
        slices = self.data.view.latest_slices()
        with _spill(self.data.storage) as spill:
            entries = SortedLocations(schema, record_index_groups(_rows(self.data.storage, slices)), spill)
            for located in row_locations(self.data, slices):
                entries.add(located)
            yield entries.by_group()

    @contextmanager
    def _paired(self, name: str, schema: str) -> Iterator[Iterator[Iterable[Cells]]]:
        """Groups of a secondary index; they are routed as its definition says."""
        defined, slices = stored_definitions(self.data)[name], self.data.view.latest_slices()
        with _spill(self.data.storage) as spill:
            groups = record_index_groups(_rows(self.data.storage, slices))
            entries = SortedKeys(groups, spill, secondary_routes if defined.version == _BY_VALUE else None)
            for keys in row_pairs(self.data, slices, defined.source_fields[0]):
                entries.add(keys, pa.array(np.zeros(len(keys), np.int32)))
            yield entries.by_group(pair_payloads(schema, 1))

    def _definitions(self, name: str) -> list[IndexDefinition]:
        if name == RECORD_INDEX:
            return [record_index_definition()]
        if name != COLUMN_STATS:
            return []
        # Hudi 1.x leaves decimals that may not fit out of version V1.
        columns = indexed(self.data)
        names = [one.name for one in columns.fields if is_indexed(one.type, by_value_type=columns.by_value_type)]
        return [column_stats_definition(names, "V2" if columns.by_value_type else "V1")]


@contextmanager
def _spill(storage: Storage) -> Iterator[SpillTo]:
    """Where sorted keys go: beside the table, or on this machine's disk if that is in an object store."""
    if in_object_store(storage):
        with TemporaryDirectory(prefix="lakehouse-record-index-") as folder:
            yield SpillTo(LocalStorage(folder), "runs", _SORTED_AT_ONCE)
        return
    try:
        yield SpillTo(storage, _SPILL, _SORTED_AT_ONCE)
    finally:
        storage.delete_tree(_SPILL)


def _rows(storage: Storage, slices: Sequence[FileSlice]) -> int:
    """About how many rows the slices have."""
    stored: int = sum(FOOTERS.read(storage, piece.base_file).num_rows for piece in slices if piece.base_file is not None)
    return stored + sum(log.size for piece in slices for log in piece.log_files) // _LOGGED_BYTES
