"""The table's history, newest first, for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from lakehouse_engine.errors import FormatError, OptionError
from lakehouse_engine.format.v6.archived_record import archived_commit
from lakehouse_engine.model.archived import ArchivedEntry
from lakehouse_engine.model.commit_metadata import ROUTE_KEY, HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.order import is_later
from lakehouse_engine.model.plans import HoodieCleanMetadata, HoodieCompactionPlan, HoodieRestoreMetadata, HoodieRollbackMetadata
from lakehouse_engine.model.savepoint import HoodieSavepointMetadata
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.timeline.restores import RestoreRecord, pending_restore, restores
from lakehouse_engine.view.lost_commits import lost_commits
from lakehouse_engine.view.moment import at_one_moment
from lakehouse_engine.view.table_state import TableState

_NAMED = 3
_SAVEPOINTED = "savepointed: its files are kept, and it is not rolled back"
_UNFINISHED = {
    Action.COMPACTION: "archiving stops here",
    Action.LOG_COMPACTION: "archiving stops here",
    Action.CLUSTERING: "archiving stops here",
    Action.CLEAN: "the next change of the table finishes it",
    Action.ROLLBACK: "the next change of the table finishes it",
    Action.RESTORE: "the next change of the table finishes it",
    Action.SAVEPOINT: "it protects nothing",
}


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One instant. Counts are rows; None if the action is not a write or not completed. `route` as in `WriteResult`.

    `note` says what the instant keeps, blocks or took back, if anything. `archived` instants are no longer active.
    """

    instant: str
    action: str
    state: str
    operation: str | None = None
    inserts: int | None = None
    updates: int | None = None
    deletes: int | None = None
    files: int | None = None
    bytes_written: int | None = None
    route: str | None = None
    note: str | None = None
    archived: bool = False


def history(
    state: TableState, limit: int | None = None, *, begin: str | None = None, end: str | None = None, archived: bool = False
) -> list[HistoryEntry]:
    """Instants of the active timeline from `begin` to `end` (inclusive), newest first, at most `limit`.

    With `archived`, archived ones follow. For a damaged file the note says so. Raises `CorruptLogError` for a damaged archive, and
    `OptionError` for a negative `limit`. If instants leave the timeline meanwhile (archived or restored), the table is read again, and
    archived ones come from the archive.
    """
    if limit is not None and limit < 0:
        raise OptionError(f"limit={limit} is less than 0", table=state.config.name)
    return at_one_moment(state, lambda now: _history(now, limit, begin, end, archived))


def _history(state: TableState, limit: int | None, begin: str | None, end: str | None, archived: bool) -> list[HistoryEntry]:
    instants = (one for one in reversed(state.timeline.instants) if begin is None or not is_later(begin, one.requested_time))
    found = (one for one in instants if end is None or not is_later(one.requested_time, end))
    entries = [_entry(state, instant) for instant in islice(found, limit)]
    left = None if limit is None else limit - len(entries)
    return entries + (_archived(state, left, begin or "", end) if archived and left != 0 else [])


def _entry(state: TableState, instant: Instant) -> HistoryEntry:
    entry = HistoryEntry(instant.requested_time, str(instant.action), str(instant.state))
    try:
        entry = replace(entry, note=_note(state, instant))
        return _with_counts(entry, state.commit_metadata(instant)) if instant.is_completed and instant.action.is_write else entry
    except FormatError as error:
        return replace(entry, note=f"damaged; `repair` says what becomes of it: {error}")


def _with_counts(entry: HistoryEntry, metadata: HoodieCommitMetadata) -> HistoryEntry:
    stats = list(metadata.write_stats())
    return replace(
        entry,
        operation=str(metadata.operation_type) if metadata.operation_type else None,
        inserts=sum(stat.num_inserts for stat in stats),
        updates=sum(stat.num_update_writes for stat in stats),
        deletes=sum(stat.num_deletes for stat in stats),
        files=len(stats),
        bytes_written=sum(stat.total_write_bytes for stat in stats),
        route=metadata.extra_metadata.get(ROUTE_KEY),
    )


