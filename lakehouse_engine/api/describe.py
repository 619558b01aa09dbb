"""Descriptions of a table in plain values."""

from __future__ import annotations

from typing import Any

from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.index.choice import choose_index
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Action
from lakehouse_engine.options import STORED_PREFIX, WriteOptions
from lakehouse_engine.read.moments import moment_of
from lakehouse_engine.timeline.restores import pending_restore
from lakehouse_engine.view.moment import at_one_moment
from lakehouse_engine.view.protected import savepoint_metadata
from lakehouse_engine.view.table_state import TableState

_COMPACTIONS = (Action.COMPACTION, Action.LOG_COMPACTION)


def describe_table(state: TableState) -> dict[str, Any]:
    """Facts of `lakehouse info`; bytes are those of the newest slices."""
    return at_one_moment(state, _describe_table)


def _describe_table(state: TableState) -> dict[str, Any]:
    config, slices = state.config, state.view.latest_slices()
    completed = state.timeline.completed().writes()
    last = completed.last()
    return {
        "name": config.name,
        "path": state.storage.root,
        "table_type": str(config.table_type),
        "table_version": int(config.version),
        "record_key": list(config.record_key_fields),
        "ordering_fields": list(config.ordering_fields),
        "partition_by": list(config.partition_fields),
        "key_generator": config.key_generator,
        "hive_style_partitioning": config.hive_style_partitioning,
        "columns": len(table_schema(state)),
        "latest_instant": last.requested_time if last else None,
        "commits": len(completed),
        "pending": [str(instant) for instant in state.timeline.pending()],
        "pending_compactions": [instant.requested_time for instant in state.timeline.pending() if instant.action in _COMPACTIONS],
        "unfinished_restore": _unfinished_restore(state),
        "savepoints": [
            f"{metadata.name} ({time})" if metadata.name else time for time, metadata in savepoint_metadata(state).items()
        ],
        "metadata_table": list(config.metadata_partitions),
        "index": str(choose_index(state, WriteOptions.read(config.prefixed(STORED_PREFIX)))),
        "partitions": len({piece.partition_path for piece in slices}),
        "base_files": sum(piece.base_file is not None for piece in slices),
        "log_files": sum(len(piece.log_files) for piece in slices),
        "bytes": sum(piece.size for piece in slices),
    }


def _unfinished_restore(state: TableState) -> str | None:
    restore = pending_restore(state.active, state.timeline)
    if restore is None:
        return None
    return f"{restore.instant.requested_time}: the table shows as of {restore.target}; its next change, or repair, finishes the restore"


def describe_columns(state: TableState, as_of: str | None = None) -> list[dict[str, Any]]:
    """One entry per column. `role` is the table's use of it."""
    return at_one_moment(state, lambda now: _describe_columns(now, as_of))


def _describe_columns(state: TableState, as_of: str | None) -> list[dict[str, Any]]:
    config = state.config
    ordering = [name.split(".")[0] for name in config.ordering_fields]
    roles = {"record key": config.record_key_fields, "ordering": ordering, "partition": config.partition_fields}
    schema = table_schema(state, None if as_of is None else moment_of(state, as_of))
    return [
        {
            "column": field.name,
            "type": str(field.type),
            "nullable": not config.constraints.is_not_null(field.name),
            "max_length": config.constraints.length_of(field.name),
            "role": ", ".join(role for role, names in roles.items() if field.name in names),
        }
        for field in schema
    ]


def describe_slice(piece: FileSlice) -> dict[str, Any]:
    """A file slice; sizes in bytes, paths relative to the table."""
    base = piece.base_file
    return {
        "partition": piece.partition_path,
        "file_id": piece.file_id,
        "instant": piece.base_instant,
        "base_file": base.path if base else None,
        "base_file_bytes": base.size if base else None,
        "log_files": len(piece.log_files),
        "log_bytes": sum(log.size for log in piece.log_files),
        "logs": [log.path for log in piece.log_files],
    }
