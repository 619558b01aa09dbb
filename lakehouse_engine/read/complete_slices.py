"""Finds the slices for a read, a merge or a savepoint, and checks that every file is there as it was written, or raises an error naming the
file: the listing says which files exist, the metadata of writes which must exist.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import (
    ContradictoryPropertiesError,
    CorruptFileError,
    CorruptLogError,
    InstantCleanedError,
    LakehouseError,
    MetadataError,
    MissingFileError,
    UnsupportedTableError,
)
from lakehouse_engine.files.base_file import missing_file
from lakehouse_engine.files.log_scanner import has_partial_rows
from lakehouse_engine.manifest.manifest import ExpectedFile
from lakehouse_engine.manifest.missing import ChangedSize, Within, changed_sizes, lost_files
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import InstantRange
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.order import is_later
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.read.pinned import pinned_slices, removed_by
from lakehouse_engine.read.pruning import Scope, slices_of
from lakehouse_engine.view.table_state import TableState

Answer = TypeVar("Answer")
_DAMAGE = (MissingFileError, CorruptFileError, CorruptLogError)
METADATA_BOOTSTRAP_INSTANT = "00000000000001"


def refuse_bootstrapped(state: TableState, slices: Sequence[FileSlice]) -> None:
    """Raise `UnsupportedTableError` if rows of a slice are outside of the table (Hudi's metadata-only bootstrap)."""
    if any(piece.base_file is not None and piece.base_file.instant_time == METADATA_BOOTSTRAP_INSTANT for piece in slices):
        raise UnsupportedTableError(
            "the table was bootstrapped with METADATA_ONLY, and rows are still in the source files outside of it; copy the rows"
            " with Hudi into a new table",
            table=state.config.name,
            source=state.config.bootstrap_base_path,
        )


def _refuse_logs(state: TableState, slices: Sequence[FileSlice]) -> None:
    """Raise `ContradictoryPropertiesError` if a table declared as copy-on-write has log files: reads and writes would ignore their rows."""
    if state.config.table_type is TableType.MERGE_ON_READ:
        return
    log = next((log for piece in slices for log in piece.log_files), None)
    if log is not None:
        raise ContradictoryPropertiesError(
            f"the table has log files ({log.path}), and its properties say hoodie.table.type=COPY_ON_WRITE, for which the rows in them do"
            " not count: another program has changed that. Put hoodie.table.type=MERGE_ON_READ back in .hoodie/hoodie.properties"
            " (.hoodie/.aux/hoodie.properties is as this engine wrote it last)",
            path=log.path,
            table=state.config.name,
        )


def check_not_bootstrapped(state: TableState) -> None:
    """Raise `UnsupportedTableError` if rows of the table, in any partition, are in files outside of it."""
    if state.config.bootstrap_base_path is not None:
        refuse_bootstrapped(state, state.view.latest_slices())


def complete_slices(state: TableState, as_of: str) -> list[FileSlice]:
    """Slices of the table as of an instant time, with logs and with every file there.

    Raises `MissingFileError` if a file of the newest snapshot is lost, `InstantCleanedError` if one of an older snapshot is gone.
    """
    last = state.timeline.completed().writes().last()
    if last is not None and state.order.is_visible(last.requested_time, as_of):
        check_complete(state)
        return state.view.latest_slices()
    return slices_as_of(state, as_of, True, None)


def latest_slices(state: TableState, *, logs: bool, scope: Scope | None = None) -> list[FileSlice]:
    """Slices of the current table. Raises if a file is missing or has another size than was written."""
    return _listed_well(state, lambda: _latest(state, logs, scope))


def _latest(state: TableState, logs: bool, scope: Scope | None) -> list[FileSlice]:
    slices = slices_of(state, None, scope)
    _refuse_logs(state, slices)
    unchecked, looked_at, within = state.view.unchecked, slices, _kept(scope)
    if unchecked is not None:
        # The other partitions were listed and found complete before, and have not been written since.
        looked_at = [piece for piece in slices if piece.partition_path in unchecked] if unchecked else []
        within = partial(_both, unchecked, within)
    if unchecked != frozenset():
        _refuse_lost(state, lost_files(state.manifest, None, looked_at, logs=logs, within=within))
        _refuse_changed(changed_sizes(state.manifest, None, looked_at, logs=logs))
    if scope is None and (logs or state.config.table_type is TableType.COPY_ON_WRITE):
        state.view.was_checked()
    return slices


def _both(some: frozenset[str], within: Within | None, paths: Iterable[str]) -> Iterable[str]:
    return some.intersection(paths if within is None else within(paths))


def _listed_well(state: TableState, ask: Callable[[], Answer]) -> Answer:
    """Answer of `ask`. On a lost or changed file, drops all cached listings, because the file may be restored.

    If an earlier state's listing was used, asks once more, because the file may already be restored.
    """
    try:
        return ask()
    except _DAMAGE:
        if not state.view.list_anew():
            raise
    try:
        return ask()
    except _DAMAGE:
        state.view.list_anew()
        raise


def slices_as_of(state: TableState, as_of: str, logs: bool, scope: Scope | None) -> list[FileSlice]:
    """Slices as of an instant time, without logs that only later commits wrote, which cannot count."""
    try:
        slices = _listed_as_of(state, as_of, logs, scope)
        return _without(slices, _logs_outside(state, InstantRange(None, as_of), whole=True)) if logs else slices
    except MetadataError as error:
        # A damaged later write does not affect what was there before it.
        known = _known_as_of(state, as_of, logs, scope)
        if known is None:
            raise error from error.__cause__
        return known


def _known_as_of(state: TableState, as_of: str, logs: bool, scope: Scope | None) -> list[FileSlice] | None:
    """Slices known only from writes up to `as_of`, with every file there; None if those do not determine the slices."""
    try:
        slices = _pinned(state, as_of, scope)
        if slices is None:
            before = state.up_to(as_of)
            slices = slices_of(before, as_of, scope)
            is_told = not is_later(state.proven_since, as_of) and state.archived_files().is_known
            if not is_told or lost_files(before.manifest, as_of, slices, logs=logs, within=_kept(scope)):
                return None
        _refuse_changed(changed_sizes(state.manifest, as_of, slices, logs=logs))
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
    _refuse_logs(state, slices)
    lost = lost_files(state.manifest, as_of, slices, logs=logs, within=_kept(scope))
    if not lost and not is_later(state.proven_since, as_of):
        _refuse_changed(changed_sizes(state.manifest, as_of, slices, logs=logs))
        return slices
    pinned = _pinned(state, as_of, scope)
    if pinned is not None:
        _refuse_changed(changed_sizes(state.manifest, as_of, pinned, logs=logs))
        return pinned
    raise _gone(state, as_of, lost, logs=logs)


def _gone(state: TableState, instant_time: str, lost: Sequence[ExpectedFile], *, logs: bool) -> InstantCleanedError | MissingFileError:
    """`MissingFileError` if the current table needs a lost file, which no clean deletes; else `InstantCleanedError`."""
    needed = {file.path for file in lost_files(state.manifest, None, state.view.latest_slices(), logs=logs)} if lost else set()
    still = [file for file in lost if file.path in needed]
    return _lost(state, still[0]) if still else _cleaned(state, instant_time, lost, logs=logs)


def earliest_readable(state: TableState, after: str, *, logs: bool) -> str | None:
    """Moment of the first completed write after the moment `after` as of which every file is there; None if there is none."""
    since = state.proven_since
    for instant in state.timeline.completed().writes().after(after).instants:
        moment = state.order.moment(instant.requested_time)
        if is_later(since, instant.requested_time):
            continue
        if not lost_files(state.manifest, moment, state.view.slices_as_of(moment), logs=logs):
            return moment
    return None


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
    """Raise `MissingFileError` if a file of the current snapshot is gone, `CorruptFileError` or `CorruptLogError` if one has another size
    than was written, and `UnsupportedTableError` if a base file lacks its rows. Checks and lists only `partitions` (None: all).

    A write that merges into files must call this: it would build on the previous version and hide the loss for good. Cached listings are
    not trusted for `partitions`, but they are for the whole table (docs/adr/0026).
    """
    if partitions is not None:
        state.view.look_again(sorted(partitions))
        _listed_well(state, lambda: _check_complete(state, partitions))
    elif state.view.unchecked != frozenset():
        # Checks again which partitions are unchecked, because a retry lists afresh.
        _listed_well(state, lambda: _check_complete(state, state.view.unchecked))
        state.view.was_checked()


def _check_complete(state: TableState, partitions: frozenset[str] | None) -> None:
    paths = [None] if partitions is None else sorted(partitions)
    slices = [piece for path in paths for piece in state.view.latest_slices(path)]
    refuse_bootstrapped(state, slices)
    _refuse_logs(state, slices)
    _refuse_lost(state, lost_files(state.manifest, None, slices, logs=True, within=None if partitions is None else partitions.intersection))
    _refuse_changed(changed_sizes(state.manifest, None, slices, logs=True))


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


def changed_slices(state: TableState, window: InstantRange, scope: Scope | None) -> ChangedSlices:
    """Like `_changed`, but ignores a damaged write after the window, which does not affect the changes in it.

    Lists nothing if the window begins at the newest write: readers that poll mostly ask that.
    """
    newest = state.timeline.completed().writes().last()
    if window.begin is not None and newest is not None and state.order.is_visible(newest.requested_time, window.begin):
        return ChangedSlices([])
    try:
        return _changed(state, window, scope)
    except MetadataError as error:
        if window.end is None or is_later(state.proven_since, window.end) or not state.archived_files().is_known:
            raise
        try:
            return _changed(state.up_to(window.end), window, scope)
        except LakehouseError:
            raise error from error.__cause__


@dataclass(frozen=True, slots=True)
class ChangedSlices:
    """Slices with only what a range of commits wrote to them; those of groups in `whole` have everything up to its end."""

    slices: list[FileSlice]
    whole: frozenset[FileGroupId] = frozenset()


def _changed(state: TableState, window: InstantRange, scope: Scope | None) -> ChangedSlices:
    """Parts of the slices at the end of the window that were written within it: only these can hold rows of its commits.

    As in Hudi (`listAffectedFilesForCommits`), logs of the window are merged with each other, and with a base file only if it is of the
    window too. So a row that lost against an older base file shows, and a partial update shows what it brought. If rows of the window have
    only some of the columns, the whole slice is merged; otherwise the missing columns would read as nulls (where Hudi 1.2 fails).
    """
    slices = slices_of(state, window.end, scope)
    _refuse_logs(state, slices)
    lost = lost_files(state.manifest, window.end, slices, begin=window.begin, logs=True, within=_kept(scope))
    if window.end is None:
        _refuse_lost(state, lost)
        _refuse_changed(changed_sizes(state.manifest, None, slices, logs=True))
    elif lost or is_later(state.proven_since, window.end):
        pinned = _pinned(state, window.end, scope)
        if pinned is None:
            raise _gone(state, window.end, lost, logs=True)
        slices = pinned
    if window.end is not None:
        _refuse_changed(changed_sizes(state.manifest, window.end, slices, logs=True))
    within = [piece if state.order.is_within(piece.base_instant, window) else replace(piece, base_file=None) for piece in slices]
    changed = _without(within, _logs_outside(state, window))
    whole = _partly_logged(state, changed)
    behind = {piece.group: piece for piece in slices if piece.group in whole}
    return ChangedSlices([behind.get(piece.group, piece) for piece in changed], whole)


def _partly_logged(state: TableState, slices: Sequence[FileSlice]) -> frozenset[FileGroupId]:
    """Groups whose slices without a base file have logs of partial rows. No version 6 writer makes such logs, but a downgraded table may
    have them.
    """
    if state.config.version is TableVersion.SIX and not state.config.logs_by_writer:
        return frozenset()
    logs = [(piece.group, log) for piece in slices if piece.base_file is None for log in piece.log_files]
    runner = LocalRunner(os.cpu_count() or 1)
    found = runner.run(lambda one: has_partial_rows(state.storage, one[1]), logs, name="logs")
    return frozenset(group for (group, _), partly in zip(logs, found, strict=True) if partly)


def _without(slices: Sequence[FileSlice], logs: frozenset[str]) -> list[FileSlice]:
    """The slices without those log files, dropping slices without any file left."""
    pieces = (replace(piece, log_files=tuple(log for log in piece.log_files if log.path not in logs)) for piece in slices)
    return [piece for piece in pieces if piece.base_file is not None or piece.log_files]


def _logs_outside(state: TableState, window: InstantRange, *, whole: bool = False) -> frozenset[str]:
    """Log files that only commits outside of the window wrote to. `whole`: only files known to have been begun by these, so that a commit
    whose writes are unknown has nothing in them.
    """
    promises = [promise for written in state.manifest.promises(None).values() for promise in written]
    within = {promise.path for promise in promises if state.order.is_within(promise.instant_time, window)}
    return frozenset(promise.path for promise in promises if promise.start == 0 or not whole) - within
