"""What both kinds of compaction share: how their files are made, and what their commits say."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.format.avro.arrow_avro import with_meta_columns
from lakehouse_engine.model.commit_metadata import SCHEMA_KEY, HoodieCommitMetadata, checksum_metadata
from lakehouse_engine.model.instant import State
from lakehouse_engine.model.plans import HoodieCompactionPlan
from lakehouse_engine.model.services import CompactionResult
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.tasks.base_files import FileContext


def file_context(state: TableState, time: str, schema_text: str, options: WriteOptions) -> FileContext:
    """What the files of a compaction share: the table's columns as of its instant."""
    keys = state.config.record_key_fields
    return FileContext(
        storage=state.storage,
        instant_time=time,
        schema=table_schema(state, time),
        avro_schema=with_meta_columns(schema_text),
        options=options,
        unique_columns=frozenset(keys) if len(keys) == 1 else frozenset(),
        partition_columns=state.config.partition_fields,
        populate=state.config.populates_meta_fields,
        logs_by_writer=state.layout.orders_by_completion,
    )


def compaction_metadata(operation: WriteOperationType, stats: Sequence[HoodieWriteStat], schema_text: str) -> HoodieCommitMetadata:
    by_partition: dict[str, list[HoodieWriteStat]] = {}
    for stat in stats:
        by_partition.setdefault(stat.partition_path or "", []).append(stat)
    return HoodieCommitMetadata(
        partition_to_write_stats={path: tuple(group) for path, group in by_partition.items()},
        operation_type=operation,
        compacted=True,
        extra_metadata={SCHEMA_KEY: schema_text, **checksum_metadata(stats)},
    )


def completed_result(time: str, metadata: HoodieCommitMetadata, plan: HoodieCompactionPlan) -> CompactionResult:
    stats = list(metadata.write_stats())
    return CompactionResult(
        instant=time,
        operation=str(metadata.operation_type),
        state=str(State.COMPLETED),
        operations=plan.operations or (),
        files_created=len(stats),
        rows_written=sum(stat.num_writes for stat in stats),
        bytes_written=sum(stat.total_write_bytes for stat in stats),
        log_files_compacted=sum(stat.total_log_files_compacted for stat in stats),
    )
