"""Plans snapshot, time-travel, read-optimized and incremental reads (hudi-format 6 and 10.8).

A plan is data: base files, slices with logs, a schema, and for incremental reads a range of commit times. The listing says which files
exist; the metadata of the writes on the active timeline says which must exist. A difference is an error, never fewer rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import (
    OptionError,
    TimelineRestoredError,
    UnsupportedTableError,
)
from lakehouse_engine.files.log_scanner import LogScope
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.files.slice_reader import BaseRowsBy, SliceReader
from lakehouse_engine.manifest.missing import logged_slices
from lakehouse_engine.model.files import BaseFile, FileSlice
from lakehouse_engine.model.instant import Action, InstantRange
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.model.order import age, is_later
from lakehouse_engine.model.savepoint import EARLIEST
from lakehouse_engine.read.complete_slices import changed_slices, latest_slices, refuse_bootstrapped, slices_as_of
from lakehouse_engine.read.guarantees import FROM_FOOTERS, FileGuarantees
from lakehouse_engine.read.pruning import Scope
from lakehouse_engine.read.row_filter import RowFilter
from lakehouse_engine.record.keys.partition_values import PathRules
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.restores import RestoreRecord, restores, rollbacks
from lakehouse_engine.view.lost_commits import check_no_commit_is_lost, lost_commits
from lakehouse_engine.view.table_state import TableState

FROM_START = ("000", EARLIEST)
"""Values of `begin` that mean every commit, as in Hudi's incremental queries and `hudi_table_changes`."""

ON_RESTORE = ("fail", "resync", "rewind")
"""What an incremental read does if a restore took back something that was read before."""

