"""What a query reads: plans of snapshot, time-travel, read-optimized and incremental reads (hudi-format 6 and 10.8).

A plan is data: base files, slices with logs, a schema, and for incremental reads a range of commit times. The listing says which
files there are; the metadata of the writes on the active timeline says which there must be, and a difference is an error, never fewer
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import (
    CorruptFileError,
    CorruptLogError,
    InstantCleanedError,
    LakehouseError,
    MetadataError,
    MissingFileError,
    OptionError,
    TimelineRestoredError,
    UnsupportedTableError,
)
from lakehouse_engine.model.files import BaseFile, FileSlice
from lakehouse_engine.model.instant import InstantRange
from lakehouse_engine.read.base_file import missing_file
from lakehouse_engine.read.completeness import (
    ChangedSize,
    ExpectedFile,
    Within,
    changed_sizes,
    earliest_readable,
    log_promises,
    logged_slices,
    lost_files,
    pinned_slices,
    proven_since,
    removed_by,
)
from lakehouse_engine.read.log_scanner import LoggedSlice, LogScope
from lakehouse_engine.read.merge_rules import MergeRules
from lakehouse_engine.read.pruning import Scope, slices_of
from lakehouse_engine.read.row_filter import RowFilter
from lakehouse_engine.read.schema import table_schema
from lakehouse_engine.read.slice_reader import SliceReader
from lakehouse_engine.record.partition_values import PathRules
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.view.restores import RestoreRecord, restores
from lakehouse_engine.view.table_state import TableState

FROM_START = ("000", "earliest")
"""Values of `begin` that mean every commit, as Hudi's incremental queries and `hudi_table_changes` take them."""

ON_RESTORE = ("fail", "resync", "rewind")
"""What an incremental read does where a restore took back what had been read before."""

_NAMED = 5
METADATA_BOOTSTRAP_INSTANT = "00000000000001"
_SCHEMA_HISTORY = ".hoodie/.schema"


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """Base files to read whole and slices to merge, in listing order, and how to read them.

    `schema` holds the user columns that every file is brought to. `instant` is the newest completed write that the plan sees (None:
    the table has none). With `commit_range`, only rows whose `_hoodie_commit_time` is in it belong to the result. `logged` are the
    slices with log files, `reader` reads them; it is None where there are none. With `verify`, checksums of the files are. Only rows that
    `wanted` is true of belong to the result; of partitions that can have none, files and slices are not in the plan. `rules` say what
    partition paths tell of the rows in them, where that is known.
    """

    storage: Storage
    files: tuple[BaseFile, ...]
    schema: pa.Schema
    instant: str | None
    commit_range: InstantRange | None = None
    logged: tuple[LoggedSlice, ...] = ()
    reader: SliceReader | None = None
    verify: bool = True
    wanted: RowFilter | None = None
    rules: PathRules | None = None

    def verified(self, verify: bool) -> ScanPlan:
        """The same plan, with or without looking at checksums (`lakehouse.read.verify.checksums`)."""
        return replace(self, verify=verify, reader=None if self.reader is None else replace(self.reader, verify=verify))

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files) + sum(piece.slice.size for piece in self.logged)


@dataclass(frozen=True, slots=True)
class Filters:
    """What rows are asked for, as an expression; with `trusts_paths`, partition paths count for what the rows in them hold."""

    expression: pc.Expression
    trusts_paths: bool = False

    def scope(self, state: TableState, schema: pa.Schema) -> Scope:
        """Raises `OptionError` for an expression that does not fit the table."""
        return Scope.of(state, RowFilter.of(self.expression, schema), schema, trusted=self.trusts_paths)


def plan_snapshot(
    state: TableState, as_of: str | None = None, *, read_optimized: bool = False, filters: Filters | None = None
) -> ScanPlan:
    """All rows of the table now, or as they were at `as_of`.

    `as_of` is an instant time (`model.instant.as_of_instant_time` makes one of other forms, in UTC: for a table whose timeline zone
    is LOCAL its digits are the writer's local time, whose zone no reader can know). Before the first commit there are no rows.
    `read_optimized` reads the base files of a merge-on-read table and leaves its logs aside. `filters` are about the table's columns at
    that time; of partitions that they rule out nothing is listed, so nothing that they lost is noticed.

    Raises `InstantCleanedError` where a clean or the archival took what the table was at `as_of`, naming the earliest instant that
    can be read (unlike Hudi, instants before the last clean's `earliestCommitToRetain` are readable while all their files are
    there), `MissingFileError` for a lost file, `CorruptFileError` and `CorruptLogError` for one that has not the size that was written,
    `UnsupportedTableError` for tables that are refused by name, and `OptionError` for an `as_of` that is no instant time, or filters that
    do not fit.
    """
    check_readable(state)
    logs = not read_optimized
    if as_of is not None:
        _instant_time("as_of", as_of)
    scope = None if filters is None else filters.scope(state, table_schema(state, as_of))
    slices = _latest(state, logs=logs, scope=scope) if as_of is None else _slices_as_of(state, as_of, logs, scope)
    return _plan(state, slices, as_of, logs=logs, scope=scope)


