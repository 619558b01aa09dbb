"""Builds partitions of a metadata table from the data files (design: metadata table, section 6; Hudi `HoodieBackedTableMetadataWriter`).

 1. what a dead build left is removed: everything without a metadata table in use, else what is not one of its partitions
 2. the metadata table is made if there is none
 3. each partition in turn: its files, its delta commit, its definition, and at last its name in the properties of the data table

A reader sees a partition from its name on, and a crash before leaves nothing that counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakehouse_engine.errors import CommitConflictError, OptionError, UnavailableError, UnsupportedTableError
from lakehouse_engine.format.file_names import TEMP_FOLDER
from lakehouse_engine.format.metadata_table.definitions import IndexDefinition
from lakehouse_engine.format.metadata_table.forms import metadata_form, metadata_properties
from lakehouse_engine.metadata_table.building.contents import Contents
from lakehouse_engine.metadata_table.building.entries import SPILL, Entries, build_metadata, definitions_of
from lakehouse_engine.metadata_table.building.groups import STEMS, PartitionWriter
from lakehouse_engine.metadata_table.building.instants import BuildInstants
from lakehouse_engine.metadata_table.building.naming import IN_PROGRESS_KEY, PARTITIONS_KEY, define_indexes, name_partitions
from lakehouse_engine.metadata_table.compaction import schema_text
from lakehouse_engine.metadata_table.definitions import stored_definitions
from lakehouse_engine.metadata_table.expressions.index import check_expression, is_computed
from lakehouse_engine.metadata_table.partitions import COLUMN_STATS, EXPRESSION_INDEX, FILES, PARTITION_STATS, RECORD_INDEX, SECONDARY_INDEX
from lakehouse_engine.metadata_table.records.joining import joined
from lakehouse_engine.metadata_table.records.pairs import indexed_column
from lakehouse_engine.metadata_table.table import METADATA_TABLE, MetadataTable, is_in_use, metadata_state
from lakehouse_engine.model.instant import Action, State
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import storage_below
from lakehouse_engine.timeline.clock import InstantClock
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.view.table_state import TableState

PARTITIONS = tuple(STEMS)
"""Partitions that can be built, in the order of building."""
_GLOBAL = "false"


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
    """Raise `CommitConflictError` naming the instant if anything is pending, a plan included: a build would lack what it adds. The plan of
    an index adds nothing until it is run.
    """
    waits = (Action.INDEXING, State.REQUESTED)
    pending = next((one for one in data.timeline.pending() if (one.action, one.state) != waits), None)
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


def build_partition_stats(data: TableState, clock: InstantClock) -> TableState:
    """Build `partition_stats` from the complete `column_stats`; returns the state after that. The table's lock is held."""
    remove_partitions(data, [PARTITION_STATS])
    known = joined(list(MetadataTable.open(data).records(COLUMN_STATS)))
    builder = _Builder(data, _metadata_storage(data), Contents(data, known), clock)
    builder.build(PARTITION_STATS)
    return builder.data


def remove_partitions(data: TableState, partitions: Iterable[str]) -> None:
    """Remove the files of partitions that are not complete, and pending delta commits of builds under the table's lock, which is held."""
    for name in partitions:
        data.storage.delete_tree(f"{METADATA_TABLE}/{name}")
    metadata = metadata_state(data)
    for instant in BuildInstants(data, metadata).pending():
        metadata.active.delete_pending(instant)


def _metadata_storage(data: TableState) -> Storage:
    """The storage of the metadata table, which is made if the table has none in use."""
    storage = storage_below(data.storage, METADATA_TABLE)
    if not is_in_use(data):
        ConfigStore(storage).create(TableConfig(metadata_properties(data.config.version, data.config.name)))
    return storage


def _remove_leftovers(data: TableState) -> None:
    for entry in data.storage.list(TEMP_FOLDER):
        if entry.path.startswith(SPILL):
            data.storage.delete_tree(entry.path)
    if data.config.properties.get(IN_PROGRESS_KEY):
        ConfigStore(data.storage).update({IN_PROGRESS_KEY: ""})
    if not is_in_use(data):
        if data.config.properties.get(PARTITIONS_KEY):
            ConfigStore(data.storage).update({PARTITIONS_KEY: ""})
        data.storage.delete_tree(METADATA_TABLE)
        return
    folders = [entry.name for entry in data.storage.list(METADATA_TABLE) if entry.is_directory]
    known = (name for name in folders if name in PARTITIONS or name.startswith((SECONDARY_INDEX, EXPRESSION_INDEX)))
    remove_partitions(data, [name for name in known if name not in data.config.metadata_partitions])


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
        writer = PartitionWriter(self.storage, name, requested.requested_time, schema_text(metadata))
        count = Entries.counted(self.data, [name])[name]
        writer.open(count)
        with Entries(self.data, self.contents, writer.schema, f"{SPILL}{requested.requested_time}").of(name, count) as groups:
            stats = writer.fill(groups)
        outcome = build_metadata({name: tuple(stats)}, writer.schema)
        content = metadata.format.encode_commit(outcome)
        metadata.active.complete(inflight, content, instants.completion_time(self.clock))
        name_partitions(self.data, put=[name], define=definitions_of(self.data, name))
        self.data = self.data.advance()