_NAMED = 5
_SCHEMA_HISTORY = ".hoodie/.schema"


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """Base files to read whole and slices to merge, in listing order, and how to read them.

    `schema` holds the user columns to which every file is converted. `instant` is the newest completed write that the plan sees (None: the
    table has none). With `commit_range`, only rows whose `_hoodie_commit_time` is in it belong to the result. `logged` are the slices with
    log files, which `reader` reads; it is None if there are none. `verify` checks the files' checksums. Only rows for which `wanted` is
    true belong to the result; the plan leaves out partitions that can have none. `rules` say what partition paths say about their rows, if
    requested and known. `replaced_only` are paths of base files under logs without any wanted row: they only show which of their rows the
    logs replace. `foreign`: another program may have written some file. `hidden`: a column that is not shown, and is null in rows that
    belong to the result. `guarantees` tell which files hold no wanted row.
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
    replaced_only: frozenset[str] = frozenset()
    foreign: bool = True
    hidden: str | None = None
    guarantees: FileGuarantees = FROM_FOOTERS

    @property
    def shown(self) -> pa.Schema:
        """Columns of the result."""
        return self.schema if self.hidden is None else pa.schema([one for one in self.schema if one.name != self.hidden])

    def verified(self, verify: bool) -> ScanPlan:
        """The same plan, with or without checking checksums (`lakehouse.read.verify.checksums`)."""
        return replace(self, verify=verify, reader=None if self.reader is None else replace(self.reader, verify=verify))

    @property
    def size(self) -> int:
        """Size of all files in bytes."""
        return sum(file.size for file in self.files) + sum(piece.slice.size for piece in self.logged)

    def base_files(self) -> Iterator[BaseFile]:
        """All base files, including those of slices with logs."""
        yield from self.files
        yield from (piece.slice.base_file for piece in self.logged if piece.slice.base_file is not None)

    @property
    def log_size(self) -> int:
        """Size of the log files in bytes, as listed."""
        return sum(log.size for piece in self.logged for log in piece.slice.log_files)


@dataclass(frozen=True, slots=True)
class Filters:
    """Expression that selects rows; with `trusts_paths`, partition paths are taken as the values of the rows in them."""

    expression: pc.Expression
    trusts_paths: bool = False

    def scope(self, state: TableState, schema: pa.Schema) -> Scope:
        """Partitions that the filter needs. Raises `OptionError` for an expression that does not fit the table."""
        return Scope.of(state, RowFilter.of(self.expression, schema), schema, trusted=self.trusts_paths)


def plan_snapshot(
    state: TableState, as_of: str | None = None, *, read_optimized: bool = False, filters: Filters | None = None
) -> ScanPlan:
    """Plan for all rows of the table now, or as of `as_of`.

    `as_of` is an instant time (`read.moments` converts other forms; if the table's timeline zone is LOCAL, it is the writers' local time).
    Before the first commit there are no rows. `read_optimized` reads the base files of a merge-on-read table without its logs. `filters`
    apply to the table's columns at that time; partitions that they rule out are not listed, so files lost there go unnoticed.

    Raises `InstantCleanedError` if a clean or the archival removed what the table was at `as_of`, naming the earliest readable instant
    (unlike in Hudi, instants before the last clean's `earliestCommitToRetain` are readable while all their files are there),
    `MissingFileError` for a lost file, `CorruptFileError` and `CorruptLogError` for a file of another size than was written,
    `CorruptInstantError` for a commit that is damaged or whose file is gone, `UnsupportedTableError` for tables that are refused by name,
    and `OptionError` for an `as_of` that is not an instant time, or filters that do not fit.
    """
    check_readable(state)
    logs = not read_optimized
    if as_of is not None:
        _instant_time("as_of", as_of)
    check_no_commit_is_lost(state, lost_commits(state), until=as_of)
    scope = None if filters is None else filters.scope(state, table_schema(state, as_of))
    slices = latest_slices(state, logs=logs, scope=scope) if as_of is None else slices_as_of(state, as_of, logs, scope)
    return _plan(state, slices, as_of, logs=logs, scope=scope)


def plan_incremental(
    state: TableState, begin: str | None, end: str | None = None, *, on_restore: str = "fail", filters: Filters | None = None
) -> ScanPlan:
    """Plan for rows that changed after `begin` and not after `end` (instant times), as they were at `end`; deleted rows do not show.

    `begin` None, "000" or "earliest" starts with the table's first commit; `end` None ends with the last. Rows come in the table's current
    schema. Unlike Hudi 0.15 (and like Hudi 1.x), a range that starts before the active timeline includes rows of archived commits.

    If a restore, or the rollback of a completed write, took back something that a reader up to `begin` has read, `on_restore` decides:
    "fail" raises `TimelineRestoredError`, "resync" plans the whole snapshot as of `end`, and "rewind" what changed after the instant that
    the table went back to (rows whose keys were taken back do not show as deleted; a reader that applies changes by key must cope with
    them). Raises `InstantCleanedError` if a base file that the range needs was cleaned, `OptionError` for a range that ends before it
    begins or for bounds that are not instant times, and `UnsupportedTableError` for a table without meta columns and others that are
    refused by name.
    """
    check_readable(state)
    if not state.config.populates_meta_fields:
        raise UnsupportedTableError(
            "incremental reads need _hoodie_commit_time, and the table has no meta columns (hoodie.populate.meta.fields=false)",
            table=state.config.name,
        )
    window = InstantRange(None if begin in FROM_START else _instant_time("begin", begin), _instant_time("end", end))
    window = state.timeline.within(window)
    if window.begin is not None and window.end is not None and is_later(window.begin, window.end):
        raise OptionError(f"an incremental read from {window.begin} to {window.end} ends before it begins")
    if on_restore not in ON_RESTORE:
        raise OptionError(f"on_restore={on_restore!r} is not one of {', '.join(ON_RESTORE)}")
    check_no_commit_is_lost(state, lost_commits(state), until=window.end)
    restored = _restore_behind(state, window.begin)
    if restored is not None:
        if on_restore == "fail":
            raise _restored(state, window.begin, restored)
        if on_restore == "resync":
            return plan_snapshot(state, end, filters=filters)
        return plan_incremental(state, restored.moment, end, on_restore=on_restore, filters=filters)
    scope = None if filters is None else filters.scope(state, table_schema(state))
    changed = changed_slices(state, window, scope)
    return _plan(state, changed.slices, end, window=window, scope=scope, whole=changed.whole)


def _restore_behind(state: TableState, begin: str | None) -> RestoreRecord | None:
    """The restore or rollback to the earliest instant, among those that took back something up to `begin`."""
    if begin is None:
        return None
    active = state.active
    records = [*restores(active, state.timeline), *rollbacks(active, state.timeline, begin)]
    return min((record for record in records if record.took_back(begin)), key=lambda record: age(record.moment), default=None)


def _restored(state: TableState, begin: str | None, record: RestoreRecord) -> TimelineRestoredError:
    read = [time for time in record.rolled_back if begin is not None and not is_later(time, begin)]
    named = ", ".join(read[:_NAMED]) + (f" and {len(read) - _NAMED} more" if len(read) > _NAMED else "")
    is_restore = record.instant.action is Action.RESTORE
    undone = f"the table was restored to {record.target}" if is_restore else "a write of the table was rolled back"
    return TimelineRestoredError(
        f"{undone} by {record.instant.requested_time}: what was read up to {begin} is no longer part of it (taken back:"
        f" {named or 'archived commits'}). Read the table anew (on_restore='resync'), or go on from {record.moment} (on_restore='rewind')",
        table=state.config.name,
        restore=record.instant.requested_time,
        target=record.target,
        rolled_back=",".join(record.rolled_back),
    )


def check_readable(state: TableState) -> None:
    """Raise `UnsupportedTableError`, naming the reason, for tables that would be read wrongly."""
    config = state.config
    if config.drops_partition_columns:
        raise UnsupportedTableError(
            "the partition columns are not in the data files (hoodie.datasource.write.drop.partition.columns=true); copy the rows with"
            " Hudi into a table that keeps them",
            table=config.name,
        )
    history = state.storage.list(_SCHEMA_HISTORY) if state.may_have_folder(_SCHEMA_HISTORY) else []
    if any(entry.name.endswith(".schemacommit") for entry in history):
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
    whole: frozenset[FileGroupId] = frozenset(),
) -> ScanPlan:
    """`until` is the instant as of which the table is read; incremental rows still come in the current schema."""
    refuse_bootstrapped(state, slices)
    logged = [piece for piece in slices if piece.log_files] if logs else []
    files = tuple(piece.base_file for piece in slices if piece.base_file is not None and not (logs and piece.log_files))
    schema = table_schema(state, None if window is not None else until)
    newest = state.timeline.completed().writes().up_to(until).last()
    wanted = None if scope is None else scope.wanted
    plan = ScanPlan(state.storage, files, schema, newest.requested_time if newest else None, window, wanted=wanted)
    return _with_logs(state, plan, logged, window or InstantRange(None, until), whole) if logged else plan


def _with_logs(
    state: TableState, plan: ScanPlan, slices: Sequence[FileSlice], window: InstantRange, whole: frozenset[FileGroupId]
) -> ScanPlan:
    logged = tuple(replace(piece, whole=piece.slice.group in whole) for piece in logged_slices(state.manifest, window.end, slices))
    rules, scope = MergeRules.of(state.config, plan.schema), LogScope.of(state.timeline, window)
    reader = SliceReader(state.storage, plan.schema, rules, scope, base_rows=BaseRowsBy.POSITIONS)
    return replace(plan, logged=logged, reader=reader)


def _instant_time(name: str, value: str | None) -> str | None:
    if value is not None and not (value.isascii() and value.isdigit()):
        raise OptionError(f"{name}={value!r} is no instant time (yyyyMMddHHmmssSSS)")
    return value
