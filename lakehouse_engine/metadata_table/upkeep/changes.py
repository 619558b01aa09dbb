"""Changes of the whole metadata table for an action: one entry point for each kind of outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lakehouse_engine.format.metadata_table.definitions import IndexDefinition
from lakehouse_engine.format.metadata_table.merging import Records
from lakehouse_engine.metadata_table.building.plans import partitions_of, pending_builds
from lakehouse_engine.metadata_table.definitions import stored_definitions
from lakehouse_engine.metadata_table.delta import Change, encoded, schema_in_use
from lakehouse_engine.metadata_table.expressions.index import kept_expressions
from lakehouse_engine.metadata_table.partitions import BLOOM_FILTERS, COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX, SECONDARY_INDEX
from lakehouse_engine.metadata_table.records.instants import InstantMoments
from lakehouse_engine.metadata_table.records.pairs import indexed_column
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.metadata_table.trusted import is_by_partition
from lakehouse_engine.metadata_table.upkeep.files import FileChanges, cleaned_files, restored_files, rolled_back_files, written_files
from lakehouse_engine.metadata_table.upkeep.locations import KeyMoves, key_moves, location_change
from lakehouse_engine.metadata_table.upkeep.one_place import check_one_place
from lakehouse_engine.metadata_table.upkeep.secondary import secondary_change
from lakehouse_engine.metadata_table.upkeep.statistics import forgotten_files, statistics_of_commit
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.outcomes import Outcome
from lakehouse_engine.model.plans import HoodieCleanMetadata, HoodieRestoreMetadata, HoodieRollbackMetadata
from lakehouse_engine.view.table_state import TableState

_KEPT = frozenset({FILES, COLUMN_STATS, PARTITION_STATS, BLOOM_FILTERS})


@dataclass(frozen=True, slots=True)
class DeltaChanges:
    """Changes by partition of the metadata table, encoded in the Avro schema `schema`."""

    changes: dict[str, list[Change]]
    schema: str


def unkept_partitions(data: TableState) -> tuple[str, ...]:
    """Partitions of the metadata table that this engine cannot keep up to date: expression indexes on what it does not compute as Spark,
    secondary indexes on columns whose text it does not know, indexes of keys over a table without meta columns; and what is being built
    though no plan on the timeline says so, or rests on what is being built.
    """
    complete, being_built = data.config.metadata_partitions, data.config.metadata_partitions_being_built
    names = (*complete, *being_built)
    with_keys = {RECORD_INDEX, *_secondary_columns(data, names)} if data.config.populates_meta_fields else set()
    kept = {*_KEPT, *with_keys, *kept_expressions(data, names)}
    planned = {name for build in pending_builds(data) for name in partitions_of(data, build)} if being_built else set()
    unplanned = {name for name in being_built if name not in planned or name == PARTITION_STATS}
    return tuple(name for name in names if name not in kept or name in unplanned)


def _secondary_columns(data: TableState, names: Sequence[str]) -> dict[str, IndexDefinition]:
    """Definitions of those secondary indexes among the partitions that are kept, by their partition."""
    named = [name for name in names if name.startswith(SECONDARY_INDEX)]
    if not named:
        return {}
    known = stored_definitions(data)
    return {name: known[name] for name in named if name in known and indexed_column(data, known[name]) is not None}


def changes_of(table: MetadataTable, instant: Instant, outcome: Outcome) -> DeltaChanges | None:
    """Changes for an action whose files exist; None if it changes nothing here: a savepoint, and in versions 8 and 9 a rollback.
    `table.data` is the data table before it.

    Raises as `key_moves` and `check_one_place`, and `FormatError` or `StoredFileNotFoundError` for a file that cannot be read.
    """
    schema = schema_in_use(table)
    if isinstance(outcome, HoodieCommitMetadata):
        after = replace(table, data=table.data.with_columns_of(outcome))
        return DeltaChanges(_of_commit(after, instant, outcome, schema), schema)
    if isinstance(outcome, HoodieCleanMetadata):
        files = cleaned_files(outcome)
        return DeltaChanges({FILES: [_put(schema, files.records())], **_forgotten(table, files)}, schema)
    if isinstance(outcome, HoodieRestoreMetadata):
        return DeltaChanges({FILES: [_put(schema, restored_files(table.data.storage, outcome).records())]}, schema)
    if isinstance(outcome, HoodieRollbackMetadata):
        files = rolled_back_files(table.data.storage, outcome)
        return DeltaChanges({FILES: [_put(schema, files.records())]}, schema) if files.added else None
    return None


def _of_commit(table: MetadataTable, instant: Instant, metadata: HoodieCommitMetadata, schema: str) -> dict[str, list[Change]]:
    changes = {FILES: [_put(schema, written_files(metadata).records())]}
    for partition, (records, deleted) in statistics_of_commit(table, instant.requested_time, metadata).items():
        changes[partition] = [Change(encoded(schema, records), deleted)]
    if RECORD_INDEX in table.kept:
        changes[RECORD_INDEX] = list(_locations(table, instant.requested_time, metadata, schema))
    for partition, definition in _secondary_columns(table.data, table.kept).items():
        (column,), by_value = definition.source_fields, definition.version == "V2"
        change = secondary_change(table.data, instant.requested_time, metadata, column, schema, routes_by_value=by_value)
        changes[partition] = [change]
    return changes


def _locations(table: MetadataTable, instant_time: str, metadata: HoodieCommitMetadata, schema: str) -> Iterator[Change]:
    moves, millis = key_moves(table.data, instant_time, metadata), InstantMoments.of(table.data).millis(instant_time)
    parts: Iterable[tuple[str | None, KeyMoves]] = moves.by_partition().items() if is_by_partition(table) else [(None, moves)]
    for path, part in parts:
        check_one_place(table, metadata, part, path)
        yield location_change(part, millis, schema, path)


def _put(schema: str, records: Records) -> Change:
    return Change(encoded(schema, records))


def _forgotten(table: MetadataTable, files: FileChanges) -> dict[str, list[Change]]:
    return {partition: [Change(deleted=keys)] for partition, keys in forgotten_files(table, files.removed).items()}
