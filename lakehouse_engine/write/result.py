"""Counts for the caller, from the commit record."""

from __future__ import annotations

from lakehouse_engine.commit.transaction import Transaction
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.write_stats import WriteOperationType, WriteResult

_NEW_GROUP = "null"


def result_of(transaction: Transaction, metadata: HoodieCommitMetadata, *, dropped: int = 0, moves: int = 0) -> WriteResult:
    """What a commit did. A record that moved to another partition (`moves`) is an update, though it was deleted and inserted."""
    stats = list(metadata.write_stats())
    logs = [stat for stat in stats if stat.log_version is not None]
    created = [stat for stat in stats if stat.prev_commit == _NEW_GROUP and stat.log_version is None]
    return WriteResult(
        operation=metadata.operation_type or WriteOperationType.UNKNOWN,
        table_type=transaction.state.config.table_type.value,
        instant=transaction.instant_time,
        previous_instant=transaction.previous_instant,
        inserts=sum(stat.num_inserts for stat in stats) - moves,
        updates=sum(stat.num_update_writes for stat in stats) + moves,
        deletes=sum(stat.num_deletes for stat in stats) - moves,
        files_created=len(created),
        files_updated=len(stats) - len(created) - len(logs),
        log_files=len(logs),
        bytes_written=sum(stat.total_write_bytes for stat in stats),
        duplicates_dropped=dropped,
    )


def no_change(operation: WriteOperationType, transaction: Transaction, dropped: int = 0) -> WriteResult:
    """Nothing was written and there is no commit."""
    return WriteResult(
        operation=operation,
        table_type=transaction.state.config.table_type.value,
        instant=None,
        previous_instant=transaction.previous_instant,
        duplicates_dropped=dropped,
    )
