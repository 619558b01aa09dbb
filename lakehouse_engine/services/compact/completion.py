"""Common to both kinds of compaction: the context of their files, and the metadata of their commits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.format.avro.arrow_avro import table_avro_schema, with_meta_columns
from lakehouse_engine.model.commit_metadata import SCHEMA_KEY, HoodieCommitMetadata, checksum_metadata
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.services.executor.service import Job, Kind
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.tasks.base_files import FileContext


def schema_text(state: TableState, time: str) -> str:
    """The Avro schema of the table's columns as of an instant, without meta columns."""
    return table_avro_schema(state.config.name, table_schema(state, time), allow_timestamp_ntz=True)


def file_context(state: TableState, time: str, schema: str, options: WriteOptions) -> FileContext:
    """Context for the files of a compaction, with the table's columns as of its instant."""
    keys = state.config.record_key_fields
    return FileContext(
        storage=state.storage,
        instant_time=time,
        schema=table_schema(state, time),
        avro_schema=with_meta_columns(schema),
        options=options,
        unique_columns=frozenset(keys) if len(keys) == 1 else frozenset(),
        populate=state.config.populates_meta_fields,
        logs_by_writer=state.format.logs_by_writer,
    )


def compaction_metadata(kind: Kind, job: Job[Any, Any], stats: Sequence[HoodieWriteStat]) -> HoodieCommitMetadata:
    """Metadata that completes a compaction or log compaction which wrote these files."""
    by_partition: dict[str, list[HoodieWriteStat]] = {}
    for stat in stats:
        by_partition.setdefault(stat.partition_path or "", []).append(stat)
    return HoodieCommitMetadata(
        partition_to_write_stats={path: tuple(group) for path, group in by_partition.items()},
        operation_type=kind.operation,
        compacted=True,
        extra_metadata={SCHEMA_KEY: schema_text(job.state, job.requested.requested_time), **checksum_metadata(stats)},
    )
