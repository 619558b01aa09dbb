"""What a query reads: plans of snapshot, time-travel, read-optimized and incremental reads (hudi-format 6 and 10.8).

A plan is data: base files, a schema, and for incremental reads a range of commit times. The listing says which files there are; the
metadata of the writes on the active timeline says which there must be, and a difference is an error, never fewer rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakehouse_engine.errors import InstantCleanedError, OptionError, UnsupportedTableError
from lakehouse_engine.model.files import BaseFile, FileSlice
from lakehouse_engine.model.instant import InstantRange
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.read.base_file import missing_file
from lakehouse_engine.read.completeness import ExpectedFile, earliest_readable, lost_files, pinned_files, proven_since, removed_by
from lakehouse_engine.read.schema import table_schema
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.table_state import TableState

FROM_START = ("000", "earliest")
"""Values of `begin` that mean every commit, as Hudi's incremental queries and `hudi_table_changes` take them."""

METADATA_BOOTSTRAP_INSTANT = "00000000000001"
_SCHEMA_HISTORY = ".hoodie/.schema"


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """Base files to read whole, in listing order, and how to read them.

    `schema` holds the user columns that every file is brought to. `instant` is the newest completed write that the plan sees (None:
    the table has none). With `commit_range`, only rows whose `_hoodie_commit_time` is in it belong to the result.
    """

    storage: Storage
    files: tuple[BaseFile, ...]
    schema: pa.Schema
    instant: str | None
    commit_range: InstantRange | None = None

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def plan_snapshot(state: TableState, as_of: str | None = None, *, read_optimized: bool = False) -> ScanPlan:
    """All rows of the table now, or as they were at `as_of`.

    `as_of` is an instant time (`model.instant.as_of_instant_time` makes one of other forms, in UTC: for a table whose timeline zone
    is LOCAL its digits are the writer's local time, whose zone no reader can know). Before the first commit there are no rows.
    `read_optimized` reads the base files of a merge-on-read table and leaves its logs aside.

    Raises `InstantCleanedError` where a clean or the archival took what the table was at `as_of`, naming the earliest instant that
    can be read (unlike Hudi, instants before the last clean's `earliestCommitToRetain` are readable while all their files are
    there), `MissingFileError` for a lost base file, `UnsupportedTableError` for tables that are refused by name, and `OptionError`
    for an `as_of` that is no instant time.
    """
    check_readable(state, read_optimized=read_optimized)
    if as_of is None:
        slices = state.view.latest_slices()
        _refuse_lost(state, lost_files(state, None, slices))
        return _plan(state, _base_files(state, slices), table_schema(state), None)
    _instant_time("as_of", as_of)
    return _plan(state, _files_as_of(state, as_of), table_schema(state, as_of), as_of)


def plan_incremental(state: TableState, begin: str | None, end: str | None = None) -> ScanPlan:
    """Rows that changed after `begin` and not after `end` (instant times), as they were at `end`; deleted rows do not show.

    `begin` None, "000" or "earliest" starts with the table's first commit; `end` None ends with the last. Rows come in the table's
    current schema. Unlike Hudi 0.15 (and like Hudi 1.x), a range that starts before the active timeline includes rows of archived
    commits. Raises `InstantCleanedError` where a base file that the range needs was cleaned, `OptionError` for a range that ends
    before it begins or for bounds that are no instant times, `UnsupportedTableError` for a table without meta columns and others that
    are refused by name.
    """
    check_readable(state)
    if not state.config.populates_meta_fields:
        raise UnsupportedTableError(
            "incremental reads need _hoodie_commit_time, and the table has no meta columns (hoodie.populate.meta.fields=false)",
            table=state.config.name,
        )
    window = InstantRange(None if begin in FROM_START else _instant_time("begin", begin), _instant_time("end", end))
    if window.begin is not None and window.end is not None and window.end < window.begin:
        raise OptionError(f"an incremental read from {window.begin} to {window.end} ends before it begins")
    slices = _changed(state, window)
    return _plan(state, _base_files(state, slices), table_schema(state), end, window)