def _archived(state: TableState, limit: int | None, begin: str, end: str | None) -> list[HistoryEntry]:
    """Instants that an unfinished archiving, or a restore, has on both timelines are listed as active only."""
    active = {(instant.requested_time, instant.action.completes_as) for instant in state.timeline}
    found: dict[tuple[str, Action], ArchivedEntry] = {}
    for entry in state.archived_timeline.entries():
        key = entry.instant.requested_time, entry.instant.action.completes_as
        is_asked = not is_later(begin, key[0]) and (end is None or not is_later(key[0], end)) and key not in active
        if is_asked and (key not in found or entry.instant.state.rank > found[key].instant.state.rank):
            found[key] = entry
    records = restores(state.active, state.timeline)
    return [_archived_entry(state, found[key], records) for key in sorted(found, reverse=True)[:limit]]


def _archived_entry(state: TableState, archived: ArchivedEntry, records: Sequence[RestoreRecord]) -> HistoryEntry:
    instant = archived.instant
    gone = [record.instant.requested_time for record in records if instant.requested_time in record.rolled_back]
    if gone and instant.action.is_write:
        note: str | None = f"taken back by the restore {gone[-1]}"
    else:
        note = _SAVEPOINTED if instant.action.is_write and instant.requested_time in state.timeline.savepointed else None
    entry = HistoryEntry(instant.requested_time, str(instant.action), str(instant.state), note=note, archived=True)
    metadata = archived_commit(archived)
    return entry if metadata is None else _with_counts(entry, metadata)


def _note(state: TableState, instant: Instant) -> str | None:
    if not instant.is_completed:
        return _pending_note(state, instant)
    if instant.action.is_write:
        return _SAVEPOINTED if instant.requested_time in state.timeline.savepointed else None
    describe = _COMPLETED.get(instant.action)
    return describe(state.active, instant) if describe is not None else None


def _pending_note(state: TableState, instant: Instant) -> str:
    if instant.at(State.COMPLETED) in lost_commits(state):
        return "its completed file is gone, and later changes rest on it; `repair` says what leads out"
    consequence = _UNFINISHED.get(instant.action, "its writer is at work, or died: then the next change of the table takes it back")
    restore = pending_restore(state.active, state.timeline) if instant.action is Action.RESTORE else None
    if restore is not None:
        return f"not finished; the table shows as of {restore.target} already, and its next change, or repair, finishes the restore"
    if instant.action not in (Action.COMPACTION, Action.LOG_COMPACTION):
        return f"not finished; {consequence}"
    requested = Instant(instant.requested_time, instant.action, State.REQUESTED)
    slices = len(state.active.plan(HoodieCompactionPlan, requested).operations or ())
    return f"{slices} file slices wait to be compacted; cleaning keeps them, and {consequence}"


def _savepoint(timeline: ActiveTimeline, instant: Instant) -> str:
    savepoint = timeline.plan(HoodieSavepointMetadata, instant)
    files = sum(len(names) for names in savepoint.pinned_files().values())
    by = f" by {savepoint.savepointed_by}" if savepoint.savepointed_by else ""
    return f"keeps {files} files{by}" + (f": {savepoint.comments}" if savepoint.comments else "")


def _clean(timeline: ActiveTimeline, instant: Instant) -> str:
    clean = timeline.plan(HoodieCleanMetadata, instant)
    since = f"; readable from {clean.earliest_commit_to_retain} on" if clean.earliest_commit_to_retain else ""
    return f"deleted {clean.total_files_deleted} files{since}"


def _rollback(timeline: ActiveTimeline, instant: Instant) -> str:
    rollback = timeline.plan(HoodieRollbackMetadata, instant)
    return f"took back {_named(rollback.commits_rollback)}; deleted {rollback.total_files_deleted} files"


def _restore(timeline: ActiveTimeline, instant: Instant) -> str:
    return f"took back {_named(timeline.plan(HoodieRestoreMetadata, instant).instants_to_rollback)}"


def _named(instants: tuple[str, ...]) -> str:
    more = f" and {len(instants) - _NAMED} more" if len(instants) > _NAMED else ""
    return (", ".join(instants[:_NAMED]) or "nothing") + more


_COMPLETED: dict[Action, Callable[[ActiveTimeline, Instant], str]] = {
    Action.SAVEPOINT: _savepoint,
    Action.CLEAN: _clean,
    Action.ROLLBACK: _rollback,
    Action.RESTORE: _restore,
}


def state_times(state: TableState) -> dict[Instant, int]:
    """When each instant reached each state, by its file's age, in epoch milliseconds."""
    entries = ((state.format.parse_file_name(entry.name), entry) for entry in state.storage.list(state.format.timeline_folder))
    return {instant: entry.modified_ms for instant, entry in entries if instant is not None and not entry.is_directory}
