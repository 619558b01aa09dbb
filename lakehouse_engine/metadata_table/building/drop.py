"""Drops a metadata table, or partitions of it: first the names, by which readers go, then the definitions, then the files (design: metadata
table, section 11.2).
"""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse_engine.errors import OptionError
from lakehouse_engine.metadata_table.building.naming import IN_PROGRESS_KEY, PARTITIONS_KEY, undefine, unname_partitions
from lakehouse_engine.metadata_table.building.plans import partitions_of, pending_builds
from lakehouse_engine.metadata_table.partitions import COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX, SECONDARY_INDEX
from lakehouse_engine.metadata_table.table import METADATA_TABLE
from lakehouse_engine.view.table_state import TableState


def drop(data: TableState, partitions: Sequence[str] | None = None) -> tuple[str, ...]:
    """Drop partitions, or with None the whole metadata table; returns the names of what was dropped. The table's lock is held.

    Without `files` nothing of a metadata table is used, so that name drops all of it, and `column_stats` drops `partition_stats` too. What
    is dropped whole keeps the definitions of its indexes: Hudi builds secondary and expression indexes from them again.

    Raises as `check_partitions`, with nothing changed.
    """
    check_partitions(data, partitions)
    present = data.config.metadata_partitions
    if partitions is not None and not partitions:
        return ()
    if partitions is None or FILES in partitions:
        return _drop_all(data)
    dropped = {*partitions, *([PARTITION_STATS] if COLUMN_STATS in partitions else [])} & set(present)
    unname_partitions(data, dropped)
    undefine(data, sorted(dropped))
    for name in sorted(dropped):
        data.storage.delete_tree(f"{METADATA_TABLE}/{name}")
    return tuple(sorted(dropped))


def check_partitions(data: TableState, partitions: Sequence[str] | None) -> None:
    """Raise `OptionError` for a partition that the metadata table does not have."""
    present = data.config.metadata_partitions
    unknown = [name for name in partitions or () if name not in present]
    if unknown:
        there = ", ".join(present) or "none"
        raise OptionError(f"the metadata table of {data.config.name} has no partition {unknown[0]!r} to drop; it has {there}")


def check_not_needed(data: TableState, partitions: Sequence[str]) -> None:
    """Raise `OptionError` if the record index is to go, and a secondary index that stays, or is planned, finds its rows by it."""
    if RECORD_INDEX not in partitions or FILES in partitions:
        return
    planned = (name for build in pending_builds(data) for name in partitions_of(data, build))
    for name in (*data.config.metadata_partitions, *planned):
        if name.startswith(SECONDARY_INDEX) and name not in partitions:
            raise OptionError(
                f"{data.config.name}: the secondary index {name.removeprefix(SECONDARY_INDEX)} needs the record index; drop it first",
                table=data.config.name,
            )


def _drop_all(data: TableState) -> tuple[str, ...]:
    if any(data.config.properties.get(key) for key in (PARTITIONS_KEY, IN_PROGRESS_KEY)):
        unname_partitions(data, (*data.config.metadata_partitions, *data.config.metadata_partitions_being_built))
    data.storage.delete_tree(METADATA_TABLE)
    return data.config.metadata_partitions