def plan_incremental(
    state: TableState, begin: str | None, end: str | None = None, *, on_restore: str = "fail", filters: Filters | None = None
) -> ScanPlan:
    """Rows that changed after `begin` and not after `end` (instant times), as they were at `end`; deleted rows do not show.

    `begin` None, "000" or "earliest" starts with the table's first commit; `end` None ends with the last. Rows come in the table's
    current schema. Unlike Hudi 0.15 (and like Hudi 1.x), a range that starts before the active timeline includes rows of archived
    commits.

    Where a restore took back something that a reader up to `begin` has read, `on_restore` says what to do: "fail" raises
    `TimelineRestoredError`, "resync" answers with the whole snapshot as of `end`, and "rewind" with what changed after the instant that
    the table was restored to (rows of keys that were taken back do not show as gone; a reader that applies changes by key has to put up
    with them). Raises `InstantCleanedError` where a base file that the range needs was cleaned, `OptionError` for a range that ends
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
    if on_restore not in ON_RESTORE:
        raise OptionError(f"on_restore={on_restore!r} is not one of {', '.join(ON_RESTORE)}")
    restored = _restore_behind(state, window.begin)
    if restored is not None:
        if on_restore == "fail":
            raise _restored(state, window.begin, restored)
        if on_restore == "resync":
            return plan_snapshot(state, end, filters=filters)
        return plan_incremental(state, restored.target, end, on_restore=on_restore, filters=filters)
    scope = None if filters is None else filters.scope(state, table_schema(state))
    return _plan(state, _changed_within(state, window, scope), end, window=window, scope=scope)


def _restore_behind(state: TableState, begin: str | None) -> RestoreRecord | None:
    """The restore to the earliest instant of those that took back something not after `begin`."""
    if begin is None:
        return None
    records = restores(ActiveTimeline(state.storage, state.layout), state.timeline)
    return min((record for record in records if record.took_back(begin)), key=lambda record: record.target, default=None)


def _restored(state: TableState, begin: str | None, record: RestoreRecord) -> TimelineRestoredError:
    read = [time for time in record.rolled_back if begin is not None and time <= begin]
    named = ", ".join(read[:_NAMED]) + (f" and {len(read) - _NAMED} more" if len(read) > _NAMED else "")
    return TimelineRestoredError(
        f"the table was restored to {record.target} by {record.instant.requested_time}: what was read up to {begin} is no longer part of it"
        f" (taken back: {named or 'archived commits'}). Read the table anew (on_restore='resync'), or go on from {record.target}"
        " (on_restore='rewind')",
        table=state.config.name,
        restore=record.instant.requested_time,
        target=record.target,
        rolled_back=",".join(record.rolled_back),
    )


def check_readable(state: TableState) -> None:
    """Refuse by name what would otherwise be read wrongly. Raises `UnsupportedTableError`."""
    config = state.config
    if config.drops_partition_columns:
        raise UnsupportedTableError(
            "the partition columns are not in the data files (hoodie.datasource.write.drop.partition.columns=true); copy the rows with"
            " Hudi into a table that keeps them",
            table=config.name,
        )
    if any(entry.name.endswith(".schemacommit") for entry in state.storage.list(_SCHEMA_HISTORY)):
        raise UnsupportedTableError(
            "the table has a schema-on-read history (hoodie.schema.on.read.enable): columns may have been renamed or re-created"
            " under an old name, which plain schemas do not tell; copy the rows with Hudi into a new table",
            table=config.name,
        )


def _plan(
    state: TableState,
    slices: Sequence[FileSlice],
    until: str | None,
    *,
    window: InstantRange | None = None,
    logs: bool = True,
    scope: Scope | None = None,
) -> ScanPlan:
    """`until` is the instant as of which the table is read; incremental rows come in the current schema nonetheless."""
    _refuse_bootstrapped(state, slices)
    logged = [piece for piece in slices if piece.log_files] if logs else []
    files = tuple(piece.base_file for piece in slices if piece.base_file is not None and not (logs and piece.log_files))
    schema = table_schema(state, None if window is not None else until)
    writes = [instant.requested_time for instant in state.timeline.completed().writes().instants]
    seen = [time for time in writes if until is None or time <= until]
    wanted = None if scope is None else scope.wanted
    plan = ScanPlan(state.storage, files, schema, seen[-1] if seen else None, window, wanted=wanted)
    return _with_logs(state, plan, logged, window or InstantRange(None, until)) if logged else plan


def _with_logs(state: TableState, plan: ScanPlan, slices: Sequence[FileSlice], window: InstantRange) -> ScanPlan:
    logged = tuple(logged_slices(state, window.end, slices))
    reader = SliceReader(state.storage, plan.schema, MergeRules.of(state.config, plan.schema), LogScope.of(state.timeline, window))
    return replace(plan, logged=logged, reader=reader)


def _refuse_bootstrapped(state: TableState, slices: Sequence[FileSlice]) -> None:
    if any(piece.base_file is not None and piece.base_file.instant_time == METADATA_BOOTSTRAP_INSTANT for piece in slices):
        raise UnsupportedTableError(
            "the table was bootstrapped with METADATA_ONLY, and rows are still in the source files outside of it; copy the rows"
            " with Hudi into a new table",
            table=state.config.name,
            source=state.config.bootstrap_base_path,
        )


def complete_slices(state: TableState, as_of: str) -> list[FileSlice]:
    """The slices that make the table as of an instant time, logs and all, with every file of them there.

    Raises `MissingFileError` where a file of the newest snapshot is lost, `InstantCleanedError` where one of an older one is gone.
    """
    last = state.timeline.completed().writes().last()
    if last is not None and as_of >= last.requested_time:
        check_complete(state)
        return state.view.latest_slices()
    return _slices_as_of(state, as_of, True, None)


def _latest(state: TableState, *, logs: bool, scope: Scope | None = None) -> list[FileSlice]:
    """The slices that make the table now. Raises where a file is not there, or has another size than was written."""
    slices = slices_of(state, None, scope)
    _refuse_lost(state, lost_files(state, None, slices, logs=logs, within=_kept(scope)))
    _refuse_changed(changed_sizes(state, None, slices, logs=logs))
    return slices


def _slices_as_of(state: TableState, as_of: str, logs: bool, scope: Scope | None) -> list[FileSlice]:
    try:
        return _listed_as_of(state, as_of, logs, scope)
    except MetadataError as error:
        # A later write that is damaged says nothing about what was there before it.
        slices = _known_as_of(state, as_of, logs, scope)
        if slices is None:
            raise error from error.__cause__
        return slices


def _known_as_of(state: TableState, as_of: str, logs: bool, scope: Scope | None) -> list[FileSlice] | None:
    """The slices by the word of writes not after `as_of` alone, with every file of them there; None where those do not tell."""
    try:
        slices = _pinned(state, as_of, scope)
        if slices is None:
            before = state.up_to(as_of)
            slices = slices_of(before, as_of, scope)
            is_told = as_of >= proven_since(state) and state.archived_files().is_known
            if not is_told or lost_files(before, as_of, slices, logs=logs, within=_kept(scope)):
                return None
        _refuse_changed(changed_sizes(state, as_of, slices, logs=logs))
    except MetadataError:
        return None
    return slices


def _pinned(state: TableState, instant_time: str, scope: Scope | None) -> list[FileSlice] | None:
    slices = pinned_slices(state, instant_time)
    if slices is None or scope is None:
        return slices
    partitions = frozenset(scope.within(piece.partition_path for piece in slices))
    return [piece for piece in slices if piece.partition_path in partitions]


def _listed_as_of(state: TableState, as_of: str, logs: bool, scope: Scope | None) -> list[FileSlice]:
    slices = slices_of(state, as_of, scope)
    lost = lost_files(state, as_of, slices, logs=logs, within=_kept(scope))
    if not lost and as_of >= proven_since(state):
        _refuse_changed(changed_sizes(state, as_of, slices, logs=logs))
        return slices
    pinned = _pinned(state, as_of, scope)
    if pinned is not None:
        _refuse_changed(changed_sizes(state, as_of, pinned, logs=logs))
        return pinned
    raise _gone(state, as_of, lost, logs=logs)


def _gone(state: TableState, instant_time: str, lost: Sequence[ExpectedFile], *, logs: bool) -> InstantCleanedError | MissingFileError:
    """No clean takes a file that the table needs as it is now."""
    needed = {file.path for file in lost_files(state, None, state.view.latest_slices(), logs=logs)} if lost else set()
    still = [file for file in lost if file.path in needed]
    return _lost(state, still[0]) if still else _cleaned(state, instant_time, lost, logs=logs)


def _cleaned(state: TableState, instant_time: str, lost: Sequence[ExpectedFile], *, logs: bool) -> InstantCleanedError:
    earliest = earliest_readable(state, instant_time, logs=logs)
    detail = f"{lost[0]} is gone" if lost else "its commits are archived"
    hint = f"the earliest instant that can be read is {earliest}" if earliest else "only the current snapshot can be read"
    return InstantCleanedError(
        f"the table can no longer be read as of {instant_time}: {detail}; {hint}",
        table=state.config.name,
        instant=instant_time,
        earliest=earliest,
    )


def check_complete(state: TableState, partitions: frozenset[str] | None = None) -> None:
    """Raise `MissingFileError` when a file of the current snapshot is gone, `CorruptFileError` or `CorruptLogError` when one has not the
    size that was written, `UnsupportedTableError` when a base file lacks its rows. Of `partitions` (None: of all), which alone are listed.

    A write that merges into files must ask: it would go on from the version before, and the loss would never show again.
    """
    paths = [None] if partitions is None else sorted(partitions)
    slices = [piece for path in paths for piece in state.view.latest_slices(path)]
    _refuse_bootstrapped(state, slices)
    _refuse_lost(state, lost_files(state, None, slices, logs=True, within=None if partitions is None else partitions.intersection))
    _refuse_changed(changed_sizes(state, None, slices, logs=True))


def _kept(scope: Scope | None) -> Within | None:
    return None if scope is None else scope.within


def _refuse_lost(state: TableState, lost: Sequence[ExpectedFile]) -> None:
    if lost:
        raise _lost(state, lost[0])


def _lost(state: TableState, file: ExpectedFile) -> MissingFileError:
    clean = removed_by(state, file.path)
    who = f"the clean {clean} deleted it, though" if clean else "no clean on the timeline deleted it, and"
    reason = f"{who} no later write replaced it; restore the file, or restore the table to a savepoint"
    return missing_file(file.path, reason, instant=file.instant_time)


def _refuse_changed(changed: Sequence[ChangedSize]) -> None:
    for file in changed:
        message = (
            f"the {'log' if file.is_log else 'base'} file {file.path!r} has {file.size} bytes, and the commit {file.instant_time} wrote"
            f" {file.written}; restore the file from a backup, or restore the table to a savepoint"
        )
        raise (CorruptLogError if file.is_log else CorruptFileError)(message, path=file.path, instant=file.instant_time)


def _instant_time(name: str, value: str | None) -> str | None:
    if value is not None and not (value.isascii() and value.isdigit()):
        raise OptionError(f"{name}={value!r} is no instant time (yyyyMMddHHmmssSSS)")
    return value


def _changed_within(state: TableState, window: InstantRange, scope: Scope | None) -> list[FileSlice]:
    """As `_changed`; a write after the window that is damaged says nothing about what changed in it."""
    try:
        return _changed(state, window, scope)
    except MetadataError as error:
        if window.end is None or window.end < proven_since(state) or not state.archived_files().is_known:
            raise
        try:
            return _changed(state.up_to(window.end), window, scope)
        except LakehouseError:
            raise error from error.__cause__


def _changed(state: TableState, window: InstantRange, scope: Scope | None) -> list[FileSlice]:
    """Of the slices at the end of the window what was written within it: only that can hold rows of its commits.

    As in Hudi (`listAffectedFilesForCommits`), logs of the window are merged with each other, and with a base file only if it is of the
    window too. So a row that lost against an older base file shows, and of a partial update what it brought.
    """
    slices = slices_of(state, window.end, scope)
    lost = lost_files(state, window.end, slices, begin=window.begin, logs=True, within=_kept(scope))
    if window.end is None:
        _refuse_lost(state, lost)
        _refuse_changed(changed_sizes(state, None, slices, logs=True))
    elif lost or window.end < proven_since(state):
        pinned = _pinned(state, window.end, scope)
        if pinned is None:
            raise _gone(state, window.end, lost, logs=True)
        slices = pinned
    if window.end is not None:
        _refuse_changed(changed_sizes(state, window.end, slices, logs=True))
    elsewhere = _logs_outside(state, window)
    pieces = (_within(piece, window, elsewhere) for piece in slices)
    return [piece for piece in pieces if piece.base_file is not None or piece.log_files]


def _within(piece: FileSlice, window: InstantRange, elsewhere: frozenset[str]) -> FileSlice:
    base = piece.base_file if piece.base_instant in window else None
    return replace(piece, base_file=base, log_files=tuple(log for log in piece.log_files if log.path not in elsewhere))


def _logs_outside(state: TableState, window: InstantRange) -> frozenset[str]:
    """Log files that only commits outside of the window wrote to."""
    promises = [promise for written in log_promises(state, None).values() for promise in written]
    within = {promise.path for promise in promises if promise.instant_time in window}
    return frozenset(promise.path for promise in promises) - within
