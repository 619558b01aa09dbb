"""What happened to a table, newest first, for people to read."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse_engine.view.table_state import TableState


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One instant. Counts are rows, and None where the action is no write or not completed."""

    instant: str
    action: str
    state: str
    operation: str | None = None
    inserts: int | None = None
    updates: int | None = None
    deletes: int | None = None
    files: int | None = None
    bytes_written: int | None = None


def history(state: TableState, limit: int | None = None) -> list[HistoryEntry]:
    """Instants of the active timeline, newest first, at most `limit`."""
    entries = []
    for instant in list(reversed(state.timeline.instants))[:limit]:
        if not (instant.is_completed and instant.action.is_write):
            entries.append(HistoryEntry(instant.requested_time, str(instant.action), str(instant.state)))
            continue
        metadata = state.commit_metadata(instant)
        stats = list(metadata.write_stats())
        entries.append(
            HistoryEntry(
                instant.requested_time,
                str(instant.action),
                str(instant.state),
                operation=str(metadata.operation_type) if metadata.operation_type else None,
                inserts=sum(stat.num_inserts for stat in stats),
                updates=sum(stat.num_update_writes for stat in stats),
                deletes=sum(stat.num_deletes for stat in stats),
                files=len(stats),
                bytes_written=sum(stat.total_write_bytes for stat in stats),
            )
        )
    return entries
