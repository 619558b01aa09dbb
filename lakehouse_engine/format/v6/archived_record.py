"""Converts state files of instants to records of the archived timeline and back (Hudi `MetadataConversionUtils.createMetaWrapper`)."""

from __future__ import annotations

from typing import Any

from lakehouse_engine.format.table_format import TableFormat
from lakehouse_engine.format.v6.metadata_avro import decode_record
from lakehouse_engine.model.archived import ArchivedEntry
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType

_ROLLING_STAT = "ROLLING_STAT"
"""Key that Hudi puts, without a value, into the extra metadata of every commit that it archives."""

_STAT = {
    "fileId": "file_id",
    "path": "path",
    "prevCommit": "prev_commit",
    "numWrites": "num_writes",
    "numDeletes": "num_deletes",
    "numUpdateWrites": "num_update_writes",
    "totalWriteBytes": "total_write_bytes",
    "totalWriteErrors": "total_write_errors",
    "partitionPath": "partition_path",
    "totalLogRecords": "total_log_records",
    "totalUpdatedRecordsCompacted": "total_updated_records_compacted",
    "numInserts": "num_inserts",
    "totalLogBlocks": "total_log_blocks",
    "totalCorruptLogBlock": "total_corrupt_log_block",
    "totalRollbackBlocks": "total_rollback_blocks",
    "fileSizeInBytes": "file_size_in_bytes",
}
"""Members of an archived write stat; others are not archived."""

_COMMIT_MEMBERS = ("hoodieCommitMetadata", "hoodieReplaceCommitMetadata")


def archived_entry(table_format: TableFormat, instant: Instant, data: bytes, transition_time: str) -> ArchivedEntry:
    """The entry of one state of an instant, from the content of its state file.

    Raises `CorruptInstantError` and `MetadataError` if the content does not decode.
    """
    record = {
        **_content(table_format, instant, data),
        "commitTime": instant.requested_time,
        "actionType": str(instant.action.completes_as if instant.is_completed else instant.action),
        "version": None,
        "actionState": instant.state.name,
        "stateTransitionTime": transition_time,
    }
    return ArchivedEntry(instant, transition_time, record)


def archived_commit(entry: ArchivedEntry) -> HoodieCommitMetadata | None:
    """Commit metadata of a completed write, as far as the archive keeps it; None for other entries."""
    record = next((found for name in _COMMIT_MEMBERS if (found := entry.record.get(name)) is not None), None)
    if record is None or not entry.instant.is_completed:
        return None
    replaced = record.get("partitionToReplaceFileIds")
    return HoodieCommitMetadata(
        partition_to_write_stats={
            partition: tuple(_stat(stat) for stat in stats) for partition, stats in (record.get("partitionToWriteStats") or {}).items()
        },
        operation_type=_operation(record.get("operationType")),
        extra_metadata={key: value for key, value in (record.get("extraMetadata") or {}).items() if key != _ROLLING_STAT},
        partition_to_replace_file_ids=None if replaced is None else {partition: tuple(ids) for partition, ids in replaced.items()},
    )


def _content(table_format: TableFormat, instant: Instant, data: bytes) -> dict[str, Any]:
    action, state = instant.action, instant.state
    if action is Action.REPLACE_COMMIT:
        return _replace_commit(table_format, state, data)
    if action is Action.CLEAN:
        plan = state is not State.COMPLETED
        name = "HoodieCleanerPlan" if plan else "HoodieCleanMetadata"
        # Hudi 1.x leaves the inflight file of a clean empty.
        return {"hoodieCleanerPlan" if plan else "hoodieCleanMetadata": decode_record(name, data)} if data or not plan else {}
    if action is Action.ROLLBACK:
        return {"hoodieRollbackMetadata": decode_record("HoodieRollbackMetadata", data)} if state is State.COMPLETED else {}
    if action in (Action.COMPACTION, Action.LOG_COMPACTION) and state is not State.COMPLETED:
        return {"hoodieCompactionPlan": decode_record("HoodieCompactionPlan", data)} if state is State.REQUESTED and data else {}
    return {"hoodieCommitMetadata": _commit(_decoded(table_format, data))}


def _replace_commit(table_format: TableFormat, state: State, data: bytes) -> dict[str, Any]:
    if state is State.REQUESTED:
        return {"hoodieRequestedReplaceMetadata": decode_record("HoodieRequestedReplaceMetadata", data)} if data else {}
    if state is State.INFLIGHT:
        return {"HoodieInflightReplaceMetadata": _commit(table_format.decode_commit(data))} if data else {}
    metadata = table_format.decode_commit(data)
    replaced = metadata.partition_to_replace_file_ids or {}
    members = {"partitionToReplaceFileIds": {partition: list(ids) for partition, ids in replaced.items()}}
    return {"hoodieReplaceCommitMetadata": _commit(metadata) | members}


def _decoded(table_format: TableFormat, data: bytes) -> HoodieCommitMetadata:
    return table_format.decode_commit(data) if data else HoodieCommitMetadata(operation_type=WriteOperationType.UNKNOWN)


def _commit(metadata: HoodieCommitMetadata) -> dict[str, Any]:
    stats = metadata.partition_to_write_stats
    return {
        "partitionToWriteStats": {
            partition: [{name: getattr(stat, attribute) for name, attribute in _STAT.items()} for stat in stats[partition]]
            for partition in stats
        },
        "extraMetadata": {key: value for key, value in metadata.extra_metadata.items() if value is not None} | {_ROLLING_STAT: ""},
        "version": None,
        "operationType": None if metadata.operation_type is None else str(metadata.operation_type),
    }


def _stat(record: dict[str, Any]) -> HoodieWriteStat:
    values: dict[str, Any] = {attribute: record.get(name) for name, attribute in _STAT.items()}
    numbers: dict[str, Any] = {key: value or 0 for key, value in values.items() if key.startswith(("num_", "total_", "file_size"))}
    return HoodieWriteStat(**{**values, **numbers})


def _operation(text: str | None) -> WriteOperationType | None:
    known = WriteOperationType.__members__
    return known.get(text, WriteOperationType.UNKNOWN) if text else None