def check_readable(state: TableState, *, read_optimized: bool = False) -> None:
    """Refuse by name what would otherwise be read wrongly. Raises `UnsupportedTableError`."""
    config = state.config
    if config.table_type is TableType.MERGE_ON_READ and not read_optimized:
        raise UnsupportedTableError(
            "merge-on-read tables can be read in read-optimized form only (base files without their logs)", table=config.name
        )
    if config.drops_partition_columns:
        raise UnsupportedTableError(
            "the partition columns are not in the data files (hoodie.datasource.write.drop.partition.columns=true)", table=config.name
        )
    if any(entry.name.endswith(".schemacommit") for entry in state.storage.list(_SCHEMA_HISTORY)):
        raise UnsupportedTableError(
            "the table has a schema-on-read history (hoodie.schema.on.read.enable): columns may have been renamed or re-created"
            " under an old name, which plain schemas do not tell; rewrite the table to read it here",
            table=config.name,
        )


def _plan(
    state: TableState, files: tuple[BaseFile, ...], schema: pa.Schema, until: str | None, window: InstantRange | None = None
) -> ScanPlan:
    writes = [instant.requested_time for instant in state.timeline.completed().writes().instants]
    seen = [time for time in writes if until is None or time <= until]
    return ScanPlan(state.storage, files, schema, seen[-1] if seen else None, window)


def _base_files(state: TableState, slices: Sequence[FileSlice]) -> tuple[BaseFile, ...]:
    files = tuple(piece.base_file for piece in slices if piece.base_file is not None)
    if any(file.instant_time == METADATA_BOOTSTRAP_INSTANT for file in files):
        raise UnsupportedTableError(
            "the table was bootstrapped with METADATA_ONLY, and rows are still in the source files outside of it",
            table=state.config.name,
            source=state.config.bootstrap_base_path,
        )
    return files


def _files_as_of(state: TableState, as_of: str) -> tuple[BaseFile, ...]:
    slices = state.view.slices_as_of(as_of)
    lost = lost_files(state, as_of, slices)
    if not lost and as_of >= proven_since(state):
        return _base_files(state, slices)
    pinned = pinned_files(state, as_of)
    if pinned is not None:
        return pinned
    raise _cleaned(state, as_of, lost)


def _cleaned(state: TableState, instant_time: str, lost: Sequence[ExpectedFile]) -> InstantCleanedError:
    earliest = earliest_readable(state, instant_time)
    detail = f"{lost[0]} is gone" if lost else "its commits are archived"
    hint = f"the earliest instant that can be read is {earliest}" if earliest else "only the current snapshot can be read"
    return InstantCleanedError(
        f"the table can no longer be read as of {instant_time}: {detail}; {hint}",
        table=state.config.name,
        instant=instant_time,
        earliest=earliest,
    )


def check_complete(state: TableState) -> None:
    """Raise `MissingFileError` when a base file of the current snapshot is gone, `UnsupportedTableError` when one lacks its rows.

    A write that merges into files must ask: it would go on from the version before, and the loss would never show again.
    """
    slices = state.view.latest_slices()
    _base_files(state, slices)
    _refuse_lost(state, lost_files(state, None, slices))


def _refuse_lost(state: TableState, lost: Sequence[ExpectedFile]) -> None:
    if lost:
        clean = removed_by(state, lost[0].path)
        who = f"the clean {clean} deleted it, though" if clean else "no clean on the timeline deleted it, and"
        raise missing_file(lost[0].path, f"{who} no later write replaced it; restore the file, or restore the table to a savepoint")


def _instant_time(name: str, value: str | None) -> str | None:
    if value is not None and not value.isdigit():
        raise OptionError(f"{name}={value!r} is no instant time (yyyyMMddHHmmssSSS)")
    return value


def _changed(state: TableState, window: InstantRange) -> list[FileSlice]:
    """Slices at the end of the window that were written within it: only they can hold rows of its commits."""
    slices = state.view.latest_slices() if window.end is None else state.view.slices_as_of(window.end)
    lost = lost_files(state, window.end, slices, begin=window.begin)
    if window.end is None:
        _refuse_lost(state, lost)
    elif lost or window.end < proven_since(state):
        raise _cleaned(state, window.end, lost)
    return [piece for piece in slices if piece.base_instant in window]
